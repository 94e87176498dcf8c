//! Workers and pools over HTTP.

use super::text::rfc3339;
use reveille_core::fleet::CAP_TTL_MS;
use reveille_core::floor::PoolLoad;
use reveille_core::time::Millis;
use reveille_engine::WorkerView;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    pub limit: Option<usize>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct WorkerPage {
    pub items: Vec<Worker>,
    pub next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Worker {
    pub worker_id: String,
    pub agent_name: String,
    pub pool: String,
    pub region: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Jobs it has: ours, and what it said it does for others.
    pub active_jobs: u32,
    pub max_parallel_jobs: u32,
    pub cpu_load: f32,
    pub gpu_utilization: f32,
    pub memory_load: f32,
    pub capabilities: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub topics: Vec<String>,
    pub last_heartbeat: String,
    /// It has been heard within its TTL, and nothing sent to it went unheard since.
    pub online: bool,
    /// Milliseconds left before it counts as dead.
    pub expires_in_ms: i64,
}

impl Worker {
    pub fn of(view: &WorkerView, now: Millis) -> Self {
        let (worker, profile) = (&view.worker, &view.profile);
        let expires_in_ms = (worker.last_seen + CAP_TTL_MS).since(now);
        Self {
            worker_id: worker.id.to_string(),
            agent_name: worker.agent_name().to_owned(),
            pool: profile.pool.as_ref().map(ToString::to_string).unwrap_or_default(),
            region: profile.region.clone(),
            kind: profile.kind.clone(),
            active_jobs: worker.active(),
            max_parallel_jobs: worker.capacity(),
            cpu_load: worker.load.cpu,
            gpu_utilization: worker.load.gpu,
            memory_load: worker.load.memory,
            capabilities: profile.capabilities.iter().cloned().collect(),
            labels: profile.labels.clone(),
            topics: profile.topics.iter().map(ToString::to_string).collect(),
            last_heartbeat: rfc3339(worker.last_seen),
            online: !worker.deaf && expires_in_ms > 0,
            expires_in_ms,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Pool {
    pub name: String,
    pub workers: u32,
    pub active_jobs: u32,
    pub capacity: u32,
    /// Active jobs per capacity, from 0 to 1 and beyond.
    pub utilization: f64,
}

impl Pool {
    pub fn of(pool: PoolLoad) -> Self {
        Self {
            name: pool.name.map(|name| name.to_string()).unwrap_or_default(),
            workers: pool.workers,
            active_jobs: pool.active_jobs,
            capacity: pool.capacity,
            utilization: f64::from(pool.active_jobs) / f64::from(pool.capacity.max(1)),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct PoolList {
    pub items: Vec<Pool>,
}
