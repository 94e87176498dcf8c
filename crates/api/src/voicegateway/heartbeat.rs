//! `POST /v1/agents/heartbeat`, the hot path: one hash, one pass over the body, one short look at the
//! placement.
//!
//! The tenant is the key's, whatever body or headers say. The content type is not looked at, because
//! VoiceGateway does not either.

use super::Detail;
use super::principal::{caller, may_ingest};
use crate::error::no_such_method;
use crate::types::agent::{BeatTaken, PostedBeat, why_unreadable};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use reveille_api_types::presence::Beat;
use reveille_core::presence::Contract;
use reveille_core::rate::RetryAfter;
use reveille_engine::Engine;

/// The largest beat that is read; a real one has a few hundred bytes.
const BEAT_LEN_MAX: usize = 64 * 1024;

/// Takes an agent's beat.
///
/// The tenant is the key's, whatever the body says. Unknown fields are passed over.
#[utoipa::path(post, path = "/v1/agents/heartbeat", tag = "voicegateway", request_body = Beat, responses(
    (status = 202, body = BeatTaken), (status = 413, description = "The beat is larger than 64 KiB"),
    (status = 422, description = "A field is wrong; it is named"),
    (status = 429, description = "The tenant has all the members that it may have; `quota` names it"), (status = 503, description = "The fleet is full")))]
#[expect(dead_code, reason = "it describes; the route below takes beats")]
pub fn heartbeat() {}

pub fn route(engine: &Engine) -> MethodRouter<Engine> {
    let seconds = engine.fleet().suggested_beat_seconds(Contract::VoiceGateway);
    let accepted = Bytes::from(format!(r#"{{"status":"accepted","next_beat_s":{seconds}}}"#));
    let handle = move |State(engine): State<Engine>, request: Request| {
        let accepted = accepted.clone();
        async move {
            match take(&engine, request).await {
                Ok(()) => answer(accepted),
                Err(detail) => detail.into_response(),
            }
        }
    };
    post(handle).fallback(no_such_method)
}

async fn take(engine: &Engine, request: Request) -> Result<(), Detail> {
    let (parts, body) = request.into_parts();
    let caller = caller(engine, &parts.headers)?;
    may_ingest(&caller)?;
    engine.access().count_call(&caller.key).map_err(|RetryAfter(seconds)| {
        let detail = format!("This key calls too often; try again in {seconds} s");
        Detail::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(seconds)
    })?;
    let bytes = read(body).await?;
    let PostedBeat(beat) = serde_json::from_slice(&bytes).map_err(|_| {
        let why = why_unreadable(&bytes);
        Detail::field(&why.field, why.problem)
    })?;
    Ok(engine.fleet().agent_beat(&caller.tenant, &beat)?)
}

fn answer(body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::ACCEPTED;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The whole body. One that came in one piece, as beats do, is not copied.
async fn read(mut body: Body) -> Result<Bytes, Detail> {
    let mut whole = Bytes::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Detail::field("body", error))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > BEAT_LEN_MAX {
            let detail = format!("The beat is larger than {BEAT_LEN_MAX} bytes");
            return Err(Detail::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        whole = if whole.is_empty() { data } else { joined(&whole, &data) };
    }
    Ok(whole)
}

fn joined(start: &[u8], rest: &[u8]) -> Bytes {
    let mut both = BytesMut::with_capacity(start.len() + rest.len());
    both.extend_from_slice(start);
    both.extend_from_slice(rest);
    both.freeze()
}
