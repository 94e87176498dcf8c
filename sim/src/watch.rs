//! Promises with a time in them, looked at several times a second: the dead are noticed, the living
//! are not buried, deadlines fire, and nobody waits beside an idle worker.

use crate::plan::Kind;
use crate::world::{World, sleep_ms};
use reveille_core::fleet::CAP_TTL_MS;
use reveille_core::id::WorkerId;
use reveille_core::job::{Job, Phase};
use reveille_core::time::Millis;
use reveille_engine::{Engine, WorkerView};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How late a death may be noticed.
const NOTICED_MS: i64 = 100;
/// How late a deadline may fire.
const DEADLINE_MS: i64 = 1_000;
/// How long the jobs of a dead worker may need to be taken from it once it is known to be dead.
const TAKEN_BACK_MS: i64 = 2_000;
/// How long a job may wait beside a worker that fits it and has nothing to do.
const PLACED_MS: i64 = 5_000;
/// When everybody has had time to say who they are.
const INTRODUCED_MS: i64 = 15_000;
/// A store that failed is left alone for a second; a slow answer may be on its way for three.
const RECOVERS_MS: i64 = 1_100;
/// What has arrived in this very moment may not have been read.
const SETTLED_MS: i64 = 2;
const TICK_MS: i64 = 50;
/// Not a divisor of anything the engine does.
const LOOK_MS: i64 = 230;

/// When the server last heard of whom, and since when it could have acted on it.
#[derive(Default)]
pub struct Watched(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    life: u64,
    recovered_at: Option<Millis>,
    heard: BTreeMap<WorkerId, Hearing>,
    /// Workers that are only expected back, since when.
    expected: BTreeMap<WorkerId, Millis>,
    idle: BTreeMap<WorkerId, Millis>,
}

/// The last that was heard of a worker.
#[derive(Debug, Clone, Copy, Default)]
struct Hearing {
    at: Millis,
    /// Each pause of the server may have been taken for a little longer than it was.
    doubt_ms: i64,
}

/// When the store or the server last gave anybody trouble.
#[derive(Default)]
pub struct Calm(Mutex<Millis>);

impl Calm {
    pub fn disturbed(&self, at: Millis) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (*last).max(at);
    }

    fn since(&self) -> Millis {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) + RECOVERS_MS
    }
}

impl Watched {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something of this worker reached the server.
    pub fn heard(&self, worker: &WorkerId, at: Millis) {
        self.seen().heard.insert(worker.clone(), Hearing { at, doubt_ms: 0 });
    }

    /// The server stood still: that time counts for nobody.
    pub fn paused(&self, ms: i64) {
        let mut seen = self.seen();
        let Seen { heard, expected, idle, .. } = &mut *seen;
        for hearing in heard.values_mut() {
            hearing.at = hearing.at + ms;
            hearing.doubt_ms += TICK_MS;
        }
        for at in expected.values_mut().chain(idle.values_mut()) {
            *at = *at + ms + TICK_MS;
        }
    }

    pub fn new_life(&self, life: u64) {
        *self.seen() = Seen { life, ..Seen::default() };
    }
}

/// Looks again and again.
pub async fn watch(world: Arc<World>) {
    loop {
        sleep_ms(LOOK_MS).await;
        let Some((engine, life)) = world.server.engine() else { continue };
        let mut seen = world.watched.seen();
        if seen.life != life.number {
            continue;
        }
        if let Err(words) = look(&world, &engine, &mut seen) {
            drop(seen);
            world.fail(&words);
        }
    }
}

fn look(world: &World, engine: &Engine, seen: &mut Seen) -> Result<(), String> {
    let now = world.now();
    let workers = engine.workers();
    presence(world, seen, &workers, now)?;
    if seen.recovered_at.is_none() && engine.is_recovered() {
        seen.recovered_at = Some(now);
    }
    let Some(recovered_at) = seen.recovered_at else { return Ok(()) };
    let calm_since = recovered_at.max(world.calm.since());
    for job in world.live_jobs() {
        deadline(&job, calm_since, now)?;
        taken_back(&job, seen, calm_since, now)?;
        placed(world, &job, seen, calm_since, now)?;
    }
    Ok(())
}

fn presence(world: &World, seen: &mut Seen, workers: &[WorkerView], now: Millis) -> Result<(), String> {
    for WorkerView { worker, .. } in workers {
        let name = &worker.id;
        if world.worker_plan(name).is_some_and(|plan| plan.kind == Kind::Runner) {
            return Err(format!("{name} never says that it is there, and is listed"));
        }
        let since = match seen.heard.get(name) {
            Some(heard) if !worker.expected => heard.at + heard.doubt_ms,
            None if !worker.expected => return Err(format!("{name} is listed and was never heard")),
            _ => *seen.expected.entry(name.clone()).or_insert(now),
        };
        if !worker.expected {
            seen.expected.remove(name);
        }
        let silent_ms = now.since(since);
        if silent_ms > CAP_TTL_MS + NOTICED_MS {
            return Err(format!("{name} is listed {silent_ms} ms after it was last heard"));
        }
        if worker.active() > 0 || worker.deaf {
            seen.idle.remove(name);
        } else {
            seen.idle.entry(name.clone()).or_insert(now);
        }
    }
    let listed = |name: &WorkerId| workers.iter().any(|view| view.worker.id == *name);
    seen.expected.retain(|name, _| listed(name));
    seen.idle.retain(|name, _| listed(name));
    for (name, heard) in &seen.heard {
        let ago_ms = now.since(heard.at);
        if (SETTLED_MS..CAP_TTL_MS).contains(&ago_ms) && !listed(name) {
            return Err(format!("{name} was heard {ago_ms} ms ago and is not listed"));
        }
    }
    Ok(())
}

fn deadline(job: &Job, calm_since: Millis, now: Millis) -> Result<(), String> {
    let Some(deadline) = job.deadline().filter(|_| !job.state().is_terminal()) else { return Ok(()) };
    let late_ms = now.since(deadline.max(calm_since));
    if late_ms > DEADLINE_MS {
        return Err(format!("{} is {} {late_ms} ms after its deadline", job.id(), job.state()));
    }
    Ok(())
}

/// A job at a worker that has gone silent goes elsewhere or ends.
fn taken_back(job: &Job, seen: &Seen, calm_since: Millis, now: Millis) -> Result<(), String> {
    let Some(worker) = job.attempt().and_then(|attempt| attempt.worker.as_ref()) else { return Ok(()) };
    let heard = seen.heard.get(worker).map(|hearing| hearing.at).unwrap_or_default();
    let silent_ms = now.since(heard.max(calm_since).max(job.updated_at));
    if silent_ms > CAP_TTL_MS + NOTICED_MS + TAKEN_BACK_MS {
        return Err(format!("{} is still at {worker}, {silent_ms} ms after that was last heard", job.id()));
    }
    Ok(())
}

/// A job that may go goes as soon as a worker that fits it is free.
fn placed(world: &World, job: &Job, seen: &Seen, calm_since: Millis, now: Millis) -> Result<(), String> {
    let Phase::Scheduled { not_before, .. } = job.phase else { return Ok(()) };
    let request = &job.request;
    // While beats are lost, the server cannot know what a worker serves.
    let Some(quiet_since) = world.quiet_since() else { return Ok(()) };
    if world.plan.is_limited(&request.tenant) || !request.labels.is_empty() {
        return Ok(());
    }
    let since = not_before.max(job.updated_at).max(calm_since).max(quiet_since + INTRODUCED_MS);
    for (name, idle) in &seen.idle {
        let waited_ms = now.since(since.max(*idle));
        if waited_ms > PLACED_MS && world.can_be_given(name, request) {
            return Err(format!("{} has waited {waited_ms} ms beside {name}, which is idle", job.id()));
        }
    }
    Ok(())
}
