//! The same promises where several servers share the work. Whoever is there keeps them together: a server that dies is
//! followed within a few seconds, and clocks that are apart cost as much as they are apart.

use super::jobs::{PLACED_MS, TAKEN_BACK_MS, deadline, waits_for_anybody};
use super::workers::CAP_TTL_MS;
use super::{NOTICED_MS, net};
use crate::breakage::Breakage;
use crate::invariants::InvariantResult;
use crate::world::World;
use reveille_core::id::WorkerId;
use reveille_core::job::{Job, Phase};
use reveille_core::time::Millis;
use std::collections::BTreeMap;

/// How long it may take until a silent server's jobs are in other hands: its beats lapse after three seconds, others
/// look every second, and read each job once more.
const TAKEN_OVER_MS: i64 = 6_000;
/// When every server has heard from every worker.
const INTRODUCED_MS: i64 = 20_000;
/// Jobs of others are looked at again this often, should nothing be heard of them.
const LOOKED_AT_MS: i64 = 30_000;

/// How long a packet may need to leave once its attempt is committed.
const SENT_MS: i64 = 3_000;

pub fn look(world: &World) -> InvariantResult {
    let now = world.now();
    let mut ups = Vec::new();
    for server in world.servers() {
        let Some((engine, life)) = server.engine() else { continue };
        let mut seen = server.watched.seen();
        if seen.life != life.number || server.is_stopped() || !server.hears() {
            continue;
        }
        if seen.recovered_at.is_none() && engine.is_recovered() {
            seen.recovered_at = Some(now);
        }
        let verdict = seen.look(world, &engine, now).and_then(|()| net::look(world, &engine, &mut seen, now));
        verdict.map_err(|words| format!("{}: {words}", life.name()))?;
        ups.extend(seen.recovered_at);
    }
    // Somebody has to be there, and everybody who starts has to find its feet.
    let Some(up_at) = ups.iter().max().filter(|_| ups.len() == world.servers().len()) else { return Ok(()) };
    let calm_since = (*up_at).max(world.calm.since()).max(world.roster_calm.since()) + TAKEN_OVER_MS;
    if world.breakage.is_some_and(Breakage::loses_timers) {
        return Ok(());
    }
    let (heard, idle) = (last_heard(world), idle_for_all(world));
    for job in &world.live_jobs() {
        deadline(world, job, calm_since, now)?;
        taken_back(world, job, &heard, calm_since, now)?;
        placed(world, job, &idle, calm_since, now)?;
        sent(world, job, calm_since, now)?;
    }
    Ok(())
}

/// A job at a worker that nobody hears any more goes elsewhere or ends.
fn taken_back(
    world: &World,
    job: &Job,
    heard: &BTreeMap<WorkerId, Millis>,
    calm_since: Millis,
    now: Millis,
) -> InvariantResult {
    if job.request.delegated.is_some() {
        return Ok(());
    }
    let Some(worker) = job.attempt().and_then(|attempt| attempt.worker.as_ref()) else { return Ok(()) };
    let heard = heard.get(worker).copied().unwrap_or_default();
    let silent_ms = now.since(heard.max(calm_since).max(world.when(job.updated_at)));
    if silent_ms > CAP_TTL_MS + NOTICED_MS + TAKEN_BACK_MS {
        return Err(format!("{} is still at {worker}, {silent_ms} ms after that was last heard", job.id()));
    }
    Ok(())
}

/// A job that may go goes as soon as a worker that fits it is free in everybody's eyes.
fn placed(
    world: &World,
    job: &Job,
    idle: &BTreeMap<WorkerId, Millis>,
    calm_since: Millis,
    now: Millis,
) -> InvariantResult {
    let Some(quiet_since) = world.quiet_since() else { return Ok(()) };
    let Some(waits_since) = waits_for_anybody(world, job) else { return Ok(()) };
    // What a lost word would have said is found by looking.
    let since = waits_since.max(calm_since + LOOKED_AT_MS).max(quiet_since + INTRODUCED_MS);
    for (name, idle) in idle {
        let waited_ms = now.since(since.max(*idle));
        if waited_ms > PLACED_MS && world.can_be_given(name, &job.request) {
            return Err(format!("{} has waited {waited_ms} ms beside {name}, which is idle", job.id()));
        }
    }
    Ok(())
}

/// What was committed as given to a worker is sent to it, whoever has to.
fn sent(world: &World, job: &Job, calm_since: Millis, now: Millis) -> InvariantResult {
    let Phase::Dispatched(attempt) = &job.phase else { return Ok(()) };
    if job.request.delegated.is_some() || world.is_sent(job.id(), attempt.number) {
        return Ok(());
    }
    let late_ms = now.since(world.when(attempt.dispatched_at).max(calm_since));
    if late_ms > SENT_MS {
        let (id, number) = (job.id(), attempt.number);
        return Err(format!("attempt {number} of {id} is committed and its packet is {late_ms} ms late"));
    }
    Ok(())
}

fn last_heard(world: &World) -> BTreeMap<WorkerId, Millis> {
    let mut heard = BTreeMap::<WorkerId, Millis>::new();
    for server in world.servers() {
        for (worker, hearing) in &server.watched.seen().heard {
            let last = heard.entry(worker.clone()).or_default();
            *last = (*last).max(hearing.latest());
        }
    }
    heard
}

/// Since when every server takes a worker to be idle.
fn idle_for_all(world: &World) -> BTreeMap<WorkerId, Millis> {
    let mut all: Option<BTreeMap<WorkerId, Millis>> = None;
    for server in world.servers() {
        let idle = server.watched.seen().idle.clone();
        all = Some(match all {
            None => idle,
            Some(before) => {
                let both = before.into_iter().filter_map(|(name, at)| {
                    let other = *idle.get(&name)?;
                    Some((name, at.max(other)))
                });
                both.collect()
            }
        });
    }
    all.unwrap_or_default()
}
