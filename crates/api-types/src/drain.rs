//! Drains over HTTP.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// Seconds that jobs may stay; 300 unless told, at most 3600. What is left then goes elsewhere.
    pub timeout_seconds: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Drained {
    pub name: String,
    pub status: String,
    pub drain_started_at: String,
    pub drain_timeout_seconds: i64,
    pub drained_by: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Undrained {
    pub name: String,
    pub was_drained: bool,
}
