//! Workspaces talk: to each other (A2A), and to whoever watches.

use super::credential::Credential;
use super::discovery::caller;
use super::posted::{Posted, workspace_id};
use super::refusal::MoleculeRefusal;
use super::retired;
use crate::types::molecule::answer::Done;
use crate::types::molecule::talk::{Activity, ActivityBody, Notify};
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use reveille_a2a::{A2aError, A2aReply};
use reveille_core::presence::workspace::{Workspace, WorkspaceStatus};
use reveille_engine::Engine;
use reveille_roster::Scope;
use std::sync::Arc;

/// Says something to whoever watches.
#[utoipa::path(post, path = "/workspaces/{id}/notify", tag = "molecule", params(("id" = String, Path)), request_body = Notify, responses((status = 200, body = Done), (status = 404, description = "No such workspace"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn notify(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Posted(body): Posted<Notify>,
) -> Result<Json<Done>, MoleculeRefusal> {
    let workspace = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Operate)?;
    engine.workspaces().notify(&workspace, body.payload(&workspace)?);
    Ok(Json(Done { status: "sent" }))
}

/// Tells whoever watches what a workspace did.
#[utoipa::path(post, path = "/workspaces/{id}/activity", tag = "molecule", params(("id" = String, Path)), request_body = ActivityBody, responses((status = 200, body = Done), (status = 404, description = "No such workspace"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn activity(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Posted(body): Posted<Activity>,
) -> Result<Json<Done>, MoleculeRefusal> {
    let workspace = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Operate)?;
    engine.workspaces().log_activity(&workspace, body.payload(&workspace)?);
    Ok(Json(Done { status: "logged" }))
}

/// Takes a message (A2A) to a workspace and brings its answer back.
#[utoipa::path(post, operation_id = "send", path = "/workspaces/{id}/a2a", tag = "molecule", params(
    ("id" = String, Path), ("X-Workspace-ID" = Option<String>, Header, description = "The workspace in whose name it goes")), request_body = Object, responses(
    (status = 200, body = Value, description = "The agent's own answer, with the agent's own status"), (status = 404, description = "No such workspace"),
    (status = 410, description = "It was removed; `forwarded_to` is where to go instead"), (status = 502, description = "The agent cannot be reached, or answers nonsense"),
    (status = 503, description = "The workspace is not there now"), (status = 504, description = "The agent did not answer in time")))]
pub async fn a2a(
    State(engine): State<Engine>,
    credential: Credential,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, MoleculeRefusal> {
    let from = sender(&engine, &credential, &headers)?;
    let id = workspace_id(&id)?;
    let tenant = credential.tenant(Scope::Submit)?;
    let asked = engine.workspaces().workspace(tenant, &id).ok_or_else(MoleculeRefusal::not_found)?;
    if from.as_ref().is_some_and(|from| !engine.workspaces().may_talk(from, &asked)) {
        return Err(MoleculeRefusal::forbidden("not authorized to reach this workspace"));
    }
    let target = retired::spoken_to(&engine, &asked)?;
    let is_awake = matches!(target.status, WorkspaceStatus::Online | WorkspaceStatus::Degraded);
    if target.url.is_none() || !is_awake {
        let refused = MoleculeRefusal::unavailable("workspace not available");
        return Err(refused.with("status", target.status.as_str()));
    }
    let body = body.map_err(|rejection| unread(&rejection))?;
    let reply = engine.workspaces().pass_on(&target, from.as_ref().map(|from| &from.id), &body).await;
    reply.map_err(|error| undelivered(&error)).and_then(passed_back)
}

/// The workspace in whose name the message goes; nothing for a person at the canvas.
fn sender(
    engine: &Engine,
    credential: &Credential,
    headers: &HeaderMap,
) -> Result<Option<Arc<Workspace>>, MoleculeRefusal> {
    let own = credential.workspace_or_key(Scope::Submit)?;
    match caller(headers)? {
        None => Ok(own.cloned()),
        Some(named) => credential.speaks_for(engine, &named, Scope::Submit).map(Some),
    }
}

fn unread(rejection: &BytesRejection) -> MoleculeRefusal {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            MoleculeRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "request body too large")
        }
        _ => MoleculeRefusal::bad("invalid request body").with("detail", rejection.body_text()),
    }
}

fn undelivered(error: &A2aError) -> MoleculeRefusal {
    let words = error.to_string();
    let bad_gateway = |words: &str| {
        MoleculeRefusal::new(
            StatusCode::BAD_GATEWAY,
            "workspace_unreachable",
            "failed to reach workspace agent",
        )
        .with("detail", words)
    };
    match error {
        A2aError::Refused(_) => MoleculeRefusal::bad("invalid request body").with("detail", words),
        A2aError::TooLarge => bad_gateway(&words),
        A2aError::Unreachable(_) | A2aError::Broken(_) => bad_gateway(&words).retry_after(1),
        A2aError::TimedOut => MoleculeRefusal::new(
            StatusCode::GATEWAY_TIMEOUT,
            "workspace_timeout",
            "workspace agent did not answer",
        ),
    }
}

/// The agent's own answer. Where it would send the caller, nobody has checked, so a redirect is none.
fn passed_back(reply: A2aReply) -> Result<Response, MoleculeRefusal> {
    let status = StatusCode::from_u16(reply.status).ok();
    let status = status.filter(|status| !status.is_redirection() && !status.is_informational());
    let status = status.ok_or_else(|| {
        MoleculeRefusal::new(
            StatusCode::BAD_GATEWAY,
            "workspace_redirects",
            "workspace agent answered a redirect",
        )
    })?;
    Ok((status, [(header::CONTENT_TYPE, "application/json")], Body::from(reply.body)).into_response())
}
