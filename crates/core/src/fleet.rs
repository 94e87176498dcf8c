//! The fleet: every worker we know of, how loaded it is, and when it counts as dead.
//!
//! Built for a million workers: a worker is one slot of a slab, what workers have in common (pool,
//! labels, capabilities, topics) is stored once as a [`Profile`], and expiry is a ring that costs a
//! beat nothing. Death is a matter of [`Fleet::expire`], called on a timer; nothing scans.

mod profiles;
mod ring;

use crate::id::{PoolId, Topic, WorkerId};
use crate::time::Millis;
use profiles::Profiles;
use ring::Ring;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub const WORKERS_MAX: usize = 2_000_000;
/// Workers that may be declared dead in one look. A whole fleet that falls silent at once is more likely
/// our own trouble than theirs, and its jobs are not thrown back all in the same instant.
pub const DEATHS_MAX: usize = 2_000;
/// How often the fleet is looked at, about.
const TICK_MS: i64 = 50;
/// A CAP worker that has not been heard for this long is dead.
pub const CAP_TTL_MS: i64 = 30_000;

/// What a heartbeat tells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Beat {
    pub pool: Option<PoolId>,
    pub region: String,
    pub kind: String,
    pub agent_name: String,
    pub capabilities: BTreeSet<String>,
    pub labels: BTreeMap<String, String>,
    pub load: Load,
}

/// The numbers of a heartbeat. Percentages run from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    pub active_jobs: u32,
    pub max_parallel_jobs: u32,
    pub cpu: f32,
    pub gpu: f32,
    pub memory: f32,
}

/// What many workers have in common; placement looks at nothing else of a worker but its load.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Profile {
    pub pool: Option<PoolId>,
    pub region: String,
    pub kind: String,
    pub capabilities: BTreeSet<String>,
    pub labels: BTreeMap<String, String>,
    /// Topics the worker said it serves, or was seen listening on.
    pub topics: BTreeSet<Topic>,
}

pub type Slot = u32;
pub type ProfileIx = u32;

#[derive(Debug, Clone)]
pub struct Worker {
    pub id: WorkerId,
    pub profile: ProfileIx,
    pub last_seen: Millis,
    pub load: Load,
    /// Jobs it runs that did not come from us, as of its last beat.
    pub foreign_jobs: u32,
    /// Jobs of ours at this worker, counted here and not by it.
    pub held: u32,
    /// Beats in a row that said "nothing to do".
    pub idle_beats: u8,
    /// It counts its jobs truthfully: it introduced itself, or listens on its own subject.
    pub counts_jobs: bool,
    /// A packet for it reached nobody; no new jobs until it is heard again.
    pub deaf: bool,
    /// A job says that it has it; it has not been heard since we started.
    pub expected: bool,
    agent_name: Option<Box<str>>,
    armed: u32,
}

impl Worker {
    pub fn agent_name(&self) -> &str {
        self.agent_name.as_deref().unwrap_or_default()
    }

    /// It is there after all.
    pub fn heard(&mut self) {
        self.deaf = false;
        self.expected = false;
    }

    pub fn active(&self) -> u32 {
        self.held + self.foreign_jobs
    }

    /// A worker that does not say how much it can do gets one job at a time.
    pub fn capacity(&self) -> u32 {
        self.load.max_parallel_jobs.max(1)
    }

    /// At one of the three limits: 90 % of its jobs, of its CPU, of its GPU.
    pub fn is_overloaded(&self) -> bool {
        u64::from(self.active()) * 10 >= u64::from(self.capacity()) * 9
            || self.load.cpu >= 90.0
            || self.load.gpu >= 90.0
    }

    /// Jobs plus CPU and GPU as fractions, in thousandths; the lowest gets the next job.
    pub fn score(&self) -> u32 {
        let busy = (self.load.cpu.clamp(0.0, 100.0) + self.load.gpu.clamp(0.0, 100.0)) * 10.0;
        self.active().saturating_mul(1000).saturating_add(busy as u32)
    }
}

#[derive(Default)]
pub struct Fleet {
    workers: Vec<Option<Worker>>,
    free: Vec<Slot>,
    by_id: FxHashMap<WorkerId, Slot>,
    profiles: Profiles,
    ring: Ring,
}

impl Fleet {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn find(&self, id: &str) -> Option<Slot> {
        self.by_id.get(id).copied()
    }

    pub fn get(&self, slot: Slot) -> Option<&Worker> {
        self.workers.get(slot as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Worker> {
        self.workers.get_mut(slot as usize)?.as_mut()
    }

    pub fn profile(&self, ix: ProfileIx) -> &Arc<Profile> {
        self.profiles.get(ix)
    }

    /// Every worker, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Worker)> {
        self.workers.iter().enumerate().filter_map(|(slot, worker)| Some((slot as Slot, worker.as_ref()?)))
    }

    /// Someone with this name is there. A newcomer gets a bare slot; nothing if the fleet is full.
    pub fn admit(&mut self, id: &WorkerId, now: Millis) -> Option<Slot> {
        if let Some(slot) = self.find(id.as_str()) {
            self.get_mut(slot)?.last_seen = now;
            return Some(slot);
        }
        if self.len() >= WORKERS_MAX {
            return None;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.workers.push(None);
            (self.workers.len() - 1) as Slot
        });
        let armed = self.ring.arm(slot, now + CAP_TTL_MS);
        let profile = self.profiles.hold(Profile::default());
        self.workers[slot as usize] = Some(Worker {
            id: id.clone(),
            profile,
            last_seen: now,
            load: Load::default(),
            foreign_jobs: 0,
            held: 0,
            idle_beats: 0,
            counts_jobs: false,
            deaf: false,
            expected: false,
            agent_name: None,
            armed,
        });
        self.by_id.insert(id.clone(), slot);
        Some(slot)
    }

    /// Takes over what a beat tells. Says whether the worker's profile is another one now.
    pub fn beat(&mut self, slot: Slot, beat: &Beat) -> bool {
        let Some(worker) = self.workers[slot as usize].as_mut() else { return false };
        worker.load = beat.load;
        worker.foreign_jobs = beat.load.active_jobs.saturating_sub(worker.held);
        worker.idle_beats = if beat.load.active_jobs == 0 { worker.idle_beats.saturating_add(1) } else { 0 };
        worker.heard();
        if worker.agent_name() != beat.agent_name {
            worker.agent_name = Some(beat.agent_name.as_str().into());
        }
        let profile = self.profiles.get(worker.profile);
        let same = profile.pool == beat.pool
            && profile.region == beat.region
            && profile.kind == beat.kind
            && profile.capabilities == beat.capabilities
            && profile.labels == beat.labels;
        if same {
            return false;
        }
        let changed = Profile {
            pool: beat.pool.clone(),
            region: beat.region.clone(),
            kind: beat.kind.clone(),
            capabilities: beat.capabilities.clone(),
            labels: beat.labels.clone(),
            topics: profile.topics.clone(),
        };
        self.set_profile(slot, changed);
        true
    }

    /// Gives a worker another profile.
    pub fn set_profile(&mut self, slot: Slot, profile: Profile) {
        let ix = self.profiles.hold(profile);
        if let Some(worker) = self.workers[slot as usize].as_mut() {
            self.profiles.release(std::mem::replace(&mut worker.profile, ix));
        }
    }

    pub fn remove(&mut self, slot: Slot) -> Option<Worker> {
        let worker = self.workers.get_mut(slot as usize)?.take()?;
        self.by_id.remove(&worker.id);
        self.profiles.release(worker.profile);
        self.free.push(slot);
        Some(worker)
    }

    /// The workers whose time is up at `now`. They are still there; the caller removes them.
    pub fn expire(&mut self, now: Millis) -> Vec<Slot> {
        let (mut dead, mut spared) = (Vec::new(), 0);
        for (slot, armed) in self.ring.advance(now) {
            // The entry may be of a worker that left, or of one that has the slot since.
            let Some(worker) = self.workers[slot as usize].as_mut().filter(|worker| worker.armed == armed)
            else {
                continue;
            };
            let end = worker.last_seen + CAP_TTL_MS;
            let again = if end > now {
                end
            } else if dead.len() < DEATHS_MAX {
                dead.push(slot);
                now + 1
            } else {
                // Its turn comes in one of the next ticks, in which as many again are looked at.
                spared += 1;
                now + 1 + TICK_MS * (spared / DEATHS_MAX as i64)
            };
            worker.armed = self.ring.arm(slot, again);
        }
        dead
    }

    /// We were away and could not hear anybody: nobody is blamed for that time, and whoever was heard
    /// since gets none of it.
    pub fn forgive(&mut self, away_ms: i64, now: Millis) {
        for worker in self.workers.iter_mut().flatten() {
            worker.last_seen = (worker.last_seen + away_ms).min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_worker_is_dead_after_its_ttl_and_a_beating_one_is_not() {
        let mut fleet = Fleet::default();
        let start = Millis(1_000_000);
        let quiet = fleet.admit(&WorkerId::known("quiet"), start).unwrap();
        let loud = fleet.admit(&WorkerId::known("loud"), start).unwrap();
        let mut dead = Vec::new();
        for ms in (0..=60_000).step_by(50) {
            let now = start + ms;
            if ms % 5_000 == 0 {
                fleet.admit(&WorkerId::known("loud"), now).unwrap();
            }
            for slot in fleet.expire(now) {
                dead.push((fleet.remove(slot).unwrap().id, ms));
            }
        }
        assert_eq!(dead.len(), 1);
        assert_eq!(dead[0].0.as_str(), "quiet");
        assert!((30_000..=30_100).contains(&dead[0].1), "{dead:?}");
        assert!(fleet.get(quiet).is_none() && fleet.get(loud).is_some());
    }

    #[test]
    fn a_slot_that_is_used_again_does_not_inherit_a_death() {
        let mut fleet = Fleet::default();
        let first = fleet.admit(&WorkerId::known("first"), Millis(0)).unwrap();
        fleet.expire(Millis(20_000));
        fleet.remove(first);
        let second = fleet.admit(&WorkerId::known("second"), Millis(20_000)).unwrap();
        assert_eq!(first, second);
        assert!(fleet.expire(Millis(40_000)).is_empty());
        assert_eq!(fleet.expire(Millis(50_100)), [second]);
    }

    #[test]
    fn a_fleet_that_falls_silent_at_once_is_buried_slowly() {
        let mut fleet = Fleet::default();
        for number in 0..DEATHS_MAX + 5 {
            fleet.admit(&WorkerId::known(format!("w{number}")), Millis(0)).unwrap();
        }
        let first = fleet.expire(Millis(31_000));
        assert_eq!(first.len(), DEATHS_MAX);
        for slot in first {
            fleet.remove(slot).unwrap();
        }
        assert_eq!(fleet.expire(Millis(31_050)).len(), 5);
    }

    #[test]
    fn our_own_absence_kills_nobody() {
        let mut fleet = Fleet::default();
        fleet.admit(&WorkerId::known("w"), Millis(0)).unwrap();
        fleet.forgive(60_000, Millis(60_000));
        assert!(fleet.expire(Millis(60_000)).is_empty());
        assert_eq!(fleet.expire(Millis(90_100)).len(), 1);
    }

    #[test]
    fn load_is_what_we_gave_it_plus_what_others_did() {
        let mut fleet = Fleet::default();
        let slot = fleet.admit(&WorkerId::known("w"), Millis(0)).unwrap();
        fleet.get_mut(slot).unwrap().held = 2;
        let load = Load { active_jobs: 3, max_parallel_jobs: 10, cpu: 50.0, gpu: 25.0, memory: 0.0 };
        fleet.beat(slot, &Beat { load, ..Beat::default() });
        let worker = fleet.get_mut(slot).unwrap();
        assert_eq!((worker.active(), worker.score()), (3, 3750));
        worker.held = 0;
        assert_eq!(worker.active(), 1, "what we know to be finished no longer counts");
        worker.held = 8;
        assert!(worker.is_overloaded());
    }
}
