//! `GET /api/v1/system`: what a server is at, for operators. Who holds which lock, and what it waits for.

use crate::ApiError;
use crate::auth::Auth;
use crate::convert;
use axum::Json;
use axum::extract::State;
use reveille_api_types::system::System;
use reveille_engine::{Circuit, Engine};
use reveille_roster::Scope;

/// Says what the server is at: locks, timers, circuits. For operators.
#[utoipa::path(get, path = "/api/v1/system", tag = "fleet", responses((status = 200, body = System), (status = 403, description = "The key is no operator's")))]
pub async fn get(State(engine): State<Engine>, auth: Auth) -> Result<Json<System>, ApiError> {
    auth.needs(Scope::Admin)?;
    let now = engine.now();
    // A store that is away is no reason to say nothing of the rest.
    let locks = engine.locks_held().await.ok();
    let more_locks = locks.as_ref().is_some_and(|(_, more)| *more);
    Ok(Json(System {
        at: now.rfc3339(),
        server: engine.name().to_owned(),
        servers: engine.cluster().members(),
        cut_off: engine.cluster().is_cut_off(),
        recovered: engine.is_recovered(),
        policy: engine.rules().policy.snapshot().to_string(),
        snapshot_written_at: engine.figures().snapshot_age_ms.map(|age_ms| (now - age_ms).rfc3339()),
        circuits: Circuit::ALL.map(|circuit| convert::circuit_state(&engine, circuit)).into(),
        locks: locks.map(|(held, _)| held.into_iter().map(convert::lock_held).collect()),
        more_locks,
        decisions: engine.jobs().decisions(),
        job_timers: convert::timers(engine.jobs().timers()),
        run_timers: convert::timers(engine.workflows().timers()),
    }))
}
