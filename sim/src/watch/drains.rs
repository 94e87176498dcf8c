//! Drained workers get nothing new, and what they had leaves them in time.

use super::jobs::TAKEN_BACK_MS;
use super::workers::WorkersSeen;
use crate::invariants::InvariantResult;
use crate::operators::DrainRecord;
use crate::situations::Situation;
use crate::world::World;
use reveille_core::job::{Job, Phase};
use reveille_core::time::Millis;
use std::sync::Arc;

/// What was decided before the drain may still be committed for this long.
const DECIDED_MS: i64 = 1_000;

/// How long it takes until the other servers know of a drain.
const FOLLOWED_MS: i64 = 2_000;

/// A commit became durable: it must not give a drained worker something new.
pub fn committed(world: &World, before: Option<&Arc<Job>>, job: &Job) -> InvariantResult {
    let Phase::Dispatched(attempt) = &job.phase else { return Ok(()) };
    let is_new = before.is_none_or(|before| before.attempts.len() < job.attempts.len());
    let is_assigned = is_new && job.request.delegated.is_none();
    let Some(worker) = attempt.worker.as_ref().filter(|_| is_assigned) else { return Ok(()) };
    let of_pool = || world.drains.of_pool(attempt.pool.as_ref()?);
    let Some(drain) = world.drains.of_worker(worker).or_else(of_pool) else { return Ok(()) };
    let since = drain.since.max(world.calm.since());
    let (late_ms, decided_ms) = if world.plan.is_shared() {
        (world.now().since(since.max(world.roster_calm.since())), DECIDED_MS + FOLLOWED_MS)
    } else {
        (world.when(attempt.dispatched_at).since(since), DECIDED_MS)
    };
    if late_ms > decided_ms {
        return Err(format!("{} was given to {worker}, which is drained", job.id()));
    }
    Ok(())
}

/// What is still at a drained worker when its time is over goes elsewhere.
pub fn has_left(
    world: &World,
    job: &Job,
    seen: &WorkersSeen,
    calm_since: Millis,
    now: Millis,
) -> InvariantResult {
    let Some(worker) = job.attempt().and_then(|attempt| attempt.worker.as_ref()) else { return Ok(()) };
    let Some(plan) = world.worker_plan(worker) else { return Ok(()) };
    // A pool's drain holds for a worker once the server knows that the worker is in it.
    let of_pool = || {
        let known_since = seen.pool_known_since(worker, &plan.pool)?;
        let drain = world.drains.of_pool(&plan.pool)?;
        Some(DrainRecord { since: drain.since.max(known_since), ..drain })
    };
    let Some(drain) = world.drains.of_worker(worker).or_else(of_pool) else { return Ok(()) };
    let until = world.when(drain.until);
    if now < until {
        world.situations.record(Situation::DrainedAtWork);
    }
    let late_ms = now.since(until.max(drain.since).max(calm_since).max(world.when(job.updated_at)));
    if late_ms > TAKEN_BACK_MS {
        return Err(format!("{} is at {worker} {late_ms} ms after it should have left", job.id()));
    }
    Ok(())
}
