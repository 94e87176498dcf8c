//! Workers that beat and have not said which topics they serve. One that introduced itself while no server was there
//! does not do so again, and its beats name no topics.
//!
//! Where the transport shows nobody's subscriptions, the only way to find out is to send a job to its topic and see
//! whether somebody listens. Each topic is tried once for every such worker that turns up; who sends the result
//! serves the topic.

use crate::id::{Topic, WorkerId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Workers and topics that are remembered; beyond that all are met anew.
const REMEMBERED_MAX: usize = 10_000;

#[derive(Default)]
pub struct UnannouncedWorkers {
    /// Whether topics are tried at all.
    is_on: bool,
    met: FxHashSet<WorkerId>,
    arrivals: u64,
    /// How many had arrived when a topic was last tried.
    tried: FxHashMap<Topic, u64>,
}

impl UnannouncedWorkers {
    pub fn turn_on(&mut self) {
        self.is_on = true;
    }

    /// Says whether this one is new.
    pub fn meet(&mut self, worker: &WorkerId) -> bool {
        if !self.is_on || self.met.contains(worker) {
            return false;
        }
        if self.met.len() >= REMEMBERED_MAX {
            self.met.clear();
        }
        self.met.insert(worker.clone());
        self.arrivals += 1;
        true
    }

    pub fn has(&self, worker: &WorkerId) -> bool {
        self.met.contains(worker)
    }

    /// It is gone, or has said what it serves.
    pub fn forget(&mut self, worker: &WorkerId) {
        self.met.remove(worker);
    }

    /// Whether somebody is here who may listen on a topic and was not here when it was last tried.
    pub fn may_listen(&self, topic: &Topic) -> bool {
        !self.met.is_empty() && self.tried.get(topic).is_none_or(|tried| *tried < self.arrivals)
    }

    pub fn try_topic(&mut self, topic: &Topic) {
        if self.tried.len() >= REMEMBERED_MAX {
            self.tried.clear();
        }
        self.tried.insert(topic.clone(), self.arrivals);
    }
}
