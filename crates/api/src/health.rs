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

#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = 200, description = "It takes work"), (status = 503, description = "It is shutting down, or cut off from what it shares with other servers")))]
pub async fn ready(State(engine): State<Engine>) -> impl IntoResponse {
    let (status, word) = if engine.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else if engine.is_cut_off() {
        (StatusCode::SERVICE_UNAVAILABLE, "cut_off")
    } else {
        (StatusCode::OK, "ready")
    };
    let about = json!({ "status": word, "recovered": engine.is_recovered(), "replicas": engine.replicas() });
    (status, Json(about))
}

#[utoipa::path(get, path = "/metrics", tag = "health", responses((status = 200, description = "OpenMetrics text", content_type = "application/openmetrics-text")))]
pub async fn metrics(State(engine): State<Engine>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], engine.metrics_page())
}
