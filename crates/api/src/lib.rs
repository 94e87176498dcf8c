//! The HTTP surface. A handler is: extract, authorise, call the engine, answer. Nothing decides here.
//!
//! Paths, bodies and the error envelope are the reference's (`/api/v1/…`, `X-API-Key`), so that
//! scripts written for it work. The console calls the same handlers and draws what they answer, so that what may be
//! seen and done is decided once.

pub mod approvals;
pub mod audit;
pub mod auth;
pub mod body;
pub mod convert;
pub mod dead_letters;
mod dry_run;
mod error;
mod graph;
pub mod grpc;
mod health;
pub mod jobs;
mod keys;
mod molecule;
mod openapi;
mod openorca;
pub mod origin;
pub mod overview;
pub mod policy;
pub mod pools;
mod presence;
pub mod quarantine;
mod rate;
pub mod runs;
pub mod stream;
mod surface;
pub mod system;
mod trace;
mod types;
pub mod unauthenticated;
mod voicegateway;
mod worker_keys;
pub mod workers;
pub mod workflows;

pub use error::ApiError;
pub use openapi::document as openapi_document;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{delete, get, post};
use reveille_engine::Engine;

/// The largest body that is read.
pub const BODY_LEN_MAX: usize = 2 * 1024 * 1024;

/// Health, readiness and metrics, for a listener of their own.
pub fn admin_router(engine: Engine) -> Router {
    health_routes().fallback(error::no_such_path).with_state(engine)
}

fn health_routes() -> Router<Engine> {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
}

/// Every route.
pub fn router(engine: Engine) -> Router {
    let api = Router::new()
        .route("/jobs", post(jobs::submit).get(jobs::list))
        .route("/jobs/{id}", get(jobs::get))
        .route("/jobs/{id}/cancel", post(jobs::cancel))
        .route("/jobs/{id}/remediate", post(jobs::remediate))
        .route("/jobs/{id}/explain", get(jobs::explain))
        .route("/approvals", get(approvals::list))
        .route("/approvals/{job_id}/context", get(approvals::context))
        .route("/approvals/{job_id}/approve", post(approvals::approve))
        .route("/approvals/{job_id}/reject", post(approvals::reject))
        .route("/dlq", get(dead_letters::list))
        .route("/dlq/page", get(dead_letters::page))
        .route("/dlq/stats", get(dead_letters::stats))
        .route("/dlq/packets", get(dead_letters::packets))
        .route("/dlq/retry", post(dead_letters::retry_many))
        .route("/dlq/{job_id}", get(dead_letters::get).delete(dead_letters::delete))
        .route("/dlq/{job_id}/retry", post(dead_letters::retry))
        .route("/overview", get(overview::get))
        .route("/system", get(system::get))
        .route("/workers", get(workers::list))
        .route("/workers/{id}", get(workers::get))
        .route("/workers/{id}/drain", post(workers::drain))
        .route("/workers/{id}/undrain", post(workers::undrain))
        .route("/pools", get(pools::list))
        .route("/pools/{name}/drain", post(pools::drain))
        .route("/pools/{name}/undrain", post(pools::undrain))
        .route("/auth/keys", post(keys::create).get(keys::list))
        .route("/auth/keys/{id}", delete(keys::revoke))
        .route("/auth/keys/{id}/rotate", post(keys::rotate))
        .route("/auth/worker-keys", post(worker_keys::register_worker_key))
        .route("/auth/worker-keys/server", get(worker_keys::server_key))
        .route("/auth/worker-keys/{id}/rotate", post(worker_keys::rotate_worker_key))
        .route("/openapi.json", get(openapi::serve));
    let api = api
        .merge(policy::routes())
        .merge(audit::routes())
        .merge(quarantine::routes())
        .merge(workflows::routes())
        .merge(stream::routes())
        .merge(presence::routes());
    let hot = voicegateway::hot_route(&engine);
    Router::new()
        .nest("/api/v1", api)
        .merge(voicegateway::routes())
        .merge(openorca::routes())
        .merge(molecule::routes())
        .merge(health_routes())
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(DefaultBodyLimit::max(BODY_LEN_MAX))
        .layer(from_fn(surface::in_our_words))
        .layer(from_fn(body::refuse_long_bodies))
        .layer(from_fn_with_state(engine.clone(), rate::hold_back))
        .merge(hot)
        .layer(from_fn_with_state(engine.clone(), origin::refuse_foreign_pages))
        .with_state(engine)
}
