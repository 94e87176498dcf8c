//! Drains over HTTP.

use crate::ApiError;
use reveille_core::presence::{self, Drain};
use reveille_engine::{DRAIN_SECONDS, DRAIN_SECONDS_MAX};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// Seconds that jobs may stay; 300 unless told, at most 3600. What is left then goes elsewhere.
    pub timeout_seconds: Option<u32>,
}

impl DrainRequest {
    pub fn seconds(&self) -> Result<u32, ApiError> {
        let seconds = self.timeout_seconds.unwrap_or(DRAIN_SECONDS);
        if seconds > DRAIN_SECONDS_MAX {
            return Err(ApiError::field("timeout_seconds", format!("is more than {DRAIN_SECONDS_MAX}")));
        }
        Ok(seconds)
    }
}

#[derive(Serialize, ToSchema)]
pub struct Drained {
    pub name: String,
    pub status: &'static str,
    pub drain_started_at: String,
    pub drain_timeout_seconds: i64,
    pub drained_by: String,
}

impl Drained {
    pub fn of(drain: &Drain) -> Self {
        let name = match &drain.what {
            presence::Drained::Worker(id) => id.to_string(),
            presence::Drained::Pool(id) => id.to_string(),
        };
        Self {
            name,
            status: "draining",
            drain_started_at: drain.since.rfc3339(),
            drain_timeout_seconds: drain.until.since(drain.since) / 1000,
            drained_by: drain.by.clone(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Undrained {
    pub name: String,
    pub was_drained: bool,
}
