//! `POST /openorca/interventions/resolve`: a person decides about a job that waits for approval.

use crate::types::openorca::{ResolveIntervention, ResolvedIntervention};
use crate::voicegateway::{Detail, Principal};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use reveille_core::approval::Answer;
use reveille_core::id::JobId;
use reveille_core::job::State as JobState;
use reveille_engine::Engine;
use reveille_roster::Scope;
use serde_json::Value;

/// Decides about a job that waits for a person.
///
/// Another tenant's intervention does not exist.
#[utoipa::path(post, path = "/openorca/interventions/resolve", tag = "openorca", request_body = ResolveIntervention, responses(
    (status = 200, body = ResolvedIntervention), (status = 403, description = "The caller's own job, or the key may not do this"),
    (status = 404, description = "No such intervention"), (status = 409, description = "It was decided before")))]
pub async fn resolve(
    State(engine): State<Engine>,
    principal: Principal,
    body: Bytes,
) -> Result<Json<ResolvedIntervention>, Detail> {
    principal.needs(Scope::Approve)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = body["interventionId"].as_str().filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| Detail::bad_request("interventionId is required"))?;
    let action = match &body["action"] {
        Value::Null => "later",
        Value::String(action) if matches!(action.as_str(), "approve" | "deny" | "later") => action,
        _ => return Err(Detail::bad_request("action must be approve, deny, or later")),
    };
    let unknown = || Detail::not_found("intervention");
    let id = JobId::parse(id).map_err(|_| unknown())?;
    let job = engine.jobs().job(&id).await?.filter(|job| principal.caller.sees(&job.request.tenant));
    let job = job.ok_or_else(unknown)?;
    let caller = &principal.caller;
    let answer = Answer { by: caller.name.clone(), key: Some(caller.key.clone()), ..Answer::default() };
    match action {
        "approve" => drop(engine.jobs().approve(&id, answer).await?),
        "deny" => drop(engine.jobs().reject(&id, answer).await?),
        _ if job.state() == JobState::ApprovalRequired => {
            return Ok(Json(ResolvedIntervention { status: "later" }));
        }
        _ => return Err(Detail::new(StatusCode::CONFLICT, "The intervention has been resolved already")),
    }
    Ok(Json(ResolvedIntervention { status: "resolved" }))
}
