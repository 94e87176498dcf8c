//! Results that output policy holds back: look at what was found, let them out, or throw them away.

use crate::ApiError;
use crate::approvals::answer;
use crate::auth::Auth;
use crate::body::OptionalBody;
use crate::convert;
use crate::convert::text::{cursor, limit};
use crate::jobs::visible;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use reveille_api_types::quarantine::{Decided, Held, HeldPage, HeldQuery, ResolvedReply};
use reveille_core::job::{Job, State as JobState};
use reveille_engine::{DriveError, Engine};
use reveille_roster::Scope;
use reveille_store::JobQuery;
use std::sync::Arc;

/// Characters of a note.
const NOTE_CHARS_MAX: usize = 1_000;

pub fn routes() -> Router<Engine> {
    Router::new()
        .route("/quarantine", get(list))
        .route("/quarantine/{id}", get(show))
        .route("/quarantine/{id}/release", post(release))
        .route("/quarantine/{id}/discard", post(discard))
}

/// Lists results that output policy holds back, newest first.
#[utoipa::path(get, path = "/api/v1/quarantine", tag = "quarantine", params(HeldQuery), responses((status = 200, body = HeldPage)))]
pub async fn list(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<HeldQuery>,
) -> Result<Json<HeldPage>, ApiError> {
    auth.needs(Scope::Read)?;
    let query = JobQuery {
        tenant: auth.list_of(),
        state: Some(JobState::OutputQuarantined),
        cursor: cursor(query.cursor.as_deref())?,
        limit: limit(query.limit.as_deref())?,
        ..JobQuery::default()
    };
    let page = engine.jobs().list(&query).await?;
    let items = page.items.iter().map(|job| convert::held(job)).collect();
    Ok(Json(HeldPage { items, next_cursor: page.next.map(|next| next.to_string()) }))
}

/// Shows a result that is held back, and what was found in it.
#[utoipa::path(get, path = "/api/v1/quarantine/{id}", tag = "quarantine", params(("id" = String, Path)), responses((status = 200, body = Held), (status = 404, description = "No such job"), (status = 409, description = "It is not in quarantine")))]
pub async fn show(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<Json<Held>, ApiError> {
    auth.needs(Scope::Read)?;
    Ok(Json(convert::held(&*held(&engine, &auth, &id).await?)))
}

/// Makes a held result readable. The job is not run again.
#[utoipa::path(post, path = "/api/v1/quarantine/{id}/release", tag = "quarantine", params(("id" = String, Path)), request_body = Option<Decided>, responses((status = 200, body = ResolvedReply), (status = 403, description = "It is the caller's own job"), (status = 404, description = "No such job"), (status = 409, description = "It is not in quarantine")))]
pub async fn release(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<Decided>,
) -> Result<Json<ResolvedReply>, ApiError> {
    auth.needs(Scope::Release)?;
    let job = held(&engine, &auth, &id).await?;
    if engine.jobs().is_from_submitter(&job.request, &answer(&auth)) {
        let words = "nobody releases the result of their own job; somebody else has to";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "self_release_denied", words));
    }
    let done = engine.jobs().release(job.id(), &**auth.caller(), &note(body)?).await;
    resolved(done, "released")
}

/// Throws a held result away for good.
#[utoipa::path(post, path = "/api/v1/quarantine/{id}/discard", tag = "quarantine", params(("id" = String, Path)), request_body = Option<Decided>, responses((status = 200, body = ResolvedReply), (status = 404, description = "No such job"), (status = 409, description = "It is not in quarantine")))]
pub async fn discard(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<Decided>,
) -> Result<Json<ResolvedReply>, ApiError> {
    auth.needs(Scope::Release)?;
    let job = held(&engine, &auth, &id).await?;
    let done = engine.jobs().discard(job.id(), &**auth.caller(), &note(body)?).await;
    resolved(done, "discarded")
}

fn resolved(done: Result<Arc<Job>, DriveError>, resolution: &str) -> Result<Json<ResolvedReply>, ApiError> {
    let job = match done {
        Ok(job) => job,
        Err(DriveError::Refused(_)) => return Err(not_held("somebody has decided about it already")),
        Err(error) => return Err(error.into()),
    };
    Ok(Json(ResolvedReply {
        job_id: job.id().to_string(),
        state: job.state().to_string(),
        resolution: resolution.to_owned(),
    }))
}

fn note(body: Decided) -> Result<String, ApiError> {
    let note = if body.note.is_empty() { body.reason } else { body.note };
    if note.chars().count() > NOTE_CHARS_MAX {
        return Err(ApiError::field("note", format!("has more than {NOTE_CHARS_MAX} characters")));
    }
    Ok(note)
}

async fn held(engine: &Engine, auth: &Auth, id: &str) -> Result<Arc<Job>, ApiError> {
    let job = visible(engine, auth, id).await?;
    if job.state() != JobState::OutputQuarantined {
        return Err(not_held("its result is not in quarantine"));
    }
    Ok(job)
}

fn not_held(words: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "not_quarantined", words)
}
