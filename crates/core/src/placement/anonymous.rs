//! Listeners on a topic that never said who they are, such as a bare `run_worker`.
//!
//! They can be given jobs through the topic's queue group, one each at a time, since nothing is known
//! of what they can carry. They do not beat, so their connection is their sign of life.
//!
//! Some were let in for the jobs of some tenants only; the transport passes them over for the others'.

use crate::fleet::ServedTenants;
use crate::id::{JobId, TenantId, Topic};
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

/// How many anonymous connections listen on a topic, by whose jobs they may be given.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TopicListeners {
    /// For everybody's.
    everyone: u32,
    /// For those of some tenants only; a connection that serves several counts for each.
    of_tenant: BTreeMap<TenantId, u32>,
}

impl TopicListeners {
    pub fn add(&mut self, tenants: &ServedTenants) {
        match tenants {
            ServedTenants::Everyone => self.everyone += 1,
            ServedTenants::Only(tenants) => {
                for tenant in tenants {
                    *self.of_tenant.entry(tenant.clone()).or_default() += 1;
                }
            }
        }
    }

    /// The tenants whose jobs somebody asks for.
    pub fn tenants(&self) -> BTreeSet<TenantId> {
        self.of_tenant.keys().cloned().collect()
    }

    fn of(&self, tenant: &TenantId) -> u32 {
        self.of_tenant.get(tenant).copied().unwrap_or_default()
    }
}

#[derive(Default)]
struct AnonymousGroup {
    listeners: TopicListeners,
    /// Jobs that are there, by tenant.
    held: BTreeMap<TenantId, u32>,
}

impl AnonymousGroup {
    /// Jobs that those who serve everybody must have: the others are taken.
    fn spilled(&self) -> u32 {
        self.held.iter().map(|(tenant, held)| held.saturating_sub(self.listeners.of(tenant))).sum()
    }

    fn has_room(&self, tenant: Option<&TenantId>) -> bool {
        let has_own = |tenant: &TenantId| {
            self.held.get(tenant).copied().unwrap_or_default() < self.listeners.of(tenant)
        };
        tenant.is_some_and(has_own) || self.spilled() < self.listeners.everyone
    }
}

impl AnonymousWorkers {
    pub fn set_listeners(&mut self, topic: &Topic, listeners: TopicListeners) {
        self.change(topic, |group| group.listeners = listeners);
    }

    pub fn hold(&mut self, topic: &Topic, tenant: &TenantId) {
        self.change(topic, |group| *group.held.entry(tenant.clone()).or_default() += 1);
    }

    pub fn release(&mut self, topic: &Topic, tenant: &TenantId, job: &JobId) {
        self.change(topic, |group| {
            if let Some(held) = group.held.get_mut(tenant) {
                *held = held.saturating_sub(1);
            }
            group.held.retain(|_, held| *held > 0);
        });
        self.forget_job(job);
    }

    pub fn has_listeners(&self, topic: &Topic, tenant: &TenantId) -> bool {
        let listeners = self.of_topic.get(topic).map(|group| &group.listeners);
        listeners.is_some_and(|listeners| listeners.everyone > 0 || listeners.of(tenant) > 0)
    }

    /// Whether somebody is free for a job of this tenant; of a tenant that no credential names, where nothing is said.
    pub fn has_room(&self, topic: &Topic, tenant: Option<&TenantId>) -> bool {
        self.of_topic.get(topic).is_some_and(|group| group.has_room(tenant))
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
        if group.listeners == TopicListeners::default() && group.held.is_empty() {
            self.of_topic.remove(topic);
        }
    }
}
