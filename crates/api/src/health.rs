//! Is it alive, is it ready, what does it count.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use reveille_engine::Engine;
use serde_json::json;

#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "The process runs")))]
pub async fn alive() -> impl IntoResponse {
    Json(json!({ "status": "ok" }))
}

#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = 200, description = "It takes work"), (status = 503, description = "It is shutting down")))]
pub async fn ready(State(engine): State<Engine>) -> impl IntoResponse {
    let status = if engine.is_draining() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let word = if engine.is_draining() { "draining" } else { "ready" };
    (status, Json(json!({ "status": word, "recovered": engine.is_recovered() })))
}

#[utoipa::path(get, path = "/metrics", tag = "health", responses((status = 200, description = "OpenMetrics text", content_type = "application/openmetrics-text")))]
pub async fn metrics(State(engine): State<Engine>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], engine.metrics_page())
}
