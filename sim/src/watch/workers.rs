//! CAP workers: who is listed, who is restored from the snapshot, and until when.

use super::{LastHeard, NOTICED_MS, SETTLED_MS, TICK_MS};
use crate::breakage::Breakage;
use crate::invariants::InvariantResult;
use crate::plan::WorkerKind;
use crate::situations::Situation;
use crate::world::World;
use reveille_core::id::{PoolId, WorkerId};
use reveille_core::presence::Contract;
use reveille_core::time::Millis;
use reveille_engine::{Engine, Snapshot, WorkerView};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A CAP worker that has been silent for so long is dead.
pub const CAP_TTL_MS: i64 = 30_000;

/// An absence that is shorter than this may not be noticed.
const MISSED_MS: i64 = 2_050;

/// When the server last heard of whom, and since when it could have acted on it.
#[derive(Default)]
pub struct WorkersWatched(Mutex<WorkersSeen>);

/// What one life of the server has seen; `ever` is of all of them.
#[derive(Default)]
pub struct WorkersSeen {
    pub life: u64,
    /// Since when it answers.
    pub up_at: Option<Millis>,
    pub recovered_at: Option<Millis>,
    /// How often the safety net has acted.
    pub caught: u64,
    pub heard: BTreeMap<WorkerId, LastHeard>,
    /// Workers that beat, and do not merely listen, since when.
    beaten: BTreeMap<WorkerId, Millis>,
    /// Workers that the start found in the snapshot.
    pub restored: BTreeMap<WorkerId, RestoredEntry>,
    /// Workers that are seen to listen on their own subject, since when.
    pub connected: BTreeMap<WorkerId, Millis>,
    /// Workers that are only expected back, since when.
    expected: BTreeMap<WorkerId, Millis>,
    pub idle: BTreeMap<WorkerId, Millis>,
    ever: BTreeSet<WorkerId>,
    /// What a server that keeps restored workers for ever would go on listing.
    kept: BTreeMap<WorkerId, WorkerView>,
}

/// A worker as the snapshot tells of it.
#[derive(Debug, Clone)]
pub struct RestoredEntry {
    pub hearing: LastHeard,
    pub pool: Option<PoolId>,
}

impl WorkersWatched {
    pub fn seen(&self) -> MutexGuard<'_, WorkersSeen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something of this worker reached the server.
    pub fn heard(&self, worker: &WorkerId, at: Millis) {
        let mut seen = self.seen();
        seen.heard.insert(worker.clone(), LastHeard::at(at));
        seen.ever.insert(worker.clone());
    }

    /// Somebody has heard of it.
    pub fn is_known_of(&self, worker: &WorkerId) {
        self.seen().ever.insert(worker.clone());
    }

    /// The server says that it has lost it. Should a job bring it back before anybody looks, it is expected anew.
    pub fn given_up(&self, worker: &WorkerId) {
        self.seen().expected.remove(worker);
    }

    /// And it was a beat.
    pub fn beaten(&self, worker: &WorkerId, at: Millis) {
        self.heard(worker, at);
        self.seen().beaten.entry(worker.clone()).or_insert(at);
    }

    /// The server has been told that somebody listens for this worker.
    pub fn connected(&self, worker: &WorkerId, at: Millis) {
        self.heard(worker, at);
        self.seen().connected.insert(worker.clone(), at);
    }

    /// It was in the snapshot, is connected, and has not beaten since the server started.
    pub fn is_known_from_the_snapshot_only(&self, worker: &WorkerId) -> bool {
        let seen = self.seen();
        seen.restored.contains_key(worker) && !seen.beaten.contains_key(worker)
    }

    pub fn paused(&self, ms: i64) {
        let mut seen = self.seen();
        let WorkersSeen { heard, restored, expected, idle, connected, up_at, .. } = &mut *seen;
        let restored = restored.values_mut().map(|restored| &mut restored.hearing);
        heard.values_mut().chain(restored).for_each(|hearing| hearing.paused(ms));
        let moments = expected.values_mut().chain(idle.values_mut()).chain(connected.values_mut());
        for at in moments.chain(up_at) {
            *at = *at + ms + TICK_MS;
        }
    }

    /// The server hears again, after this long. Where it started in the middle of that, or hardly missed a tick, it
    /// may forgive it or not.
    pub fn hears_again(&self, deaf_ms: i64, now: Millis) {
        let was_up = self.seen().up_at.is_some_and(|up_at| now - deaf_ms >= up_at);
        if deaf_ms > MISSED_MS && was_up {
            return self.paused(deaf_ms);
        }
        let mut seen = self.seen();
        let WorkersSeen { heard, restored, .. } = &mut *seen;
        let restored = restored.values_mut().map(|restored| &mut restored.hearing);
        for hearing in heard.values_mut().chain(restored) {
            hearing.doubt_ms = hearing.doubt_ms.max(now.since(hearing.at));
        }
    }

    pub fn new_life(&self, life: u64) {
        let mut seen = self.seen();
        let ever = std::mem::take(&mut seen.ever);
        *seen = WorkersSeen { life, ever, ..WorkersSeen::default() };
    }

    /// The server was given this as the snapshot of the workers.
    pub fn snapshot_read(&self, bytes: Option<&[u8]>, now: Millis) {
        let snapshot = bytes.and_then(|bytes| serde_json::from_slice::<Snapshot>(bytes).ok());
        let entries = snapshot.into_iter().flat_map(|snapshot| snapshot.workers);
        let workers = entries.filter(|entry| entry.contract == Contract::Cap).map(|entry| {
            let restored =
                RestoredEntry { hearing: LastHeard::at(now), pool: PoolId::parse(&entry.pool).ok() };
            (WorkerId::known(entry.worker_id), restored)
        });
        self.seen().restored = workers.collect();
    }

    /// The server answers from now on. Says whether it knew anybody.
    pub fn up(&self, now: Millis) -> bool {
        let mut seen = self.seen();
        seen.up_at = Some(now);
        !seen.restored.is_empty()
    }
}

impl WorkersSeen {
    /// Since when the server knows that a worker is in its pool.
    pub fn pool_known_since(&self, worker: &WorkerId, pool: &PoolId) -> Option<Millis> {
        let restored = self.restored.get(worker).filter(|restored| restored.pool.as_ref() == Some(pool));
        restored.map(|restored| restored.hearing.at).or_else(|| self.beaten.get(worker).copied())
    }

    pub fn look(&mut self, world: &World, engine: &Engine, now: Millis) -> InvariantResult {
        let mut workers = engine.fleet().workers();
        workers.retain(|view| view.worker.contract() == Contract::Cap);
        if world.breakage == Some(Breakage::KeepRestored) {
            self.keep(&mut workers);
        }
        for view in &workers {
            self.may_be_listed(world, view, now)?;
            self.note_idle(view, now);
        }
        let listed = |name: &WorkerId| workers.iter().any(|view| view.worker.id == *name);
        self.expected.retain(|name, _| listed(name));
        self.idle.retain(|name, _| listed(name));
        // Who is evicted says who it is with its next beat.
        self.beaten.retain(|name, _| listed(name));
        for (name, heard) in &self.heard {
            let ago_ms = now.since(heard.at);
            if (SETTLED_MS..CAP_TTL_MS).contains(&ago_ms) && !listed(name) {
                return Err(format!("{name} was heard {ago_ms} ms ago and is not listed"));
            }
        }
        for (name, restored) in &self.restored {
            let ago_ms = now.since(restored.hearing.at);
            if ago_ms < CAP_TTL_MS && !listed(name) {
                return Err(format!("{name} was in the snapshot {ago_ms} ms ago and is not listed"));
            }
        }
        self.restored.retain(|name, _| {
            let stays = listed(name);
            if !stays {
                world.situations.record(Situation::RestoredGone);
            }
            stays
        });
        Ok(())
    }

    fn may_be_listed(&mut self, world: &World, view: &WorkerView, now: Millis) -> InvariantResult {
        let (worker, name) = (&view.worker, &view.worker.id);
        if world.worker_plan(name).is_some_and(|plan| plan.kind == WorkerKind::Runner) {
            return Err(format!("{name} never says that it is there, and is listed"));
        }
        if !self.ever.contains(name) {
            return Err(format!("{name} is listed and no life of the server ever heard it"));
        }
        let heard = self.heard.get(name);
        if worker.restored && heard.is_some_and(|heard| now.since(heard.at) >= SETTLED_MS) {
            return Err(format!("{name} was heard and still counts as restored"));
        }
        let restored = self.restored.get(name).filter(|_| worker.restored);
        let since = match (heard, restored) {
            _ if worker.expected => *self.expected.entry(name.clone()).or_insert(now),
            (Some(heard), _) => heard.latest(),
            (None, Some(restored)) => restored.hearing.latest().max(self.up_at.unwrap_or(now)),
            (None, None) => return Err(format!("{name} is listed and was never heard")),
        };
        if !worker.expected {
            self.expected.remove(name);
        }
        let silent_ms = now.since(since);
        if silent_ms > CAP_TTL_MS + NOTICED_MS {
            return Err(format!("{name} is listed {silent_ms} ms after it was last heard"));
        }
        Ok(())
    }

    fn note_idle(&mut self, view: &WorkerView, now: Millis) {
        let worker = &view.worker;
        if worker.active() > 0 || worker.unreachable || worker.drained {
            self.idle.remove(&worker.id);
        } else {
            self.idle.entry(worker.id.clone()).or_insert(now);
        }
    }

    /// Adds those that were restored and have gone.
    fn keep(&mut self, workers: &mut Vec<WorkerView>) {
        for view in workers.iter() {
            let id = &view.worker.id;
            if view.worker.restored {
                self.kept.insert(id.clone(), view.clone());
            } else {
                self.kept.remove(id);
            }
        }
        let gone =
            self.kept.values().filter(|kept| !workers.iter().any(|view| view.worker.id == kept.worker.id));
        let gone: Vec<WorkerView> = gone.cloned().collect();
        workers.extend(gone);
    }
}
