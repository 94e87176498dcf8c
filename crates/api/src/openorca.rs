//! The `OpenOrca` console: a snapshot of the fleet, what changes in it, and people's decisions.
//!
//! Members of all three contracts are shown. The console cannot send a key (an `EventSource` has no
//! headers), so it works where callers without one are let in, or behind a proxy that adds one.

pub mod events;
pub mod resolve;
mod scene;
mod tally;

use crate::types::openorca::{ConsoleSnapshot, RUNTIME, RuntimeInfo, Supports};
use crate::voicegateway::{Detail, Principal, TenantHeader, TenantQuery};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use reveille_engine::Engine;
use reveille_roster::Scope;
use scene::Scene;
use std::sync::Arc;
use tally::Tally;

pub fn routes() -> Router<Engine> {
    Router::new()
        .route("/openorca/runtime-info", get(runtime_info))
        .route("/openorca/snapshot", get(snapshot))
        .route("/openorca/events", get(events::follow))
        .route("/openorca/interventions/resolve", post(resolve::resolve))
        .layer(Extension(Arc::<Tally>::default()))
}

/// Says what runs here. The console asks before it has a key, and learns nothing of the fleet.
#[utoipa::path(get, path = "/openorca/runtime-info", tag = "openorca", security(()), responses((status = 200, body = RuntimeInfo)))]
pub async fn runtime_info() -> Json<RuntimeInfo> {
    Json(RuntimeInfo {
        runtime: RUNTIME,
        language: "rust",
        version: env!("CARGO_PKG_VERSION"),
        supports: Supports { sse: true, interventions: true, snapshots: true },
    })
}

/// Shows the fleet, its jobs and what waits for a person.
#[utoipa::path(get, path = "/openorca/snapshot", tag = "openorca", params(TenantQuery, TenantHeader), responses((status = 200, body = ConsoleSnapshot)))]
pub async fn snapshot(
    State(engine): State<Engine>,
    principal: Principal,
    Query(query): Query<TenantQuery>,
    Extension(tally): Extension<Arc<Tally>>,
) -> Result<Response, Detail> {
    let scene = scene_for(engine, &principal, &query, tally)?;
    let (snapshot, _) = scene.snapshot().await?;
    Ok(Json(snapshot).into_response())
}

fn scene_for(
    engine: Engine,
    principal: &Principal,
    query: &TenantQuery,
    tally: Arc<Tally>,
) -> Result<Scene, Detail> {
    principal.needs(Scope::Read)?;
    Ok(Scene::new(engine, principal.audience(query.tenant.as_deref())?, tally))
}
