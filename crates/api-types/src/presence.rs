//! Agents that say that they are there, as VoiceGateway's agents do, and what became of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an agent says of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Beat {
    /// 1 to 256 bytes without spaces.
    pub agent_id: String,
    /// 1 to 256 bytes.
    pub agent_name: String,
    pub dispatch_name: Option<String>,
    /// idle, busy or offline; idle unless told.
    #[cfg_attr(feature = "schema", schema(value_type = String, required = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// 0 unless told.
    #[cfg_attr(feature = "schema", schema(required = false))]
    #[serde(default)]
    pub active_sessions: u32,
    pub version: Option<String>,
    /// `default` unless told.
    #[cfg_attr(feature = "schema", schema(value_type = String, required = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub region: Option<String>,
    pub host: Option<String>,
    /// Seconds since the epoch, by the agent's clock.
    pub started_at: Option<f64>,
    pub memory_rss_bytes: Option<u64>,
    pub memory_total_bytes: Option<u64>,
    /// From 0 to 100.
    pub cpu_pct: Option<f32>,
    /// Not looked at: the tenant is the key's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Not looked at: the time is the server's.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<Value>,
}

impl Beat {
    pub fn new(agent_id: impl Into<String>, agent_name: impl Into<String>) -> Self {
        Self { agent_id: agent_id.into(), agent_name: agent_name.into(), ..Self::default() }
    }
}

/// Beats of many agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Batch {
    /// At most 1,000.
    pub beats: Vec<Beat>,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Taken {
    pub accepted: usize,
    pub rejected: Vec<Refused>,
    /// How often an agent should beat, in seconds.
    pub next_beat_s: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Refused {
    /// Its place in the batch, from zero.
    pub index: usize,
    pub field: Option<String>,
    pub error: String,
}
