//! Workspaces find each other.

use super::credential::Credential;
use super::posted::{Posted, workspace_id};
use super::refusal::MoleculeRefusal;
use super::retired;
use crate::types::molecule::answer::{Allowed, MovedWorkspace};
use crate::types::molecule::workspace::{Discovered, Peer};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use reveille_core::id::WorkspaceId;
use reveille_core::presence::workspace::{Workspace, WorkspaceStatus};
use reveille_engine::{Engine, WorkspaceAct};
use reveille_roster::Scope;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// Says where a workspace is reached, to one that may talk to it.
#[utoipa::path(get, path = "/registry/discover/{id}", tag = "molecule", security((), ("key" = []), ("bearer" = [])), params(
    ("id" = String, Path), ("X-Workspace-ID" = String, Header, description = "The workspace that asks")), responses(
    (status = 200, body = Discovered), (status = 301, body = MovedWorkspace, description = "It was removed, and this one took its place", headers(("Location" = String))), (status = 404, description = "No such workspace"),
    (status = 410, description = "It was removed; `forwarded_to` is where to go instead"), (status = 503, description = "It is not there now")))]
pub async fn discover(
    State(engine): State<Engine>,
    credential: Credential,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Json<Discovered>, MoleculeRefusal> {
    let id = workspace_id(&id)?;
    let caller =
        caller(&headers)?.ok_or_else(|| MoleculeRefusal::bad("X-Workspace-ID header is required"))?;
    let caller = speaker(&engine, &credential, &caller)?;
    let asked = engine.workspaces().workspace(&caller.tenant, &id).ok_or_else(MoleculeRefusal::not_found)?;
    if !engine.workspaces().may_talk(&caller, &asked) {
        return Err(MoleculeRefusal::forbidden("not authorized to discover this workspace"));
    }
    let found = retired::looked_up(&engine, &asked, "/registry/discover").await?;
    match (&found.url, found.status) {
        (Some(url), WorkspaceStatus::Online | WorkspaceStatus::Degraded) => {
            Ok(Json(Discovered { id: found.id.to_string(), url: url.clone(), name: found.name.clone() }))
        }
        _ => {
            Err(MoleculeRefusal::unavailable("workspace not available").with("status", found.status.as_str()))
        }
    }
}

fn speaker(
    engine: &Engine,
    credential: &Credential,
    id: &WorkspaceId,
) -> Result<Arc<Workspace>, MoleculeRefusal> {
    let found = credential.acts_for(engine, id, WorkspaceAct::Speak, Scope::Read)?;
    found.ok_or_else(MoleculeRefusal::not_found)
}

/// Which workspace the caller says it is.
pub fn caller(headers: &HeaderMap) -> Result<Option<WorkspaceId>, MoleculeRefusal> {
    let value = headers.get("x-workspace-id").filter(|value| !value.is_empty());
    value.map(|value| workspace_id(value.to_str().unwrap_or_default())).transpose()
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PeersQuery {
    /// What name or role must have in them.
    q: Option<String>,
}

/// Lists the workspaces that a workspace may talk to.
#[utoipa::path(get, path = "/registry/{id}/peers", tag = "molecule", security((), ("key" = []), ("bearer" = [])), params(("id" = String, Path), PeersQuery), responses(
    (status = 200, body = [Peer]), (status = 404, description = "No such workspace"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn peers(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Query(query): Query<PeersQuery>,
) -> Result<Json<Vec<Peer>>, MoleculeRefusal> {
    let id = workspace_id(&id)?;
    let own = speaker(&engine, &credential, &id)?;
    let wanted = query.q.unwrap_or_default().to_lowercase();
    let mut peers = engine.workspaces().peers_of(&own);
    peers.retain(|peer| {
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        wanted.is_empty() || has(&peer.workspace.name) || peer.workspace.role.as_deref().is_some_and(has)
    });
    Ok(Json(peers.iter().map(Peer::of).collect()))
}

#[derive(Deserialize, ToSchema)]
#[schema(as = Access)]
pub struct AccessCheck {
    caller_id: String,
    target_id: String,
}

/// Says whether one workspace may talk to another.
#[utoipa::path(post, path = "/registry/check-access", tag = "molecule", request_body = AccessCheck, responses((status = 200, body = Allowed)))]
pub async fn check_access(
    State(engine): State<Engine>,
    credential: Credential,
    Posted(body): Posted<AccessCheck>,
) -> Result<Json<Allowed>, MoleculeRefusal> {
    let (caller, target) = (workspace_id(&body.caller_id)?, workspace_id(&body.target_id)?);
    let tenant = credential.tenant(Scope::Read)?;
    let living = |id: &WorkspaceId| engine.workspaces().living(tenant, id).ok();
    let allowed = match (living(&caller), living(&target)) {
        (Some(caller), Some(target)) => engine.workspaces().may_talk(&caller, &target),
        _ => false,
    };
    Ok(Json(Allowed { allowed }))
}
