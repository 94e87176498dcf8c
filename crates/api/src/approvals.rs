//! Approvals: what waits for a person, what it would do, and the decision.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::OptionalBody;
use crate::convert;
use crate::convert::text::cursor;
use crate::jobs::{inline, visible};
use axum::Json;
use axum::extract::{Path, Query, State};
use bytes::Bytes;
use reveille_api_types::approval::{
    Approval, ApprovalContext, ApprovalPage, ApprovalQuery, Approved, Input, PriorApproval, Rejected,
    Resolution,
};
use reveille_core::approval::{self, Answer};
use reveille_core::job::{self, Job};
use reveille_engine::{ApprovalOutcome, Engine, Named};
use reveille_roster::Scope;
use reveille_store::{JobQuery, StoreError};

/// Earlier approvals of the same kind that are shown, and how many are looked through for them.
const PRIOR_MAX: usize = 10;
const PRIOR_READ_MAX: usize = 100;

/// Lists the jobs that wait for a person, newest first.
#[utoipa::path(get, path = "/api/v1/approvals", tag = "approvals", params(ApprovalQuery), responses((status = 200, body = ApprovalPage)))]
pub async fn list(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<ApprovalQuery>,
) -> Result<Json<ApprovalPage>, ApiError> {
    auth.needs(Scope::Read)?;
    let asked = convert::include_resolved(&query)?;
    let query = JobQuery {
        tenant: auth.list_of(),
        state: (!asked).then_some(job::State::ApprovalRequired),
        asked,
        cursor: cursor(query.cursor.as_deref())?,
        limit: convert::approvals_limit(&query)?,
        ..JobQuery::default()
    };
    let page = engine.jobs().list(&query).await?;
    Ok(Json(ApprovalPage {
        items: page.items.iter().filter_map(|job| shown(&engine, &auth, job)).collect(),
        next_cursor: page.next.map(|next| next.to_string()),
    }))
}

/// The approval of a job, as this caller may act on it; nothing if nobody was ever asked.
fn shown(engine: &Engine, auth: &Auth, job: &Job) -> Option<Approval> {
    let is_own = engine.jobs().is_from_submitter(&job.request, &answer(auth));
    convert::approval(job, approval::status(job)?, is_own)
}

pub fn answer(auth: &Auth) -> Answer {
    let caller = auth.caller();
    Answer { by: caller.name.clone(), key: Some(caller.key.clone()), ..Answer::default() }
}

/// Shows what a person needs to know before deciding about a job.
#[utoipa::path(get, path = "/api/v1/approvals/{job_id}/context", tag = "approvals", params(("job_id" = String, Path)), responses((status = 200, body = ApprovalContext), (status = 404, description = "No such approval")))]
pub async fn context(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<Json<ApprovalContext>, ApiError> {
    auth.needs(Scope::Read)?;
    let job = visible(&engine, &auth, &id).await?;
    let approval = shown(&engine, &auth, &job).ok_or_else(|| ApiError::not_found("approval"))?;
    let in_force = engine.rules().policy.snapshot().to_owned();
    Ok(Json(ApprovalContext {
        blast_radius: convert::blast_radius(&job.request, &engine.jobs().eligible_workers(&job.request)),
        prior_approvals: prior(&engine, &job).await?,
        rollback_hint: convert::rollback_hint(&job.request),
        policy_snapshot_summary: convert::snapshot_summary(&approval, in_force),
        time_remaining_ms: engine.jobs().time_to_decide(&job),
        constraints: approval.constraints.clone(),
        input: input(&engine, &job).await?,
        approval,
    }))
}

/// What was decided about others of the same topic and tenant, newest first.
async fn prior(engine: &Engine, job: &Job) -> Result<Vec<PriorApproval>, StoreError> {
    let query = JobQuery {
        tenant: Some(job.request.tenant.clone()),
        topic: Some(job.request.topic.clone()),
        asked: true,
        limit: PRIOR_READ_MAX,
        ..JobQuery::default()
    };
    let others = engine.jobs().list(&query).await?.items.into_iter().filter(|other| other.id() != job.id());
    Ok(others.filter_map(|other| convert::prior_approval(&other)).take(PRIOR_MAX).collect())
}

/// The input, if it is the job's and still there; as long as it is not too long, whole.
async fn input(engine: &Engine, job: &Job) -> Result<Input, StoreError> {
    let pointer = job.request.context_ptr.clone();
    let read = engine.jobs().read(job, Named::Input(&pointer)).await?;
    let (len, value) = (read.bytes().map(Bytes::len), inline(&read).into());
    Ok(Input { pointer, len, value, availability: read.as_str().to_owned() })
}

/// Lets a job run that waits for a person.
#[utoipa::path(post, path = "/api/v1/approvals/{job_id}/approve", tag = "approvals", params(("job_id" = String, Path)), request_body = Option<Resolution>, responses(
    (status = 200, body = Approved), (status = 403, description = "self_approval_denied: the caller asked for the job"), (status = 404, description = "No such job"),
    (status = 409, description = "approval_already_resolved, approval_stale_snapshot, approval_stale_request or approval_not_actionable")))]
pub async fn approve(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<Resolution>,
) -> Result<Json<Approved>, ApiError> {
    auth.needs(Scope::Approve)?;
    let job = visible(&engine, &auth, &id).await?;
    Ok(Json(match engine.jobs().approve(job.id(), convert::approval_answer(body, answer(&auth))?).await? {
        ApprovalOutcome::Now(job) => convert::approved_now(&job),
        ApprovalOutcome::Before(job) => convert::approved_before(&job),
    }))
}

/// Refuses a job that waits for a person.
#[utoipa::path(post, path = "/api/v1/approvals/{job_id}/reject", tag = "approvals", params(("job_id" = String, Path)), request_body = Option<Resolution>, responses(
    (status = 200, body = Rejected), (status = 404, description = "No such job"),
    (status = 409, description = "approval_already_resolved, approval_stale_snapshot, approval_stale_request or approval_not_actionable")))]
pub async fn reject(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<Resolution>,
) -> Result<Json<Rejected>, ApiError> {
    auth.needs(Scope::Approve)?;
    let job = visible(&engine, &auth, &id).await?;
    Ok(Json(match engine.jobs().reject(job.id(), convert::approval_answer(body, answer(&auth))?).await? {
        ApprovalOutcome::Now(job) => convert::rejected_now(&job),
        ApprovalOutcome::Before(job) => convert::rejected_before(&job),
    }))
}
