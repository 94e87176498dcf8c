//! Workers that beat and have not announced which topics they serve. One that sent its handshake while no server was
//! there does not send it again, and its beats name no topics.
//!
//! Where the transport shows nobody's subscriptions, the only way to find out is to send a job to its topic and see
//! whether a worker listens. Each topic is tried once for every such worker that appears; whoever sends the result
//! serves the topic.

use crate::id::{Topic, WorkerId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Workers and topics that are remembered; beyond that all are forgotten and seen anew.
const REMEMBERED_MAX: usize = 10_000;

#[derive(Default)]
pub struct UnannouncedWorkers {
    /// Whether topics are tried at all.
    is_enabled: bool,
    workers: FxHashSet<WorkerId>,
    arrivals: u64,
    /// How many had arrived when a topic was last tried.
    tried: FxHashMap<Topic, u64>,
}

impl UnannouncedWorkers {
    pub fn enable(&mut self) {
        self.is_enabled = true;
    }

    /// Says whether this one is new.
    pub fn add(&mut self, worker: &WorkerId) -> bool {
        if !self.is_enabled || self.workers.contains(worker) {
            return false;
        }
        if self.workers.len() >= REMEMBERED_MAX {
            self.workers.clear();
        }
        self.workers.insert(worker.clone());
        self.arrivals += 1;
        true
    }

    pub fn contains(&self, worker: &WorkerId) -> bool {
        self.workers.contains(worker)
    }

    /// It is gone, or has announced its topics.
    pub fn remove(&mut self, worker: &WorkerId) {
        self.workers.remove(worker);
    }

    /// Whether there is a worker that may listen on a topic and was not there when it was last tried.
    pub fn may_listen(&self, topic: &Topic) -> bool {
        !self.workers.is_empty() && self.tried.get(topic).is_none_or(|tried| *tried < self.arrivals)
    }

    pub fn mark_tried(&mut self, topic: &Topic) {
        if self.tried.len() >= REMEMBERED_MAX {
            self.tried.clear();
        }
        self.tried.insert(topic.clone(), self.arrivals);
    }
}
