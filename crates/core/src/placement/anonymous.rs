//! Listeners on a topic that never said who they are, such as a bare `run_worker`.
//!
//! They can be given jobs through the topic's queue group, one each at a time, since nothing is known
//! of what they can carry. They do not beat, so their connection is their sign of life.

use crate::id::{JobId, Topic};
use crate::time::Millis;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct AnonymousWorkers {
    of_topic: FxHashMap<Topic, AnonymousGroup>,
    /// Which connection heard which job, where the transport could tell.
    on_connection: BTreeMap<u64, BTreeSet<JobId>>,
    of_job: FxHashMap<JobId, u64>,
    /// Jobs whose listener is gone, and when they are given up.
    orphans: BTreeSet<(Millis, JobId)>,
}

#[derive(Default, Clone, Copy)]
struct AnonymousGroup {
    listeners: u32,
    held: u32,
}

impl AnonymousWorkers {
    pub fn set_listeners(&mut self, topic: &Topic, listeners: u32) {
        self.change(topic, |group| group.listeners = listeners);
    }

    pub fn hold(&mut self, topic: &Topic) {
        self.change(topic, |group| group.held += 1);
    }

    pub fn release(&mut self, topic: &Topic, job: &JobId) {
        self.change(topic, |group| group.held = group.held.saturating_sub(1));
        self.forget_job(job);
    }

    pub fn has_listeners(&self, topic: &Topic) -> bool {
        self.of_topic.get(topic).is_some_and(|group| group.listeners > 0)
    }

    pub fn has_room(&self, topic: &Topic) -> bool {
        self.of_topic.get(topic).is_some_and(|group| group.held < group.listeners)
    }

    /// The connection that heard the job.
    pub fn note_connection(&mut self, job: &JobId, connection: u64) {
        self.forget_job(job);
        self.of_job.insert(job.clone(), connection);
        self.on_connection.entry(connection).or_default().insert(job.clone());
    }

    /// Its jobs are given up at `until`.
    pub fn connection_gone(&mut self, connection: u64, until: Millis) {
        for job in self.on_connection.remove(&connection).unwrap_or_default() {
            self.of_job.remove(&job);
            self.orphan(&job, until);
        }
    }

    /// Nobody is known to have this job any more; it is given up at `until`.
    pub fn orphan(&mut self, job: &JobId, until: Millis) {
        self.orphans.insert((until, job.clone()));
    }

    /// The orphans whose time is up.
    pub fn take_orphans(&mut self, now: Millis) -> Vec<JobId> {
        let mut lost = Vec::new();
        while self.orphans.first().is_some_and(|(at, _)| *at <= now) {
            lost.extend(self.orphans.pop_first().map(|(_, job)| job));
        }
        lost
    }

    fn forget_job(&mut self, job: &JobId) {
        if let Some(connection) = self.of_job.remove(job)
            && let Some(jobs) = self.on_connection.get_mut(&connection)
        {
            jobs.remove(job);
            if jobs.is_empty() {
                self.on_connection.remove(&connection);
            }
        }
        // Few jobs are ever orphans, and those few are soon gone.
        self.orphans.retain(|(_, orphan)| orphan != job);
    }

    fn change(&mut self, topic: &Topic, change: impl FnOnce(&mut AnonymousGroup)) {
        let group = self.of_topic.entry(topic.clone()).or_default();
        change(group);
        if group.listeners == 0 && group.held == 0 {
            self.of_topic.remove(topic);
        }
    }
}
