//! The fleet, worker by worker.

use crate::ApiError;
use crate::auth::Auth;
use crate::types::worker::{PageQuery, Worker, WorkerPage};
use axum::Json;
use axum::extract::{Path, Query, State};
use reveille_engine::Engine;
use reveille_store::Scope;

const PAGE_LEN_MAX: usize = 5_000;

#[utoipa::path(get, path = "/api/v1/workers", tag = "fleet", params(PageQuery), responses((status = 200, body = WorkerPage)))]
pub async fn list(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<PageQuery>,
) -> Result<Json<WorkerPage>, ApiError> {
    auth.needs(Scope::Read)?;
    let limit = query.limit.unwrap_or(PAGE_LEN_MAX).clamp(1, PAGE_LEN_MAX);
    let after = query.cursor.unwrap_or_default();
    let page = engine.workers_after(&after, limit + 1);
    let mut items: Vec<Worker> = page.iter().map(|view| Worker::of(view, engine.now())).collect();
    let more = items.len() > limit;
    items.truncate(limit);
    let next_cursor = items.last().filter(|_| more).map(|worker| worker.worker_id.clone());
    Ok(Json(WorkerPage { items, next_cursor }))
}

#[utoipa::path(get, path = "/api/v1/workers/{id}", tag = "fleet", params(("id" = String, Path)), responses((status = 200, body = Worker), (status = 404, description = "No such worker")))]
pub async fn get(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<Json<Worker>, ApiError> {
    auth.needs(Scope::Read)?;
    let view = engine.worker(&id).ok_or_else(|| ApiError::not_found("worker"))?;
    Ok(Json(Worker::of(&view, engine.now())))
}
