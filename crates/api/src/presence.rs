//! `POST /api/v1/presence`: beats of many agents at once, a form of our own for those who run many.
//!
//! Each beat is taken or refused by itself. The whole body is read in one pass; only if that fails is it
//! read beat by beat, to find out which ones are bad and to take the others. The tenant is the key's, or
//! for an operator the one in `X-Tenant-ID`, as on every path of ours; the body never says it.

use crate::ApiError;
use crate::auth::Auth;
use crate::types::agent::{BEATS_MAX, BeatBatch, PostedBeat, RawBatch, why_unreadable};
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use reveille_api_types::presence::{Batch, Refused, Taken};
use reveille_core::fleet::NoRoom;
use reveille_core::presence::Contract;
use reveille_core::presence::agent::AgentBeat;
use reveille_engine::{BeatError, Engine};
use reveille_roster::Scope;

pub fn routes() -> Router<Engine> {
    Router::new().route("/presence", post(take))
}

/// Takes beats of many agents. Each one is taken or refused by itself.
#[utoipa::path(post, path = "/api/v1/presence", tag = "fleet", request_body = Batch, responses(
    (status = 202, body = Taken), (status = 400, description = "Not a batch, or more than 1,000 beats"),
    (status = 429, description = "The tenant has all the members that it may have, and none of these is one of them"),
    (status = 503, description = "The fleet is full")))]
pub async fn take(
    State(engine): State<Engine>,
    auth: Auth,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Taken>), ApiError> {
    auth.needs(Scope::Ingest)?;
    let body = body.map_err(|error| ApiError::new(error.status(), "body_unreadable", error.body_text()))?;
    let heard = match serde_json::from_slice(&body) {
        Ok(BeatBatch(beats)) => {
            let refused = engine.fleet().agent_beats(&auth.tenant, &beats);
            HeardBeats::of(beats.len(), refused, |ix| ix)
        }
        Err(_) => one_by_one(&engine, &auth, &body)?,
    };
    match heard.no_room.filter(|_| heard.accepted == 0) {
        Some(NoRoom::Fleet) => {
            let full = NoRoom::Fleet.to_string();
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "fleet_full", full));
        }
        Some(NoRoom::Tenant(over)) => return Err(over.into()),
        None => {}
    }
    let next_beat_s = engine.fleet().suggested_beat_seconds(Contract::VoiceGateway);
    let HeardBeats { accepted, rejected, .. } = heard;
    Ok((StatusCode::ACCEPTED, Json(Taken { accepted, rejected, next_beat_s })))
}

/// What became of a batch.
struct HeardBeats {
    accepted: usize,
    rejected: Vec<Refused>,
    /// Why some of them found no place, if some did not.
    no_room: Option<NoRoom>,
}

impl HeardBeats {
    /// `place` says where in the batch one of the beats was.
    fn of(beats: usize, refused: Vec<(usize, BeatError)>, place: impl Fn(usize) -> usize) -> Self {
        let accepted = beats - refused.len();
        let mut no_room = None;
        let mut rejected = Vec::with_capacity(refused.len());
        for (ix, error) in refused {
            let index = place(ix);
            rejected.push(match error {
                BeatError::Bad(bad) => {
                    Refused { index, field: Some(bad.field.to_owned()), error: bad.problem.to_owned() }
                }
                BeatError::NoRoom(none) => {
                    no_room = Some(none);
                    Refused { index, field: None, error: none.to_string() }
                }
            });
        }
        Self { accepted, rejected, no_room }
    }
}

/// Takes what can be read and names the rest.
fn one_by_one(engine: &Engine, auth: &Auth, body: &[u8]) -> Result<HeardBeats, ApiError> {
    let RawBatch { beats: raw } = serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!("the body is not the JSON that is expected: {error}"))
    })?;
    if raw.len() > BEATS_MAX {
        return Err(ApiError::field("beats", format!("has {} beats; at most {BEATS_MAX}", raw.len())));
    }
    let mut beats: Vec<AgentBeat<'_>> = Vec::with_capacity(raw.len());
    let (mut places, mut rejected) = (Vec::with_capacity(raw.len()), Vec::new());
    for (index, json) in raw.iter().enumerate() {
        if let Ok(PostedBeat(beat)) = serde_json::from_str(json.get()) {
            beats.push(beat);
            places.push(index);
        } else {
            let why = why_unreadable(json.get().as_bytes());
            rejected.push(Refused { index, field: Some(why.field), error: why.problem });
        }
    }
    let refused = engine.fleet().agent_beats(&auth.tenant, &beats);
    let mut heard = HeardBeats::of(beats.len(), refused, |ix| places[ix]);
    heard.rejected.extend(rejected);
    heard.rejected.sort_by_key(|refused| refused.index);
    Ok(heard)
}
