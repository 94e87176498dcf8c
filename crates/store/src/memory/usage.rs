//! Job counts that quotas are compared with.

use crate::{ExceededQuota, Step};
use reveille_core::id::{TenantId, Topic, WorkerId};
use reveille_core::job::{Job, State};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Usage {
    at_worker: BTreeMap<WorkerId, u32>,
    of_tenant: BTreeMap<TenantId, u32>,
    of_topic: BTreeMap<Topic, u32>,
    /// Jobs that have not ended.
    queued: BTreeMap<TenantId, u64>,
    /// Jobs that wait for a person.
    asked: BTreeMap<TenantId, u32>,
}

impl Usage {
    /// The quota that the step would exceed, if any.
    pub fn exceeded_by(&self, before: Option<&Job>, step: &Step) -> Option<ExceededQuota> {
        let (quota, job) = (&step.preconditions.quota, &step.job);
        let request = &job.request;
        let is_full = |max: Option<u32>, has: Option<&u32>| {
            max.is_some_and(|max| has.copied().unwrap_or_default() >= max)
        };
        let queued = self.queued.get(&request.tenant).copied().unwrap_or_default();
        if before.is_none() && !job.state().is_terminal() && quota.queue_max.is_some_and(|max| queued >= max)
        {
            return Some(ExceededQuota::Queue);
        }
        if asks(job)
            && !before.is_some_and(asks)
            && is_full(quota.approvals_max, self.asked.get(&request.tenant))
        {
            return Some(ExceededQuota::Approvals);
        }
        let worker = worker_of(job);
        if worker != before.and_then(worker_of)
            && is_full(quota.worker_max, worker.and_then(|worker| self.at_worker.get(worker)))
        {
            return worker.map(|_| ExceededQuota::Worker);
        }
        if job.attempt().is_none() || before.is_some_and(|before| before.attempt().is_some()) {
            return None;
        }
        if is_full(quota.tenant_max, self.of_tenant.get(&request.tenant)) {
            return Some(ExceededQuota::Tenant);
        }
        is_full(quota.topic_max, self.of_topic.get(&request.topic)).then_some(ExceededQuota::Topic)
    }

    pub fn count(&mut self, before: Option<&Job>, after: &Job) {
        if let Some(before) = before {
            self.add(before, -1);
        }
        self.add(after, 1);
    }

    fn add(&mut self, job: &Job, by: i32) {
        let request = &job.request;
        if let Some(worker) = worker_of(job) {
            add(&mut self.at_worker, worker, by);
        }
        if job.attempt().is_some() {
            add(&mut self.of_tenant, &request.tenant, by);
            add(&mut self.of_topic, &request.topic, by);
        }
        if asks(job) {
            add(&mut self.asked, &request.tenant, by);
        }
        if !job.state().is_terminal() {
            let queued = self.queued.entry(request.tenant.clone()).or_default();
            *queued = queued.saturating_add_signed(by.into());
        }
    }
}

fn asks(job: &Job) -> bool {
    job.state() == State::ApprovalRequired
}

fn worker_of(job: &Job) -> Option<&WorkerId> {
    job.attempt()?.worker.as_ref()
}

fn add<K: Ord + Clone>(counts: &mut BTreeMap<K, u32>, key: &K, by: i32) {
    let count = counts.entry(key.clone()).or_default();
    *count = count.saturating_add_signed(by);
    if *count == 0 {
        counts.remove(key);
    }
}
