//! The VoiceGateway contract: agents that beat, who they are, and the keys they come with.
//!
//! Paths, shapes and texts are VoiceGateway's, so that its `register_worker` works unchanged; errors are
//! `{"detail": …}` here, and only here and in the console's routes.

pub mod agents;
mod detail;
pub mod heartbeat;
pub mod keys;
mod principal;

pub use detail::Detail;
pub use principal::{Principal, TenantHeader, TenantQuery};

use axum::Router;
use axum::routing::{get, post};
use reveille_engine::Engine;

pub fn routes() -> Router<Engine> {
    Router::new()
        .route("/v1/agents", get(agents::list))
        .route("/v1/api-keys", post(keys::create).get(keys::list))
        .route("/v1/api-keys/{id}", get(keys::get).delete(keys::revoke))
}

/// The one route that every agent calls every few seconds. It is to be added after all layers: it has
/// limits of its own and pays for nobody else's.
pub fn hot_route(engine: &Engine) -> Router<Engine> {
    Router::new().route("/v1/agents/heartbeat", heartbeat::route(engine))
}
