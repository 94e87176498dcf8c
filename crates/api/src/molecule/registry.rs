//! Workspaces come in and beat.

use super::credential::Credential;
use super::limiter::Limiter;
use super::posted::{Posted, workspace_id};
use super::refusal::MoleculeRefusal;
use super::retired;
use crate::types::molecule::answer::Done;
use crate::types::molecule::beat::{BeatAnswer, Heartbeat};
use crate::types::molecule::registration::{NewCard, Register, Registered};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use reveille_core::id::WorkspaceId;
use reveille_core::presence::Contract;
use reveille_core::presence::workspace::Workspace;
use reveille_engine::{Engine, WorkspaceAct, WorkspaceClaim, WorkspaceError};
use reveille_roster::Scope;
use std::sync::Arc;

/// Registers a workspace, or one that comes back.
///
/// A key or the workspace's own token. Where `auth.open_registration` is set, a workspace that was set up and has no token yet
/// needs none.
#[utoipa::path(post, path = "/registry/register", tag = "molecule", security((), ("key" = []), ("bearer" = [])), request_body = Register, responses(
    (status = 200, body = Registered), (status = 404, description = "It is another tenant's"),
    (status = 409, description = "The tenant has as many workspaces as it may"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn register(
    State(engine): State<Engine>,
    Extension(limiter): Extension<Arc<Limiter>>,
    credential: Credential,
    Posted(body): Posted<Register>,
) -> Result<Json<Registered>, MoleculeRefusal> {
    let registration = body.understood()?;
    // A credential that is checked in memory costs less than the refusal that it would save; and whoever
    // does not have it cannot use up a workspace's share.
    let known = acts_for(&engine, &credential, &registration.id, WorkspaceAct::Register)?;
    let claim = credential.claim(Scope::Ingest)?;
    match (known, &claim) {
        // Nor can those who show no key use up what newcomers with one need.
        (None, WorkspaceClaim::Token(_) | WorkspaceClaim::Nothing) => limiter.stranger(engine.now())?,
        _ => limiter.call(&registration.id, engine.now())?,
    }
    let registered =
        engine.workspaces().register_workspace(&claim, registration, credential.identity()).await?;
    Ok(Json(Registered { status: "registered", auth_token: registered.token }))
}

/// Takes a workspace's beat.
#[utoipa::path(post, path = "/registry/heartbeat", tag = "molecule", security((), ("key" = []), ("bearer" = [])), request_body = Heartbeat, responses(
    (status = 200, body = BeatAnswer), (status = 404, description = "It is not registered"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead"),
    (status = 429, description = "The workspace calls too often")))]
pub async fn heartbeat(
    State(engine): State<Engine>,
    Extension(limiter): Extension<Arc<Limiter>>,
    credential: Credential,
    Posted(body): Posted<Heartbeat>,
) -> Result<Json<BeatAnswer>, MoleculeRefusal> {
    let id = workspace_id(&body.workspace_id)?;
    let workspace = speaker(&engine, &limiter, &credential, &id)?;
    match engine.workspaces().workspace_beat(&workspace.id, body.pulse()).await {
        Err(WorkspaceError::NotFound) => Err(not_registered()),
        // It was retired a moment ago; whoever asks now is told where to go.
        Err(WorkspaceError::Removed) => Err(retired_now(&engine, &id)),
        Err(error) => Err(error.into()),
        Ok(()) => {
            let next_beat_s = engine.fleet().suggested_beat_seconds(Contract::Molecule);
            Ok(Json(BeatAnswer { status: "ok", next_beat_s }))
        }
    }
}

/// Replaces a workspace's card.
#[utoipa::path(post, path = "/registry/update-card", tag = "molecule", security((), ("key" = []), ("bearer" = [])), request_body = NewCard, responses(
    (status = 200, body = Done), (status = 404, description = "It is not registered"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn update_card(
    State(engine): State<Engine>,
    Extension(limiter): Extension<Arc<Limiter>>,
    credential: Credential,
    Posted(body): Posted<NewCard>,
) -> Result<Json<Done>, MoleculeRefusal> {
    let id = workspace_id(&body.workspace_id)?;
    let workspace = speaker(&engine, &limiter, &credential, &id)?;
    engine.workspaces().update_card(&workspace.id, body.card()?).await?;
    Ok(Json(Done { status: "updated" }))
}

/// The living workspace that the caller speaks for, within its share of calls.
fn speaker(
    engine: &Engine,
    limiter: &Limiter,
    credential: &Credential,
    id: &WorkspaceId,
) -> Result<Arc<Workspace>, MoleculeRefusal> {
    let Some(known) = acts_for(engine, credential, id, WorkspaceAct::Speak)? else {
        limiter.stranger(engine.now())?;
        return Err(not_registered());
    };
    limiter.call(id, engine.now())?;
    Ok(known)
}

/// Another tenant's workspace is one that nobody has registered.
fn acts_for(
    engine: &Engine,
    credential: &Credential,
    id: &WorkspaceId,
    act: WorkspaceAct,
) -> Result<Option<Arc<Workspace>>, MoleculeRefusal> {
    credential.acts_for(engine, id, act, Scope::Ingest).map_err(|refused| match refused {
        MoleculeRefusal::Ours { status: StatusCode::NOT_FOUND, .. } => not_registered(),
        other => other,
    })
}

fn not_registered() -> MoleculeRefusal {
    MoleculeRefusal::new(StatusCode::NOT_FOUND, "not_found", "workspace not registered")
}

fn retired_now(engine: &Engine, id: &WorkspaceId) -> MoleculeRefusal {
    let known = engine.workspaces().any_workspace(id);
    known.and_then(|known| retired::spoken_to(engine, &known).err()).unwrap_or_else(not_registered)
}
