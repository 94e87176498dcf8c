//! A member of the fleet, of whatever contract.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Deserialize)]
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
    /// What it says it is working on.
    pub current_task: Option<String>,
    pub last_heartbeat: String,
    /// It has been heard within its TTL, and nothing sent to it went unheard since.
    pub online: bool,
    /// Milliseconds left before it counts as dead.
    pub expires_in_ms: i64,
    /// It was there before the server restarted and has not been heard since.
    pub restored: bool,
    /// An operator has taken it, or its pool, out of service.
    pub drained: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Drained {
    pub name: String,
    pub status: String,
    pub drain_started_at: String,
    pub drain_timeout_seconds: i64,
    pub drained_by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Undrained {
    pub name: String,
    pub was_drained: bool,
}
