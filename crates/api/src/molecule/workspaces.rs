//! Workspaces are set up, looked at, changed and retired.

use super::credential::Credential;
use super::posted::{MaybePosted, Posted, uuid, workspace_id};
use super::refusal::MoleculeRefusal;
use super::retired;
use crate::types::molecule::answer::{
    MovedWorkspace, NoWorkspace, RemovedWorkspace, Unconfirmed, UpdatedWorkspace, WorkspaceState,
    WorkspaceToken,
};
use crate::types::molecule::setup::{CreateWorkspace, CreatedWorkspace, PatchBody, WorkspaceConnection};
use crate::types::molecule::workspace::{PublicWorkspace, Workspace};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use reveille_engine::Engine;
use reveille_roster::Scope;
use serde::Deserialize;
use utoipa::ToSchema;

/// Sets up a workspace before it starts.
#[utoipa::path(post, path = "/workspaces", tag = "molecule", request_body = CreateWorkspace, responses(
    (status = 201, body = CreatedWorkspace), (status = 409, description = "The tenant has as many workspaces as it may")))]
pub async fn create(
    State(engine): State<Engine>,
    credential: Credential,
    headers: HeaderMap,
    Posted(body): Posted<CreateWorkspace>,
) -> Result<(StatusCode, Json<CreatedWorkspace>), MoleculeRefusal> {
    let auth = credential.key(Scope::Operate)?;
    let (tenant, caller) = (&auth.tenant, &**auth.caller());
    let external = body.external.unwrap_or_default();
    let workspace = engine.workspaces().create_workspace(tenant, body.understood()?, caller).await?;
    let mut created = CreatedWorkspace::of(&workspace);
    if external {
        created.external = Some(true);
        if workspace.url.is_none() {
            // Somebody runs it elsewhere: this is all that it needs to know.
            let token = engine.workspaces().new_workspace_token(tenant, &workspace.id, caller).await?;
            created.status = "awaiting_agent";
            created.connection = Some(WorkspaceConnection::new(&workspace, &platform_url(&headers), token));
        }
    }
    Ok((StatusCode::CREATED, Json(created)))
}

fn platform_url(headers: &HeaderMap) -> String {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    format!("http://{}", text(header::HOST).unwrap_or("localhost"))
}

/// Lists the workspaces; for a workspace those that it may talk to.
#[utoipa::path(get, path = "/workspaces", tag = "molecule", responses((status = 200, body = [Workspace])))]
pub async fn list(
    State(engine): State<Engine>,
    credential: Credential,
) -> Result<Json<Vec<Workspace>>, MoleculeRefusal> {
    let own = credential.workspace_or_key(Scope::Read)?;
    let mut views = engine.workspaces().workspaces_of(credential.tenant(Scope::Read)?);
    views.retain(|view| own.is_none_or(|own| engine.workspaces().may_talk(own, &view.workspace)));
    Ok(Json(views.iter().map(Workspace::of).collect()))
}

/// Shows a workspace.
#[utoipa::path(get, path = "/workspaces/{id}", tag = "molecule", params(("id" = String, Path)), responses(
    (status = 200, body = PublicWorkspace), (status = 301, body = MovedWorkspace, description = "It was removed, and this one took its place", headers(("Location" = String))), (status = 404, description = "No such workspace"),
    (status = 410, description = "It was removed; `last_event` is what happened to it last")))]
pub async fn get(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
) -> Result<Json<PublicWorkspace>, MoleculeRefusal> {
    let asked = credential.sees(&engine, &workspace_id(&id)?)?;
    let found = retired::looked_up(&engine, &asked, "/workspaces").await?;
    Ok(Json(PublicWorkspace::of(&engine.workspaces().view_of(found))))
}

/// Changes a workspace. What is left out stays.
#[utoipa::path(patch, path = "/workspaces/{id}", tag = "molecule", params(("id" = String, Path)), request_body = PatchBody, responses(
    (status = 200, body = UpdatedWorkspace), (status = 404, description = "No such workspace"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn patch(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Posted(body): Posted<PatchBody>,
) -> Result<Json<UpdatedWorkspace>, MoleculeRefusal> {
    let workspace = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Operate)?;
    // A workspace that could choose its parent could choose whom it may talk to.
    if credential.workspace_or_key(Scope::Operate)?.is_some() && body.moves() {
        return Err(MoleculeRefusal::forbidden("a workspace may not change its own parent or tier"));
    }
    let needs_restart = body.runtime.is_some() && body.runtime != workspace.runtime;
    engine
        .workspaces()
        .patch_workspace(&workspace.tenant, &workspace.id, body.understood()?, credential.identity())
        .await?;
    Ok(Json(UpdatedWorkspace::new(needs_restart)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RemoveQuery {
    /// Its children may go with it.
    confirm: Option<bool>,
    /// Nothing of it is kept.
    purge: Option<bool>,
    /// The workspace that takes its place.
    forwarded_to: Option<String>,
}

#[derive(Deserialize, Default, ToSchema)]
#[schema(as = RemoveWorkspace)]
pub struct RemoveBody {
    /// The workspace that takes its place.
    forwarded_to: Option<String>,
}

/// Retires a workspace and its children.
#[utoipa::path(delete, path = "/workspaces/{id}", tag = "molecule", params(("id" = String, Path), RemoveQuery), request_body = Option<RemoveBody>, responses(
    (status = 200, body = RemovedWorkspace), (status = 404, description = "No such workspace"), (status = 409, body = Unconfirmed, description = "It has children, and `confirm` is not given"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn remove(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Query(query): Query<RemoveQuery>,
    MaybePosted(body): MaybePosted<RemoveBody>,
) -> Result<Response, MoleculeRefusal> {
    let id = workspace_id(&id)?;
    let auth = credential.key(Scope::Operate)?;
    let (tenant, caller) = (&auth.tenant, &**auth.caller());
    let asked = engine.workspaces().workspace(tenant, &id).ok_or_else(MoleculeRefusal::not_found)?;
    let forwarded_to = query.forwarded_to.or(body.forwarded_to);
    let forwarded_to = forwarded_to.as_deref().map(|to| uuid(to).ok_or_else(bad_forward)).transpose()?;
    let purge = query.purge.unwrap_or_default();
    let mut cascade = 0;
    if !(purge && asked.is_removed()) {
        let children = engine.workspaces().children_of(&asked);
        if !children.is_empty() && !query.confirm.unwrap_or_default() {
            let unconfirmed = Unconfirmed::of(children.iter().map(|child| &**child));
            return Ok((StatusCode::CONFLICT, Json(unconfirmed)).into_response());
        }
        retired::spoken_to(&engine, &asked)?;
        cascade = engine.workspaces().remove_workspace(tenant, &id, forwarded_to, caller).await?.cascade;
    }
    let mut status = "removed";
    if purge {
        engine.workspaces().purge_workspace(tenant, &asked.id, caller).await?;
        status = "purged";
    }
    Ok(Json(RemovedWorkspace { status, cascade_deleted: cascade }).into_response())
}

fn bad_forward() -> MoleculeRefusal {
    MoleculeRefusal::bad("forwarded_to must be a valid UUID").with("field", "forwarded_to")
}

/// Says how a workspace stands.
#[utoipa::path(get, path = "/workspaces/{id}/state", tag = "molecule", params(("id" = String, Path)), responses((status = 200, body = WorkspaceState), (status = 404, body = NoWorkspace, description = "There is none, or no more")))]
pub async fn state(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
) -> Result<Response, MoleculeRefusal> {
    let id = workspace_id(&id)?;
    credential.workspace_or_key(Scope::Read)?;
    let gone = |status| (StatusCode::NOT_FOUND, Json(NoWorkspace::new(&id, status))).into_response();
    Ok(match credential.sees(&engine, &id) {
        Ok(found) if found.is_removed() => gone(Some(found.status.as_str())),
        Ok(found) => {
            let (workspace_id, status) = (id.to_string(), found.status.as_str());
            Json(WorkspaceState { workspace_id, status, paused: false, deleted: false }).into_response()
        }
        Err(MoleculeRefusal::Ours { status: StatusCode::NOT_FOUND, .. }) => gone(None),
        Err(refused) => return Err(refused),
    })
}

/// Gives a workspace that lost its token another one. Only a key may.
#[utoipa::path(post, path = "/workspaces/{id}/tokens", tag = "molecule", params(("id" = String, Path)), responses((status = 201, body = WorkspaceToken), (status = 404, description = "No such workspace"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn new_token(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<WorkspaceToken>), MoleculeRefusal> {
    let id = workspace_id(&id)?;
    let auth = credential.key(Scope::Operate)?;
    let token = engine.workspaces().new_workspace_token(&auth.tenant, &id, &**auth.caller()).await?;
    Ok((StatusCode::CREATED, Json(WorkspaceToken { workspace_id: id.to_string(), auth_token: token })))
}
