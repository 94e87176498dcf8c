//! Workspaces give each other work.

use super::credential::Credential;
use super::posted::{Posted, uuid, workspace_id};
use super::refusal::MoleculeRefusal;
use crate::trace::Traced;
use crate::types::molecule::delegation::{
    Delegate, Delegation, DelegationOutcome, DelegationReceipt, RecordDelegation, RecordedDelegation,
};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::presence::delegation::DelegationStatus;
use reveille_engine::Engine;
use reveille_roster::Scope;

/// Gives another workspace a task.
#[utoipa::path(post, path = "/workspaces/{id}/delegate", tag = "molecule", request_body = Delegate, params(
    ("id" = String, Path), ("traceparent" = Option<String>, Header, description = "The caller's place in its trace (W3C Trace Context); a bad one is ignored"),
    ("tracestate" = Option<String>, Header, description = "What goes along with it, at most 512 characters")), responses(
    (status = 202, body = DelegationReceipt), (status = 200, body = DelegationReceipt, description = "There was one with this key"),
    (status = 404, description = "No such workspace"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead"), (status = 429, description = "Throttled, or too many live jobs")))]
pub async fn delegate(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Traced(trace): Traced,
    Posted(body): Posted<Delegate>,
) -> Result<(StatusCode, Json<DelegationReceipt>), MoleculeRefusal> {
    let source = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Submit)?;
    let body = body.understood()?;
    let target = target(&body.target_id)?;
    let key = body.idempotency_key.as_deref();
    let by = credential.key_id();
    let taken = engine.delegations().delegate(&source, by, &target, &body.task, key, trace).await?;
    let status = if taken.is_repeat { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(DelegationReceipt::of(&taken))))
}

fn target(text: &str) -> Result<WorkspaceId, MoleculeRefusal> {
    uuid(text)
        .ok_or_else(|| MoleculeRefusal::bad("target_id must be a valid UUID").with("field", "target_id"))
}

/// Lists the tasks that a workspace gave, newest first.
#[utoipa::path(get, operation_id = "delegations", path = "/workspaces/{id}/delegations", tag = "molecule", params(("id" = String, Path)), responses(
    (status = 200, body = [Delegation]), (status = 404, description = "No such workspace"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn list(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
) -> Result<Json<Vec<Delegation>>, MoleculeRefusal> {
    let source = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Read)?;
    let rows = engine.delegations().delegations_of(&source.id).await?;
    Ok(Json(rows.iter().map(Delegation::of).collect()))
}

/// Writes down a task that the agents see to by themselves.
#[utoipa::path(post, operation_id = "record_delegation", path = "/workspaces/{id}/delegations/record", tag = "molecule", params(("id" = String, Path)), request_body = RecordDelegation, responses(
    (status = 202, body = RecordedDelegation), (status = 404, description = "No such workspace"), (status = 409, description = "There is another one of this id"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn record(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
    Posted(body): Posted<RecordDelegation>,
) -> Result<(StatusCode, Json<RecordedDelegation>), MoleculeRefusal> {
    let source = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Operate)?;
    let (target, delegation) = (target(&body.target_id)?, delegation_id(&body.delegation_id)?);
    engine.delegations().record_delegation(&source, &target, &delegation, &body.task).await?;
    let answer = RecordedDelegation { delegation_id: delegation.to_string(), status: "recorded" };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// Says how a task ended.
#[utoipa::path(post, operation_id = "update_delegation", path = "/workspaces/{id}/delegations/{delegation}/update", tag = "molecule", params(("id" = String, Path), ("delegation" = String, Path)), request_body = DelegationOutcome, responses(
    (status = 200, body = RecordedDelegation), (status = 404, description = "No such workspace or delegation"), (status = 409, description = "It has ended"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead")))]
pub async fn update(
    State(engine): State<Engine>,
    credential: Credential,
    Path((id, delegation)): Path<(String, String)>,
    Posted(body): Posted<DelegationOutcome>,
) -> Result<Json<RecordedDelegation>, MoleculeRefusal> {
    let speaker = credential.speaks_for(&engine, &workspace_id(&id)?, Scope::Operate)?;
    let delegation = delegation_id(&delegation)?;
    let outcome = body.understood()?;
    let status = if outcome.is_ok() { DelegationStatus::Completed } else { DelegationStatus::Failed };
    engine.delegations().report_delegation(&speaker, &delegation, outcome).await?;
    Ok(Json(RecordedDelegation { delegation_id: delegation.to_string(), status: status.as_str() }))
}

fn delegation_id(text: &str) -> Result<JobId, MoleculeRefusal> {
    JobId::parse(text)
        .map_err(|_| MoleculeRefusal::bad("invalid delegation ID").with("field", "delegation_id"))
}
