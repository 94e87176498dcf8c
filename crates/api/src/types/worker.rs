//! Workers and pools over HTTP.

use reveille_core::placement::PoolLoad;
use reveille_core::presence::About;
use reveille_core::presence::agent::AgentStatus;
use reveille_core::time::Millis;
use reveille_engine::{WorkerView, in_hand, is_degraded};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    pub limit: Option<usize>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Only members of this contract: cap, voicegateway or molecule.
    pub contract: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct WorkerPage {
    pub items: Vec<Worker>,
    pub next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Worker {
    pub worker_id: String,
    /// How it speaks to us: cap, voicegateway or molecule.
    pub contract: &'static str,
    pub tenant: String,
    /// online, busy, degraded, restored, drained or offline.
    pub status: &'static str,
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
    /// What it says it is working on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_task: Option<String>,
}

impl Worker {
    pub fn of(view: &WorkerView, now: Millis) -> Self {
        let (worker, profile) = (&view.worker, &view.profile);
        let expires_in_ms = if worker.offline { 0 } else { view.dead_at.since(now) };
        Self {
            worker_id: worker.id.to_string(),
            contract: worker.contract().as_str(),
            tenant: worker.tenant.to_string(),
            status: if expires_in_ms > 0 { status(worker) } else { "offline" },
            agent_name: worker.agent_name().to_owned(),
            pool: profile.pool.as_ref().map(ToString::to_string).unwrap_or_default(),
            region: region(view),
            kind: profile.kind.clone(),
            active_jobs: in_hand(worker),
            max_parallel_jobs: worker.capacity(),
            cpu_load: cpu(worker),
            gpu_utilization: worker.load.gpu,
            memory_load: memory(worker),
            capabilities: profile.capabilities.iter().cloned().collect(),
            labels: profile.labels.clone(),
            topics: profile.topics.iter().map(ToString::to_string).collect(),
            last_heartbeat: worker.last_seen.rfc3339(),
            online: worker.is_online() && expires_in_ms > 0,
            expires_in_ms,
            restored: worker.restored,
            drained: worker.drained,
            current_task: match &worker.about {
                About::Workspace(pulse) if !pulse.current_task.is_empty() => Some(pulse.current_task.clone()),
                _ => None,
            },
        }
    }
}

/// One word for how a member is whose TTL has not lapsed, whatever its contract calls it.
fn status(worker: &reveille_core::fleet::Worker) -> &'static str {
    let is_busy = match &worker.about {
        About::Agent(agent) => agent.status == AgentStatus::Busy,
        About::Workspace(_) | About::Cap => worker.active() > 0,
    };
    let words = [
        (worker.says_offline(), "offline"),
        (worker.restored, "restored"),
        (worker.unreachable, "offline"),
        (worker.drained, "drained"),
        (is_degraded(worker), "degraded"),
        (is_busy, "busy"),
    ];
    words.into_iter().find_map(|(is_so, word)| is_so.then_some(word)).unwrap_or("online")
}

fn cpu(worker: &reveille_core::fleet::Worker) -> f32 {
    match &worker.about {
        About::Agent(agent) => agent.cpu_pct.unwrap_or_default(),
        About::Workspace(_) | About::Cap => worker.load.cpu,
    }
}

fn memory(worker: &reveille_core::fleet::Worker) -> f32 {
    match &worker.about {
        About::Agent(agent) => agent.memory_pct().unwrap_or_default() as f32,
        About::Workspace(_) | About::Cap => worker.load.memory,
    }
}

fn region(view: &WorkerView) -> String {
    match &view.worker.about {
        About::Agent(agent) => agent.region.clone().unwrap_or_default(),
        _ => view.profile.region.clone(),
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
    /// active or draining.
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_started_at: Option<String>,
}

impl Pool {
    pub fn of(pool: PoolLoad) -> Self {
        Self {
            name: pool.name.map(|name| name.to_string()).unwrap_or_default(),
            workers: pool.workers,
            active_jobs: pool.active_jobs,
            capacity: pool.capacity,
            utilization: f64::from(pool.active_jobs) / f64::from(pool.capacity.max(1)),
            status: if pool.drained.is_some() { "draining" } else { "active" },
            drain_started_at: pool.drained.map(|drain| drain.since.rfc3339()),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct PoolList {
    pub items: Vec<Pool>,
}
