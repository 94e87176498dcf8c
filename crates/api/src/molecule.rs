//! The Molecule registry: workspaces register, beat, are found, delegate and talk.
//!
//! Paths, bodies and words are the reference's. Where the reference trusts everybody (`/ws`, one workspace
//! by its id), a credential is asked for here: a key of the tenant, or the workspace's own token.

mod credential;
pub mod delegations;
pub mod discovery;
pub mod events;
mod limiter;
pub(crate) mod posted;
pub(crate) mod refusal;
pub mod registry;
mod retired;
pub mod socket;
pub mod talk;
pub mod workspaces;

use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use axum::{Extension, Router};
use limiter::Limiter;
use reveille_engine::Engine;
use std::sync::Arc;

/// The largest message that is passed on.
const A2A_LEN_MAX: usize = reveille_a2a::REQUEST_BYTES_MAX;
/// The largest body of anything else here.
const BODY_LEN_MAX: usize = 512 * 1024;

pub fn routes() -> Router<Engine> {
    let a2a = post(talk::a2a).layer(DefaultBodyLimit::max(A2A_LEN_MAX));
    Router::new()
        .route("/registry/register", post(registry::register))
        .route("/registry/heartbeat", post(registry::heartbeat))
        .route("/registry/update-card", post(registry::update_card))
        .route("/registry/discover/{id}", get(discovery::discover))
        .route("/registry/{id}/peers", get(discovery::peers))
        .route("/registry/check-access", post(discovery::check_access))
        .route("/workspaces", post(workspaces::create).get(workspaces::list))
        .route("/workspaces/{id}", get(workspaces::get).patch(workspaces::patch).delete(workspaces::remove))
        .route("/workspaces/{id}/state", get(workspaces::state))
        .route("/workspaces/{id}/tokens", post(workspaces::new_token))
        .route("/workspaces/{id}/delegate", post(delegations::delegate))
        .route("/workspaces/{id}/delegations", get(delegations::list))
        .route("/workspaces/{id}/delegations/record", post(delegations::record))
        .route("/workspaces/{id}/delegations/{delegation}/update", post(delegations::update))
        .route("/workspaces/{id}/notify", post(talk::notify))
        .route("/workspaces/{id}/activity", post(talk::activity))
        .route("/workspaces/{id}/events/stream", get(events::stream))
        .route("/events", get(events::list))
        .route("/events/{id}", get(events::of_workspace))
        .layer(DefaultBodyLimit::max(BODY_LEN_MAX))
        .route("/workspaces/{id}/a2a", a2a)
        .route("/ws", get(socket::open))
        .route("/health", get(crate::health::health))
        .layer(Extension(Arc::new(Limiter::default())))
        .layer(Extension(Arc::new(socket::SocketQuota::default())))
}
