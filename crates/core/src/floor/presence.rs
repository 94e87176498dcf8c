//! Who comes and goes: workers that beat, workers that fall silent, listeners without a name.

use super::{Floor, Holder, Seat};
use crate::fleet::{Beat, Slot, Worker};
use crate::id::{JobId, Topic, WorkerId};
use crate::time::Millis;

/// A worker that says "idle" this often in a row does not hold what we gave it before that.
const IDLE_BEATS: u8 = 2;
/// And only what it has had for at least this long: the packet may still be on its way.
const IDLE_GRACE_MS: i64 = 10_000;

/// A worker that left, and the jobs it had. A listener without a name leaves its jobs behind, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    pub worker: Option<WorkerId>,
    pub jobs: Vec<JobId>,
}

/// What a beat brought to light.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heard {
    /// It was not known before.
    pub joined: bool,
    /// Jobs that it should hold and does not: it says it is idle.
    pub forgotten: Vec<JobId>,
}

impl Floor {
    /// A heartbeat. Nothing if the fleet is full.
    pub fn beat(&mut self, worker: &WorkerId, beat: &Beat, now: Millis) -> Option<Heard> {
        let joined = self.fleet.find(worker.as_str()).is_none();
        let slot = self.admit(worker, now)?;
        self.index.update(slot, &mut self.fleet, |fleet| fleet.beat(slot, beat));
        let forgotten =
            self.fleet.get(slot).map_or_else(Vec::new, |worker| self.forgotten(slot, worker, now));
        Some(Heard { joined, forgotten })
    }

    /// A handshake, or a subscription seen on the transport: the worker is there and serves topics.
    pub fn serves(
        &mut self,
        worker: &WorkerId,
        topics: impl IntoIterator<Item = Topic>,
        now: Millis,
    ) -> Option<Slot> {
        let slot = self.admit(worker, now)?;
        self.index.update(slot, &mut self.fleet, |fleet| {
            let worker = fleet.get_mut(slot)?;
            worker.counts_jobs = true;
            worker.heard();
            let ix = worker.profile;
            let mut changed = (**fleet.profile(ix)).clone();
            changed.topics.extend(topics);
            fleet.set_profile(slot, changed);
            Some(slot)
        })
    }

    /// Nobody listens for this worker: it gets no new jobs until it is heard again.
    pub fn deaf(&mut self, worker: &WorkerId) {
        if let Some(slot) = self.fleet.find(worker.as_str()) {
            self.index
                .update(slot, &mut self.fleet, |fleet| fleet.get_mut(slot).map(|worker| worker.deaf = true));
        }
    }

    /// So many connections listen on a topic without telling who they are.
    pub fn listeners(&mut self, topic: &Topic, count: u32) {
        self.crowds.set(topic, count);
        self.index.touch_topic(topic);
    }

    /// A nameless listener has this job.
    pub fn heard_by_connection(&mut self, job: &JobId, connection: u64) {
        if matches!(self.seats.get(job), Some(Seat::Held { by: Holder::Crowd(_), .. })) {
            self.crowds.note(job, connection);
        }
    }

    /// A nameless listener is gone. It has one TTL to come back with its results.
    pub fn connection_gone(&mut self, connection: u64, now: Millis) {
        self.crowds.connection_gone(connection, now);
    }

    /// The workers whose time is up, with what they held. Their jobs keep their seats until they are settled.
    pub fn expire(&mut self, now: Millis) -> Vec<Gone> {
        let dead = self.fleet.expire(now);
        let mut gone: Vec<Gone> = dead.into_iter().filter_map(|slot| self.remove(slot)).collect();
        let orphans = self.crowds.orphans_by(now);
        if !orphans.is_empty() {
            gone.push(Gone { worker: None, jobs: orphans });
        }
        gone
    }

    /// We were deaf ourselves for a while.
    pub fn forgive(&mut self, away_ms: i64, now: Millis) {
        self.fleet.forgive(away_ms, now);
    }

    fn admit(&mut self, worker: &WorkerId, now: Millis) -> Option<Slot> {
        if let Some(slot) = self.fleet.find(worker.as_str()) {
            self.fleet.get_mut(slot)?.last_seen = now;
            return Some(slot);
        }
        let slot = self.fleet.admit(worker, now)?;
        self.index.rejoin(slot, &self.fleet);
        Some(slot)
    }

    /// A job says that this worker has it. If we do not know the worker (we have just started), it is
    /// expected: it has one TTL to be heard.
    pub(super) fn admit_expected(&mut self, worker: &WorkerId, now: Millis) -> Option<Slot> {
        if let Some(slot) = self.fleet.find(worker.as_str()) {
            return Some(slot);
        }
        let slot = self.fleet.admit(worker, now)?;
        if let Some(worker) = self.fleet.get_mut(slot) {
            worker.deaf = true;
            worker.expected = true;
        }
        self.index.rejoin(slot, &self.fleet);
        Some(slot)
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<Gone> {
        let worker = self.index.update(slot, &mut self.fleet, |fleet| fleet.remove(slot))?;
        let jobs = self.held_by.remove(&slot).unwrap_or_default();
        for job in &jobs {
            if let Some(Seat::Held { tenant, .. }) = self.seats.remove(job) {
                self.release_tenant(&tenant);
            }
        }
        Some(Gone { worker: Some(worker.id), jobs: jobs.into_iter().collect() })
    }

    fn forgotten(&self, slot: Slot, worker: &Worker, now: Millis) -> Vec<JobId> {
        if !worker.counts_jobs || worker.idle_beats < IDLE_BEATS {
            return Vec::new();
        }
        let old = |job: &&JobId| match self.seats.get(*job) {
            Some(Seat::Held { since, .. }) => now.since(*since) >= IDLE_GRACE_MS,
            _ => false,
        };
        self.held_by.get(&slot).into_iter().flatten().filter(old).cloned().collect()
    }
}
