//! Jobs: ask for one, look at them, change your mind, and ask why.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::Body;
use crate::convert;
use crate::convert::text::{cursor, duration, limit};
use crate::trace::{Traced, with_trace};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use reveille_api_types::job::{Cancelled, Explained, JobDetail, JobPage, ListQuery, WaitQuery};
use reveille_api_types::submit::{Remediate, SubmitReply, SubmitRequest};
use reveille_core::id::{JobId, TenantId, Topic};
use reveille_core::job::{self, Job};
use reveille_core::time::Millis;
use reveille_core::trace::TraceContext;
use reveille_engine::{BlobRead, Engine, Named, Submission, Submitted, Submitter};
use reveille_roster::Scope;
use reveille_store::JobQuery;
use std::sync::Arc;

/// Results and contexts up to this size are part of a job's answer; larger ones are pointed at.
pub const INLINE_LEN_MAX: usize = 256 * 1024;
/// Jobs that are looked through for one page of a list.
pub const LOOK_THROUGH: usize = 10_000;

/// Submits a job.
#[utoipa::path(post, path = "/api/v1/jobs", tag = "jobs", request_body = SubmitRequest, params(
    ("traceparent" = Option<String>, Header, description = "The caller's place in its trace (W3C Trace Context); a bad one is ignored"),
    ("tracestate" = Option<String>, Header, description = "What goes along with it, at most 512 characters")), responses(
    (status = 200, body = SubmitReply, headers(("traceparent" = String, description = "The job's place in that trace, or in one of its own"))), (status = 400, description = "A field is wrong; it is named"),
    (status = 403, description = "Policy denies it, or the key may not do this"),
    (status = 429, description = "Throttled, too many live jobs of the tenant or of all, or the key calls too often"), (status = 503, description = "The store cannot take it now; ask again with the same idempotency key")))]
pub async fn submit(
    State(engine): State<Engine>,
    auth: Auth,
    Traced(trace): Traced,
    Body(body): Body<SubmitRequest>,
) -> Result<Response, ApiError> {
    let job = submit_job(&engine, &auth, trace, body).await?;
    let answer = accepted(&job).map(|()| Json(convert::submit_reply(&job)));
    Ok(with_trace(answer.into_response(), &engine.jobs().trace_of(&job.request)))
}

/// Submits a job for a caller that listens.
pub async fn submit_job(
    engine: &Engine,
    auth: &Auth,
    trace: Option<TraceContext>,
    body: SubmitRequest,
) -> Result<Arc<Job>, ApiError> {
    auth.needs(Scope::Submit)?;
    let (mut request, context) =
        convert::job_request(body, engine.jobs().new_id(), &auth.tenant, auth.name())?;
    request.submitted_by = Some(auth.caller().key.clone());
    request.follow(trace);
    let submission = Submission { request, context: Some(context), submitter: Submitter::Listens };
    match engine.jobs().submit(submission).await? {
        Submitted::New(job) | Submitted::Existing(job) => Ok(job),
        Submitted::Throttled(verdict) => {
            Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "throttled", verdict.reason)
                .with("rule_id", verdict.rule_id))
        }
    }
}

/// To whoever listens, a job that policy denies is an error.
pub fn accepted(job: &Job) -> Result<(), ApiError> {
    if job.state() != job::State::Denied {
        return Ok(());
    }
    let reason = job.ending().map_or("", |ending| ending.words.as_str());
    let denied = ApiError::new(StatusCode::FORBIDDEN, "safety_denied", reason);
    Err(denied.with("job_id", job.id().as_str()).with("trace_id", job.request.trace_id.as_str()))
}

/// Lists jobs, newest first.
#[utoipa::path(get, path = "/api/v1/jobs", tag = "jobs", params(ListQuery), responses((status = 200, body = JobPage)))]
pub async fn list(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<ListQuery>,
) -> Result<Json<JobPage>, ApiError> {
    auth.needs(Scope::Read)?;
    let page = engine.jobs().list(&understood(query, &auth)?).await?;
    Ok(Json(JobPage {
        items: page.items.iter().map(|job| convert::job_record(job)).collect(),
        next_cursor: page.next.map(|next| next.to_string()),
    }))
}

fn understood(query: ListQuery, auth: &Auth) -> Result<JobQuery, ApiError> {
    let tenant = match query.tenant.as_deref() {
        Some(name) => Some(TenantId::parse(name)?),
        None => auth.list_of(),
    };
    if tenant.as_ref().is_some_and(|tenant| !auth.sees(tenant)) {
        return Err(ApiError::forbidden("tenant: it is not this key's tenant"));
    }
    let micros = |value: Option<i64>| value.map(|micros| Millis(micros / 1000));
    Ok(JobQuery {
        tenant,
        state: match query.state.as_deref() {
            None => None,
            Some(word) => Some(
                job::State::parse(word)
                    .ok_or_else(|| ApiError::field("state", format!("{word:?} is not a state")))?,
            ),
        },
        topic: query.topic.as_deref().map(Topic::parse).transpose()?,
        team: query.team,
        trace_id: query.trace_id,
        updated_after: micros(query.updated_after),
        updated_before: micros(query.updated_before),
        asked: false,
        cursor: cursor(query.cursor.as_deref())?,
        limit: limit(query.limit.as_deref())?,
        look_through: Some(LOOK_THROUGH),
    })
}

/// Shows a job, with its result once there is one.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", tag = "jobs", params(("id" = String, Path), WaitQuery), responses((status = 200, body = JobDetail), (status = 404, description = "No such job")))]
pub async fn get(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    Query(query): Query<WaitQuery>,
) -> Result<Json<JobDetail>, ApiError> {
    auth.needs(Scope::Read)?;
    let mut job = visible(&engine, &auth, &id).await?;
    if let Some(patience) = duration("wait", query.wait.as_deref())?
        && !job.state().is_terminal()
    {
        job = engine
            .jobs()
            .wait_for_end(job.id(), patience)
            .await?
            .ok_or_else(|| ApiError::not_found("job"))?;
    }
    let context = engine.jobs().read(&job, Named::Input(&job.request.context_ptr)).await?;
    let result = engine.jobs().read_result(&job).await?;
    let trace = engine.jobs().trace_of(&job.request).job();
    Ok(Json(convert::job_detail(&job, &trace, &context, &result)))
}

/// A blob as JSON if it is there, small enough, and JSON; as text if it is only text.
pub fn inline(read: &BlobRead) -> Option<Box<serde_json::value::RawValue>> {
    read.bytes().filter(|bytes| bytes.len() <= INLINE_LEN_MAX).and_then(|bytes| as_json(bytes))
}

fn as_json(bytes: &[u8]) -> Option<Box<serde_json::value::RawValue>> {
    let text = String::from_utf8(bytes.to_vec()).ok()?;
    let raw = serde_json::value::RawValue::from_string(text.clone())
        .or_else(|_| serde_json::value::to_raw_value(&text));
    raw.ok()
}

/// Cancels a job. One that has ended stays as it is.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/cancel", tag = "jobs", params(("id" = String, Path)), responses((status = 200, body = Cancelled), (status = 404, description = "No such job"), (status = 409, description = "It changes just now; ask again")))]
pub async fn cancel(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<Json<Cancelled>, ApiError> {
    auth.needs_one_of(&[Scope::Submit, Scope::Operate])?;
    let job = visible(&engine, &auth, &id).await?;
    match engine.jobs().cancel(job.id(), &**auth.caller(), "").await {
        Ok(job) => {
            Ok(Json(Cancelled { id: job.id().to_string(), state: job.state().to_string(), reason: None }))
        }
        Err(error) if reveille_engine::Jobs::has_ended(&error) => {
            let job = visible(&engine, &auth, &id).await?;
            let reason = Some("the job has already ended".to_owned());
            Ok(Json(Cancelled { id: job.id().to_string(), state: job.state().to_string(), reason }))
        }
        Err(error) => Err(error.into()),
    }
}

/// Submits the job again in one of the ways that the verdict offered (`remediations` in its decisions).
#[utoipa::path(post, path = "/api/v1/jobs/{id}/remediate", tag = "jobs", params(("id" = String, Path)), request_body = Remediate, responses(
    (status = 200, body = SubmitReply), (status = 400, description = "The verdict did not offer it"), (status = 403, description = "Policy denies that too"),
    (status = 404, description = "No such job"), (status = 409, description = "The job was not stopped by policy"), (status = 410, description = "The input has expired")))]
pub async fn remediate(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    Body(body): Body<Remediate>,
) -> Result<Response, ApiError> {
    auth.needs(Scope::Submit)?;
    let job = visible(&engine, &auth, &id).await?;
    let job = engine.jobs().remediate(&job, &body.remediation_id, auth.caller()).await?;
    accepted(&job)?;
    Ok(Json(convert::submit_reply(&job)).into_response())
}

/// Says why a job is where it is, and what it waits for.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/explain", tag = "jobs", params(("id" = String, Path)), responses((status = 200, body = Explained), (status = 404, description = "No such job")))]
pub async fn explain(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<Json<Explained>, ApiError> {
    auth.needs(Scope::Read)?;
    let job = visible(&engine, &auth, &id).await?;
    Ok(Json(convert::explained(&job, engine.jobs().explain(&job))))
}

/// The job, if there is one that this caller may see. Another tenant's job does not exist for it.
pub async fn visible(engine: &Engine, auth: &Auth, id: &str) -> Result<Arc<Job>, ApiError> {
    let found = match JobId::parse(id) {
        Ok(id) => engine.jobs().job(&id).await?,
        Err(_) => None,
    };
    found.filter(|job| auth.sees(&job.request.tenant)).ok_or_else(|| ApiError::not_found("job"))
}
