//! Keys that call too often are told when to come back, before any work is done for them.
//!
//! Beats are counted too (`POST /v1/agents/heartbeat` in its own handler, which this is not around): a limit that one
//! path knows nothing of is none. What is open to everybody is not counted, and who shows no valid key is turned away
//! soon enough.

use crate::ApiError;
use crate::auth::secret;
use crate::surface::Surface;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use reveille_core::rate::RetryAfter;
use reveille_engine::Engine;

/// What asks for no key.
pub const UNCOUNTED: [&str; 5] = ["/api/v1/openapi.json", "/healthz", "/livez", "/readyz", "/metrics"];

pub async fn hold_back(State(engine): State<Engine>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // From here on it is known who shows a token.
    if let Some(secret) = secret(request.headers()) {
        engine.access().learn_keys_of(secret).await;
    }
    if !engine.access().limits_calls() || UNCOUNTED.contains(&path) {
        return next.run(request).await;
    }
    let caller = match secret(request.headers()) {
        Some(secret) => engine.access().identify(secret).ok(),
        None => engine.access().anonymous(),
    };
    match caller.map_or(Ok(()), |caller| engine.access().count_call(&caller.key)) {
        Ok(()) => next.run(request).await,
        Err(after) => refused(path, after),
    }
}

fn refused(path: &str, RetryAfter(seconds): RetryAfter) -> Response {
    let words = format!("this key calls too often; try again in {seconds} s");
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", words);
    Surface::of(path).says(error.with("retry_after", seconds).retry_after(seconds))
}
