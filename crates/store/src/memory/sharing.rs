//! What replicas that share a store in memory know of one another, and of what is at workers.

use crate::replica::{BEAT_TTL_MS, EVENT_LOG_KEPT_MAX, EVENT_LOG_LEN_MAX};
use crate::{EventPage, Full, Members, Receipt, Step};
use bytes::Bytes;
use reveille_core::id::{JobId, TenantId, Topic, WorkerId};
use reveille_core::job::Job;
use reveille_core::time::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct Sharing {
    /// When each replica was last heard.
    beats: BTreeMap<String, Millis>,
    owners: BTreeMap<JobId, String>,
    pub processed: BTreeSet<Receipt>,
    at_worker: BTreeMap<WorkerId, u32>,
    of_tenant: BTreeMap<TenantId, u32>,
    of_topic: BTreeMap<Topic, u32>,
    /// Jobs that have not ended.
    queued: BTreeMap<TenantId, u64>,
    /// What those who watch were told.
    news: BTreeMap<u64, Bytes>,
    /// The last batch of each replica.
    announced: BTreeMap<String, u64>,
    pub something_told: Arc<Notify>,
}

impl Sharing {
    /// Where there is no room for the step, if there is none.
    pub fn lacks(&self, before: Option<&Job>, step: &Step) -> Option<Full> {
        let (quota, job) = (&step.preconditions.quota, &step.job);
        let request = &job.request;
        let is_full = |max: Option<u32>, has: Option<&u32>| {
            max.is_some_and(|max| has.copied().unwrap_or_default() >= max)
        };
        let queued = self.queued.get(&request.tenant).copied().unwrap_or_default();
        if before.is_none() && !job.state().is_terminal() && quota.queue_max.is_some_and(|max| queued >= max)
        {
            return Some(Full::Queue);
        }
        let worker = worker_of(job);
        if worker != before.and_then(worker_of)
            && is_full(quota.worker_max, worker.and_then(|worker| self.at_worker.get(worker)))
        {
            return worker.map(|_| Full::Worker);
        }
        if job.attempt().is_none() || before.is_some_and(|before| before.attempt().is_some()) {
            return None;
        }
        if is_full(quota.tenant_max, self.of_tenant.get(&request.tenant)) {
            return Some(Full::Tenant);
        }
        is_full(quota.topic_max, self.of_topic.get(&request.topic)).then_some(Full::Topic)
    }

    pub fn count(&mut self, before: Option<&Job>, after: &Job, owner: &str) {
        if let Some(before) = before {
            self.add(before, -1);
        }
        self.add(after, 1);
        if after.is_live() {
            self.owners.insert(after.id().clone(), owner.to_owned());
            // One that was taken over a moment ago is found silent again, and its jobs again.
            self.beats.entry(owner.to_owned()).or_insert(Millis(i64::MIN / 2));
        } else {
            self.owners.remove(after.id());
        }
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
        if !job.state().is_terminal() {
            let queued = self.queued.entry(request.tenant.clone()).or_default();
            *queued = queued.saturating_add_signed(by.into());
        }
    }

    pub fn beat(&mut self, me: &str, now: Millis) -> Members {
        let last = self.beats.insert(me.to_owned(), now);
        let (here, silent): (Vec<_>, Vec<_>) = self.beats.iter().partition(|(_, last)| is_here(**last, now));
        let names = |them: Vec<(&String, &Millis)>| them.into_iter().map(|(name, _)| name.clone()).collect();
        Members {
            was_here: last.is_some_and(|last| is_here(last, now)),
            silent: names(silent),
            here: names(here),
        }
    }

    pub fn tell(&mut self, news: Bytes, now: Millis) {
        let after_last = self.news.last_key_value().map_or(0, |(last, _)| last + 1);
        self.news.insert(after_last.max(now.0.unsigned_abs() * 1000), news);
        if self.news.len() > EVENT_LOG_KEPT_MAX {
            self.news.pop_first();
        }
        self.something_told.notify_waiters();
    }

    pub fn announce(&mut self, me: &str, batch: u64, items: &[Bytes], now: Millis) {
        if self.announced.insert(me.to_owned(), batch) != Some(batch) {
            for item in items {
                self.tell(item.clone(), now);
            }
        }
    }

    pub fn news(&self, after: u64) -> EventPage {
        let kept = self.news.first_key_value().zip(self.news.last_key_value());
        let items = self.news.range(after + 1..).take(EVENT_LOG_LEN_MAX);
        EventPage {
            items: items.map(|(place, item)| (*place, item.clone())).collect(),
            kept: kept.map(|((first, _), (last, _))| (*first, *last)),
        }
    }

    pub fn owner(&self, job: &JobId) -> Option<&String> {
        self.owners.get(job)
    }

    /// The jobs that `me` takes over; nothing if the other is back.
    pub fn adopt(&mut self, silent: &str, me: &str, limit: usize, now: Millis) -> Option<Vec<JobId>> {
        if self.beats.get(silent).is_some_and(|last| is_here(*last, now)) {
            return None;
        }
        let left = self.owners.iter_mut().filter(|(_, owner)| *owner == silent).take(limit);
        let adopted: Vec<JobId> = left
            .map(|(id, owner)| {
                me.clone_into(owner);
                id.clone()
            })
            .collect();
        if adopted.is_empty() {
            self.beats.remove(silent);
        }
        Some(adopted)
    }
}

fn is_here(last: Millis, now: Millis) -> bool {
    now - last.0 < Millis(BEAT_TTL_MS)
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
