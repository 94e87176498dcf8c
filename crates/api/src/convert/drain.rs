//! Workers and pools that get no more jobs.

use crate::ApiError;
use reveille_api_types::drain::{DrainRequest, Drained};
use reveille_core::presence::{self, Drain};
use reveille_engine::{DRAIN_SECONDS, DRAIN_SECONDS_MAX};

pub fn drain_seconds(body: &DrainRequest) -> Result<u32, ApiError> {
    let seconds = body.timeout_seconds.unwrap_or(DRAIN_SECONDS);
    if seconds > DRAIN_SECONDS_MAX {
        return Err(ApiError::field("timeout_seconds", format!("is more than {DRAIN_SECONDS_MAX}")));
    }
    Ok(seconds)
}

pub fn drained(drain: &Drain) -> Drained {
    let name = match &drain.what {
        presence::Drained::Worker(id) => id.to_string(),
        presence::Drained::Pool(id) => id.to_string(),
    };
    Drained {
        name,
        status: "draining".to_owned(),
        drain_started_at: drain.since.rfc3339(),
        drain_timeout_seconds: drain.until.since(drain.since) / 1000,
        drained_by: drain.by.clone(),
    }
}
