//! Jobs: deadlines fire, the jobs of the dead are taken back, and nobody waits beside an idle worker.

use super::workers::{CAP_TTL_MS, WorkersSeen};
use super::{NOTICED_MS, drains};
use crate::breakage::Breakage;
use crate::invariants::InvariantResult;
use crate::world::World;
use reveille_core::job::{Job, Phase};
use reveille_core::time::Millis;
use reveille_engine::Engine;

/// How late a deadline may fire.
pub const DEADLINE_MS: i64 = 1_000;
/// How long the jobs of a dead worker may need to be taken from it once it is known to be dead.
pub const TAKEN_BACK_MS: i64 = 2_000;
/// How long a job may wait beside a worker that fits it and has nothing to do.
pub const PLACED_MS: i64 = 5_000;
/// The same, when the worker was in the snapshot and its connection is seen.
const WARM_MS: i64 = 1_000;
/// When everybody has had time to say who they are.
const INTRODUCED_MS: i64 = 15_000;

pub fn look(world: &World, engine: &Engine, seen: &mut WorkersSeen, now: Millis) -> InvariantResult {
    if seen.recovered_at.is_none() && engine.is_recovered() {
        seen.recovered_at = Some(now);
    }
    if world.breakage.is_some_and(Breakage::loses_timers) {
        return Ok(());
    }
    let jobs = world.live_jobs();
    for job in &jobs {
        placed_at_once(world, job, seen, now)?;
    }
    let Some(recovered_at) = seen.recovered_at else { return Ok(()) };
    let calm_since = recovered_at.max(world.calm.since());
    for job in &jobs {
        deadline(world, job, calm_since, now)?;
        taken_back(world, job, seen, calm_since, now)?;
        placed(world, job, seen, calm_since, now)?;
        drains::has_left(world, job, seen, calm_since, now)?;
    }
    Ok(())
}

pub fn deadline(world: &World, job: &Job, calm_since: Millis, now: Millis) -> InvariantResult {
    let Some(deadline) = job.deadline().filter(|_| !job.state().is_terminal()) else { return Ok(()) };
    let since = world.when(deadline).max(world.deadline_since(job.id()));
    let late_ms = now.since(since.max(calm_since));
    if late_ms > DEADLINE_MS {
        return Err(format!("{} is {} {late_ms} ms after its deadline", job.id(), job.state()));
    }
    Ok(())
}

/// A job at a worker that has gone silent goes elsewhere or ends.
fn taken_back(
    world: &World,
    job: &Job,
    seen: &WorkersSeen,
    calm_since: Millis,
    now: Millis,
) -> InvariantResult {
    if job.request.delegated.is_some() {
        return Ok(());
    }
    let Some(worker) = job.attempt().and_then(|attempt| attempt.worker.as_ref()) else { return Ok(()) };
    let heard = seen.heard.get(worker).map(|hearing| hearing.at).unwrap_or_default();
    let silent_ms = now.since(heard.max(calm_since).max(world.when(job.updated_at)));
    if silent_ms > CAP_TTL_MS + NOTICED_MS + TAKEN_BACK_MS {
        return Err(format!("{} is still at {worker}, {silent_ms} ms after that was last heard", job.id()));
    }
    Ok(())
}

/// A job that may go goes as soon as a worker that fits it is free.
fn placed(world: &World, job: &Job, seen: &WorkersSeen, calm_since: Millis, now: Millis) -> InvariantResult {
    // While beats are lost, the server cannot know what a worker serves.
    let (Some(quiet_since), Some(up_at)) = (world.quiet_since(), seen.up_at) else { return Ok(()) };
    let Some(waits_since) = waits_for_anybody(world, job) else { return Ok(()) };
    let since = waits_since.max(calm_since).max(quiet_since.max(up_at) + INTRODUCED_MS);
    for (name, idle) in &seen.idle {
        let waited_ms = now.since(since.max(*idle));
        if waited_ms > PLACED_MS && world.can_be_given(name, &job.request) {
            return Err(format!("{} has waited {waited_ms} ms beside {name}, which is idle", job.id()));
        }
    }
    Ok(())
}

/// No blind spot: what a restarted server knows from the snapshot is enough to give a worker its jobs as
/// soon as its connection is seen, before it has beaten even once.
fn placed_at_once(world: &World, job: &Job, seen: &WorkersSeen, now: Millis) -> InvariantResult {
    let Some(up_at) = seen.up_at else { return Ok(()) };
    let Some(waits_since) = waits_for_anybody(world, job) else { return Ok(()) };
    let since = waits_since.max(up_at).max(world.calm.since());
    for (name, idle) in &seen.idle {
        let (Some(restored), Some(connected)) = (seen.restored.get(name), seen.connected.get(name)) else {
            continue;
        };
        let is_known = world.worker_plan(name).is_some_and(|plan| restored.pool.as_ref() == Some(&plan.pool));
        let waited_ms = now.since(since.max(*idle).max(*connected));
        if waited_ms > WARM_MS && is_known && world.can_be_given(name, &job.request) {
            let id = job.id();
            return Err(format!("{id} has waited {waited_ms} ms beside {name}, known from the snapshot"));
        }
    }
    Ok(())
}

/// Since when a job waits for nothing but a worker, if that is so and any worker of its pools will do.
pub fn waits_for_anybody(world: &World, job: &Job) -> Option<Millis> {
    let Phase::Scheduled { not_before, .. } = job.phase else { return None };
    let request = &job.request;
    let is_free = !world.plan.is_limited(request) && request.labels.is_empty();
    (is_free && request.delegated.is_none()).then(|| world.when(not_before.max(job.updated_at)))
}
