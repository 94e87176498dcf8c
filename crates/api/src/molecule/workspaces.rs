//! Workspaces are set up, looked at, changed and retired.

use super::credential::Credential;
use super::posted::{MaybePosted, Posted, uuid, workspace_id};
use super::refused::Refused;
use super::retired;
use crate::types::molecule::setup::{Connection, Create, Created, PatchBody};
use crate::types::molecule::workspace::{PublicWorkspace, Workspace};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use reveille_core::id::TenantId;
use reveille_core::presence::workspace::Workspace as Record;
use reveille_engine::Engine;
use reveille_roster::Scope;
use serde::Deserialize;
use serde_json::{Value, json};

pub async fn create(
    State(engine): State<Engine>,
    credential: Credential,
    headers: HeaderMap,
    Posted(body): Posted<Create>,
) -> Result<(StatusCode, Json<Created>), Refused> {
    let tenant = &credential.key(Scope::Write)?.tenant;
    let external = body.external.unwrap_or_default();
    let workspace = engine.create_workspace(tenant, body.understood()?).await?;
    let mut created = Created::of(&workspace);
    if external {
        created.external = Some(true);
        if workspace.url.is_none() {
            // Somebody runs it elsewhere: this is all that it needs to know.
            let token = engine.new_workspace_token(tenant, &workspace.id).await?;
            created.status = "awaiting_agent";
            created.connection = Some(Connection::new(&workspace, &platform_url(&headers), token));
        }
    }
    Ok((StatusCode::CREATED, Json(created)))
}

fn platform_url(headers: &HeaderMap) -> String {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    format!("http://{}", text(header::HOST).unwrap_or("localhost"))
}

pub async fn list(
    State(engine): State<Engine>,
    credential: Credential,
) -> Result<Json<Vec<Workspace>>, Refused> {
    let own = credential.workspace_or_key(Scope::Read)?;
    let mut views = engine.workspaces_of(credential.tenant(Scope::Read)?);
    views.retain(|view| own.is_none_or(|own| engine.may_talk(own, &view.workspace)));
    Ok(Json(views.iter().map(Workspace::of).collect()))
}

pub async fn get(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
) -> Result<Json<PublicWorkspace>, Refused> {
    let asked = credential.sees(&engine, &workspace_id(&id)?)?;
    let found = retired::looked_up(&engine, &asked, "/workspaces").await?;
    Ok(Json(PublicWorkspace::of(&engine.view_of(found))))
}

pub async fn patch(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Posted(body): Posted<PatchBody>,
) -> Result<Json<Value>, Refused> {
    let workspace = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Write)?;
    // A workspace that could choose its parent could choose whom it may talk to.
    if credential.workspace_or_key(Scope::Write)?.is_some() && body.moves() {
        return Err(Refused::forbidden("a workspace may not change its own parent or tier"));
    }
    let needs_restart = body.runtime.is_some() && body.runtime != workspace.runtime;
    engine.patch_workspace(&workspace.tenant, &workspace.id, body.understood()?).await?;
    let mut answer = json!({ "status": "updated" });
    if needs_restart {
        answer["needs_restart"] = true.into();
    }
    Ok(Json(answer))
}

#[derive(Deserialize)]
pub struct RemoveQuery {
    confirm: Option<bool>,
    purge: Option<bool>,
    forwarded_to: Option<String>,
}

#[derive(Deserialize, Default)]
pub struct RemoveBody {
    forwarded_to: Option<String>,
}

pub async fn remove(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Query(query): Query<RemoveQuery>,
    MaybePosted(body): MaybePosted<RemoveBody>,
) -> Result<Response, Refused> {
    let id = workspace_id(&id)?;
    let tenant = &credential.key(Scope::Write)?.tenant;
    let asked = engine.workspace(tenant, &id).ok_or_else(Refused::not_found)?;
    let forwarded_to = query.forwarded_to.or(body.forwarded_to);
    let forwarded_to = forwarded_to.as_deref().map(|to| uuid(to).ok_or_else(bad_forward)).transpose()?;
    let purge = query.purge.unwrap_or_default();
    let mut cascade = 0;
    if !(purge && asked.is_removed()) {
        let children = engine.children_of(&asked);
        if !children.is_empty() && !query.confirm.unwrap_or_default() {
            return Ok(unconfirmed(&children.iter().map(|child| &**child).collect::<Vec<_>>()));
        }
        retired::spoken_to(&engine, &asked)?;
        cascade = engine.remove_workspace(tenant, &id, forwarded_to).await?.cascade;
    }
    let status = if purge { purged(&engine, tenant, &asked).await? } else { "removed" };
    Ok(Json(json!({ "status": status, "cascade_deleted": cascade })).into_response())
}

async fn purged(engine: &Engine, tenant: &TenantId, asked: &Record) -> Result<&'static str, Refused> {
    engine.purge_workspace(tenant, &asked.id).await?;
    Ok("purged")
}

fn bad_forward() -> Refused {
    Refused::bad("forwarded_to must be a valid UUID").with("field", "forwarded_to")
}

fn unconfirmed(children: &[&Record]) -> Response {
    let listed: Vec<Value> =
        children.iter().map(|child| json!({ "id": child.id, "name": child.name })).collect();
    let body = json!({
        "error": "confirmation required",
        "code": "confirmation_required",
        "status": "confirmation_required",
        "message": "its children are removed with it; repeat with ?confirm=true",
        "children_count": listed.len(),
        "children": listed,
    });
    (StatusCode::CONFLICT, Json(body)).into_response()
}

pub async fn state(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    let id = workspace_id(&id)?;
    credential.workspace_or_key(Scope::Read)?;
    let gone = |status: Option<&str>| {
        let mut body = json!({ "error": "workspace not found", "workspace_id": id, "deleted": true });
        if let Some(status) = status {
            body["status"] = status.into();
        }
        (StatusCode::NOT_FOUND, Json(body)).into_response()
    };
    Ok(match credential.sees(&engine, &id) {
        Ok(found) if found.is_removed() => gone(Some(found.status.as_str())),
        Ok(found) => Json(json!({
            "workspace_id": id, "status": found.status.as_str(), "paused": false, "deleted": false,
        }))
        .into_response(),
        Err(Refused::Ours { status: StatusCode::NOT_FOUND, .. }) => gone(None),
        Err(refused) => return Err(refused),
    })
}

/// A workspace that lost its token gets another one from whoever has a key.
pub async fn new_token(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let id = workspace_id(&id)?;
    let tenant = &credential.key(Scope::Write)?.tenant;
    let token = engine.new_workspace_token(tenant, &id).await?;
    Ok((StatusCode::CREATED, Json(json!({ "workspace_id": id, "auth_token": token }))))
}
