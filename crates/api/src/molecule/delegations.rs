//! Workspaces give each other work.

use super::credential::Credential;
use super::posted::{Posted, uuid, workspace_id};
use super::refused::Refused;
use crate::trace::Traced;
use crate::types::molecule::delegation::{Delegate, Delegated, Delegation, Outcome, Record};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::presence::delegation::Rung;
use reveille_engine::Engine;
use reveille_roster::Scope;
use serde_json::{Value, json};

pub async fn delegate(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Traced(trace): Traced,
    Posted(body): Posted<Delegate>,
) -> Result<(StatusCode, Json<Delegated>), Refused> {
    let source = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Write)?;
    let body = body.understood()?;
    let target = target(&body.target_id)?;
    let key = body.idempotency_key.as_deref();
    let taken = engine.delegate(&source, &target, &body.task, key, trace).await?;
    let status = if taken.is_repeat { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(Delegated::of(&taken))))
}

fn target(text: &str) -> Result<WorkspaceId, Refused> {
    uuid(text).ok_or_else(|| Refused::bad("target_id must be a valid UUID").with("field", "target_id"))
}

pub async fn list(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
) -> Result<Json<Vec<Delegation>>, Refused> {
    let source = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Read)?;
    let rows = engine.delegations_of(&source.id).await?;
    Ok(Json(rows.iter().map(Delegation::of).collect()))
}

pub async fn record(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Posted(body): Posted<Record>,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let source = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Write)?;
    let (target, delegation) = (target(&body.target_id)?, delegation_id(&body.delegation_id)?);
    engine.record_delegation(&source, &target, &delegation, &body.task).await?;
    let answer = json!({ "delegation_id": delegation, "status": "recorded" });
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

pub async fn update(
    State(engine): State<Engine>,
    credential: Credential,
    Path((id, delegation)): Path<(String, String)>,
    Posted(body): Posted<Outcome>,
) -> Result<Json<Value>, Refused> {
    let speaker = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Write)?;
    let delegation = delegation_id(&delegation)?;
    let outcome = body.understood()?;
    let status = if outcome.is_ok() { Rung::Completed } else { Rung::Failed };
    engine.report_delegation(&speaker, &delegation, outcome).await?;
    Ok(Json(json!({ "status": status.as_str(), "delegation_id": delegation })))
}

fn delegation_id(text: &str) -> Result<JobId, Refused> {
    JobId::parse(text).map_err(|_| Refused::bad("invalid delegation ID").with("field", "delegation_id"))
}
