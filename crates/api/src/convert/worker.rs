//! Workers and pools.

use super::key::worker_grant;
use reveille_api_types::worker::{Pool, Worker};
use reveille_core::fleet::Worker as Member;
use reveille_core::placement::PoolLoad;
use reveille_core::presence::About;
use reveille_core::presence::agent::AgentStatus;
use reveille_core::time::Millis;
use reveille_engine::{WorkerView, in_hand, is_degraded};

pub fn worker(view: &WorkerView, now: Millis) -> Worker {
    let (worker, profile) = (&view.worker, &view.profile);
    let expires_in_ms = if worker.offline { 0 } else { view.dead_at.since(now) };
    Worker {
        worker_id: worker.id.to_string(),
        contract: worker.contract().as_str().to_owned(),
        tenant: worker.tenant.to_string(),
        status: if expires_in_ms > 0 { status(worker) } else { "offline" }.to_owned(),
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
        key_id: profile.credential.as_ref().map(|own| own.key.to_string()),
        serves: profile.credential.as_ref().map(|own| worker_grant(&own.grant).serves),
        current_task: match &worker.about {
            About::Workspace(pulse) if !pulse.current_task.is_empty() => Some(pulse.current_task.clone()),
            _ => None,
        },
    }
}

/// One word for how a member is whose TTL has not lapsed, whatever its contract calls it.
fn status(worker: &Member) -> &'static str {
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

fn cpu(worker: &Member) -> f32 {
    match &worker.about {
        About::Agent(agent) => agent.cpu_pct.unwrap_or_default(),
        About::Workspace(_) | About::Cap => worker.load.cpu,
    }
}

fn memory(worker: &Member) -> f32 {
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

pub fn pool(pool: PoolLoad) -> Pool {
    Pool {
        name: pool.name.map(|name| name.to_string()).unwrap_or_default(),
        workers: pool.workers,
        active_jobs: pool.active_jobs,
        capacity: pool.capacity,
        utilization: f64::from(pool.active_jobs) / f64::from(pool.capacity.max(1)),
        status: if pool.drained.is_some() { "draining" } else { "active" }.to_owned(),
        drain_started_at: pool.drained.map(|drain| drain.since.rfc3339()),
    }
}
