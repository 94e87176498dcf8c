//! Workers and pools over HTTP.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct PageQuery {
    pub limit: Option<usize>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Only members of this contract: cap, voicegateway or molecule.
    pub contract: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkerPage {
    pub items: Vec<Worker>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Worker {
    pub worker_id: String,
    /// How it speaks to us: cap, voicegateway or molecule.
    pub contract: String,
    pub tenant: String,
    /// online, busy, degraded, restored, drained or offline.
    pub status: String,
    pub agent_name: String,
    pub pool: String,
    pub region: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Jobs it has: ours, and what it said it does for others; an agent's sessions.
    pub active_jobs: u32,
    pub max_parallel_jobs: u32,
    pub cpu_load: f32,
    pub gpu_utilization: f32,
    pub memory_load: f32,
    pub capabilities: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub topics: Vec<String>,
    pub last_heartbeat: String,
    /// It has been heard within its TTL, does not say that it is offline, and nothing sent to it went unheard since.
    pub online: bool,
    /// Milliseconds left before it counts as dead.
    pub expires_in_ms: i64,
    /// It was there before the server restarted and has not been heard since.
    pub restored: bool,
    /// An operator has taken it, or its pool, out of service.
    pub drained: bool,
    /// The key that says what it may serve, if it came with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// Tenants whose jobs it may be given; everybody's if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<Vec<String>>,
    /// What it says it is working on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_task: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Pool {
    pub name: String,
    pub workers: u32,
    pub active_jobs: u32,
    pub capacity: u32,
    /// Active jobs per capacity, from 0 to 1 and beyond.
    pub utilization: f64,
    /// active or draining.
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_started_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PoolList {
    pub items: Vec<Pool>,
}
