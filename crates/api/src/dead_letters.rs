//! Dead letters: jobs that ended badly, to be looked at, tried again or put away.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::OptionalBody;
use crate::convert;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use reveille_api_types::dead_letter::{
    DeadLetter, DeadLetterList, DeadLetterPage, DeadLetterStats, LetterQuery, RetriedJob, RetriedMany,
    RetryFilter,
};
use reveille_api_types::dead_packet::{DeadPacketPage, PacketQuery};
use reveille_core::id::JobId;
use reveille_core::job;
use reveille_engine::Engine;
use reveille_roster::Scope;
use reveille_store::DeadLetterQuery;

/// Lists jobs that ended badly, newest first.
#[utoipa::path(get, path = "/api/v1/dlq", tag = "dead letters", params(LetterQuery), responses((status = 200, body = DeadLetterList)))]
pub async fn list(
    engine: State<Engine>,
    auth: Auth,
    query: Query<LetterQuery>,
) -> Result<Json<DeadLetterList>, ApiError> {
    let Json(page) = page(engine, auth, query).await?;
    Ok(Json(DeadLetterList { items: page.items }))
}

/// Lists the same as `/dlq`, page by page.
#[utoipa::path(get, path = "/api/v1/dlq/page", tag = "dead letters", params(LetterQuery), responses((status = 200, body = DeadLetterPage)))]
pub async fn page(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<LetterQuery>,
) -> Result<Json<DeadLetterPage>, ApiError> {
    auth.needs(Scope::Read)?;
    let query = DeadLetterQuery { tenant: auth.list_of(), ..convert::letter_query(&query)? };
    let page = engine.jobs().dead_letters(&query).await?;
    Ok(Json(DeadLetterPage {
        items: page.items.iter().map(convert::dead_letter).collect(),
        next_cursor: page.next.map(|next| next.to_string()),
    }))
}

/// Counts dead letters by what ended them.
#[utoipa::path(get, path = "/api/v1/dlq/stats", tag = "dead letters", responses((status = 200, body = DeadLetterStats)))]
pub async fn stats(State(engine): State<Engine>, auth: Auth) -> Result<Json<DeadLetterStats>, ApiError> {
    auth.needs(Scope::Read)?;
    let counts = engine.jobs().count_dead_letters(auth.list_of().as_ref()).await?;
    Ok(Json(convert::dead_letter_stats(&counts)))
}

/// Shows one dead letter.
#[utoipa::path(get, path = "/api/v1/dlq/{job_id}", tag = "dead letters", params(("job_id" = String, Path)), responses((status = 200, body = DeadLetter), (status = 404, description = "No such dead letter")))]
pub async fn get(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<Json<DeadLetter>, ApiError> {
    auth.needs(Scope::Read)?;
    Ok(Json(convert::dead_letter(&visible(&engine, &auth, &id).await?)))
}

/// Takes a dead letter off the list. The job itself stays.
#[utoipa::path(delete, path = "/api/v1/dlq/{job_id}", tag = "dead letters", params(("job_id" = String, Path)), responses((status = 204, description = "It is off the list"), (status = 404, description = "No such dead letter")))]
pub async fn delete(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    auth.needs(Scope::Operate)?;
    let letter = visible(&engine, &auth, &id).await?;
    let was_there = engine.jobs().delete_dead_letter(letter, auth.caller()).await?;
    if was_there { Ok(StatusCode::NO_CONTENT) } else { Err(unknown()) }
}

/// Submits the job of a dead letter again.
#[utoipa::path(post, path = "/api/v1/dlq/{job_id}/retry", tag = "dead letters", params(("job_id" = String, Path)), responses(
    (status = 200, body = RetriedJob), (status = 404, description = "No such dead letter"),
    (status = 409, description = "Another job has its idempotency key"), (status = 410, description = "The input has expired"),
    (status = 429, description = "Throttled, or too many live jobs; the dead letter stays")))]
pub async fn retry(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<Json<RetriedJob>, ApiError> {
    auth.needs(Scope::Operate)?;
    let letter = visible(&engine, &auth, &id).await?;
    Ok(Json(convert::retried_job(&*engine.jobs().retry(letter, auth.caller()).await?)))
}

/// Submits the jobs of many dead letters again, as a filter says.
#[utoipa::path(post, path = "/api/v1/dlq/retry", tag = "dead letters", request_body = Option<RetryFilter>, responses((status = 200, body = RetriedMany)))]
pub async fn retry_many(
    State(engine): State<Engine>,
    auth: Auth,
    OptionalBody(filter): OptionalBody<RetryFilter>,
) -> Result<Json<RetriedMany>, ApiError> {
    auth.needs(Scope::Operate)?;
    let query = DeadLetterQuery { tenant: auth.list_of(), ..convert::retry_query(&filter)? };
    Ok(Json(convert::retried_many(&engine.jobs().retry_many(query, auth.caller()).await?)))
}

/// Lists packets from the bus that nobody could read.
#[utoipa::path(get, path = "/api/v1/dlq/packets", tag = "dead letters", params(PacketQuery), responses(
    (status = 200, body = DeadPacketPage), (status = 403, description = "Only for operators: a packet that nobody can read is nobody's"),
    (status = 503, description = "audit_unavailable: who reads them is recorded first, and that is not possible now")))]
pub async fn packets(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<PacketQuery>,
) -> Result<Json<DeadPacketPage>, ApiError> {
    auth.needs(Scope::Admin)?;
    let (cursor, limit) = convert::packet_query(&query)?;
    let page = engine.jobs().dead_packets(cursor, limit, auth.caller()).await?;
    Ok(Json(DeadPacketPage {
        items: page.items.iter().map(convert::dead_packet).collect(),
        next_cursor: page.next.map(|next| next.to_string()),
    }))
}

/// The entry, if there is one that this caller may see. Another tenant's does not exist for it.
async fn visible(engine: &Engine, auth: &Auth, id: &str) -> Result<job::DeadLetter, ApiError> {
    let found = match JobId::parse(id) {
        Ok(id) => engine.jobs().dead_letter(&id).await?,
        Err(_) => None,
    };
    found.filter(|letter| auth.sees(&letter.tenant)).ok_or_else(unknown)
}

fn unknown() -> ApiError {
    ApiError::not_found("dead letter")
}
