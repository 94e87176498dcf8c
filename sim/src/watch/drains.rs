//! Drained workers get nothing new, and what they had leaves them in time.

use super::jobs::TAKEN_BACK_MS;
use super::workers::Seen;
use crate::invariants::Verdict;
use crate::operators::Held;
use crate::sights::Sight;
use crate::world::World;
use reveille_core::job::{Event, Job, Phase};
use reveille_core::time::Millis;

/// What was decided before the drain may still be committed for this long.
const DECIDED_MS: i64 = 1_000;

/// A commit became durable: it must not give a drained worker something new.
pub fn committed(world: &World, job: &Job) -> Verdict {
    let Phase::Dispatched(attempt) = &job.phase else { return Ok(()) };
    let Some(worker) = attempt.worker.as_ref().filter(|_| is_assigned(job)) else { return Ok(()) };
    let of_pool = || world.drains.of_pool(attempt.pool.as_ref()?);
    let Some(drain) = world.drains.of_worker(worker).or_else(of_pool) else { return Ok(()) };
    let late_ms = attempt.dispatched_at.since(drain.since.max(world.calm.since()));
    if late_ms > DECIDED_MS {
        return Err(format!("{} was given to {worker}, which is drained", job.id()));
    }
    Ok(())
}

/// What is still at a drained worker when its time is over goes elsewhere.
pub fn has_left(world: &World, job: &Job, seen: &Seen, calm_since: Millis, now: Millis) -> Verdict {
    let Some(worker) = job.attempt().and_then(|attempt| attempt.worker.as_ref()) else { return Ok(()) };
    let Some(plan) = world.worker_plan(worker) else { return Ok(()) };
    // A pool's drain holds for a worker once the server knows that the worker is in it.
    let of_pool = || {
        let known_since = seen.pool_known_since(worker, &plan.pool)?;
        let drain = world.drains.of_pool(&plan.pool)?;
        Some(Held { since: drain.since.max(known_since), ..drain })
    };
    let Some(drain) = world.drains.of_worker(worker).or_else(of_pool) else { return Ok(()) };
    if now < drain.until {
        world.sights.saw(Sight::DrainedAtWork);
    }
    let late_ms = now.since(drain.until.max(drain.since).max(calm_since).max(job.updated_at));
    if late_ms > TAKEN_BACK_MS {
        return Err(format!("{} is at {worker} {late_ms} ms after it should have left", job.id()));
    }
    Ok(())
}

fn is_assigned(job: &Job) -> bool {
    job.request.delegated.is_none() && job.marks.last().is_some_and(|mark| mark.event == Event::Assign)
}
