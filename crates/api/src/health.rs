//! Is it alive, is it ready, what does it count.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use reveille_engine::Engine;
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
pub struct Alive {
    /// `ok`.
    status: &'static str,
}

#[derive(Serialize, ToSchema)]
pub struct Ready {
    /// `ready`, `draining` or `cut_off`.
    status: &'static str,
    /// Whether what was there before the start is picked up again.
    recovered: bool,
    /// The servers that share the work, by name.
    replicas: Vec<String>,
}

/// Says that the process runs.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses((status = 200, body = Alive)))]
pub async fn alive() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// Says the same as `/healthz`.
#[utoipa::path(get, path = "/livez", tag = "health", security(()), responses((status = 200, body = Alive)))]
pub async fn live() -> Json<Alive> {
    alive().await
}

/// Says the same as `/healthz`, where Molecule's clients look.
#[utoipa::path(get, path = "/health", tag = "molecule", security(()), responses((status = 200, body = Alive)))]
pub async fn health() -> Json<Alive> {
    alive().await
}

/// Says whether the server takes work.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), responses(
    (status = 200, body = Ready, description = "It takes work"),
    (status = 503, body = Ready, description = "It is shutting down, or cut off from what it shares with other servers")))]
pub async fn ready(State(engine): State<Engine>) -> impl IntoResponse {
    let (status, word) = if engine.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else if engine.cluster().is_cut_off() {
        (StatusCode::SERVICE_UNAVAILABLE, "cut_off")
    } else {
        (StatusCode::OK, "ready")
    };
    let (recovered, replicas) = (engine.is_recovered(), engine.cluster().members());
    (status, Json(Ready { status: word, recovered, replicas }))
}

/// Counts what the server does.
#[utoipa::path(get, path = "/metrics", tag = "health", security(()), responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text")))]
pub async fn metrics(State(engine): State<Engine>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], engine.metrics_page())
}
