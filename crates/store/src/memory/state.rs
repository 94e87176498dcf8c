//! What the memory store holds, and the changes that keep its indexes in step with one another.

use super::audit_trail::MemoryTrail;
use super::dead_packets::Buried;
use super::event_log::MemoryEvents;
use super::locks::HeldLocks;
use super::membership::Owners;
use super::usage::Usage;
use crate::breakers::InProcess;
use crate::{BlobKey, Commit, Preconditions, Receipt, Step, StoredBlob};
use bytes::Bytes;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{self, DeadLetter, Job};
use reveille_core::time::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct MemoryState {
    /// By the order of their insertion, which is what cursors count in.
    pub jobs: BTreeMap<u64, Arc<Job>>,
    sequences: BTreeMap<JobId, u64>,
    pub live: BTreeSet<u64>,
    /// Jobs that wait for a person, and all that ever did.
    pub asking: BTreeSet<u64>,
    pub asked: BTreeSet<u64>,
    by_idempotency_key: BTreeMap<(TenantId, String), JobId>,
    /// By the order in which the jobs died.
    pub dead_letters: BTreeMap<u64, DeadLetter>,
    dead: BTreeMap<JobId, u64>,
    blobs: BTreeMap<BlobKey, (Bytes, Millis)>,
    blob_ends: BTreeSet<(Millis, BlobKey)>,
    pub locks: HeldLocks,
    pub buried: Buried,
    pub breakers: InProcess,
    pub trail: MemoryTrail,
    pub owners: Owners,
    pub events: MemoryEvents,
    /// Messages that were answered.
    pub processed: BTreeSet<Receipt>,
    usage: Usage,
    /// Numbers are given out once, to jobs and dead letters alike.
    sequence_last: u64,
}

impl MemoryState {
    pub fn job(&self, id: &JobId) -> Option<&Arc<Job>> {
        self.jobs.get(self.sequences.get(id)?)
    }

    pub fn holder_of(&self, tenant: &TenantId, key: &str) -> Option<JobId> {
        self.by_idempotency_key.get(&(tenant.clone(), key.to_owned())).cloned()
    }

    /// Everything that can refuse the step comes first: after that, nothing fails.
    pub fn commit(&mut self, step: Step, replica: &str, now: Millis) -> Commit {
        let job = step.job_to_write();
        let before = self.job(job.id()).cloned();
        let answers = step.preconditions.answers.as_ref();
        let was_answered = answers.is_some_and(|message| self.processed.contains(message));
        match (step.expects(), &before) {
            (None, Some(_)) => return Commit::Duplicate(job.id().clone()),
            _ if was_answered => return Commit::Seen,
            (None, None) => {
                if let Some(holder) = idempotency_key(&job).and_then(|key| self.by_idempotency_key.get(&key))
                {
                    return Commit::Duplicate(holder.clone());
                }
            }
            (Some(revision), before) => {
                if before.as_ref().is_none_or(|before| before.revision != revision) {
                    return Commit::Conflict;
                }
            }
        }
        let Preconditions { under, answers, .. } = &step.preconditions;
        if under.as_ref().is_some_and(|lock| !self.locks.is_held(lock, now)) {
            return Commit::Fenced;
        }
        if let Some(quota) = self.usage.exceeded_by(before.as_deref(), &step) {
            return Commit::QuotaExceeded(quota);
        }
        if let Some(lock) = under {
            self.locks.give_back(lock, now);
        }
        self.processed.extend(answers.clone());
        if let Some(event) = &step.event {
            self.events.append(event.clone(), now);
        }
        self.usage.count(before.as_deref(), &job);
        self.owners.committed(&job, replica);
        let ends_here = before.is_none_or(|before| before.state() != job.state());
        if let Some(letter) = job.dead_letter().filter(|_| ends_here) {
            self.remove_dead_letter(job.id());
            let sequence = self.next_sequence();
            self.dead.insert(job.id().clone(), sequence);
            self.dead_letters.insert(sequence, letter);
        }
        if job.was_released() {
            self.remove_dead_letter(job.id());
        }
        for (key, value, expires_at) in step.blobs {
            self.put_blob(key, value, expires_at);
        }
        self.trail.append(step.audit);
        self.write(job);
        Commit::Done
    }

    fn write(&mut self, job: Arc<Job>) {
        let sequence = self.sequences.get(job.id()).copied().unwrap_or_else(|| self.next_sequence());
        if let Some(key) = idempotency_key(&job) {
            self.by_idempotency_key.insert(key, job.id().clone());
        }
        if job.is_live() {
            self.live.insert(sequence);
        } else {
            self.live.remove(&sequence);
        }
        if job.state() == job::State::ApprovalRequired {
            self.asking.insert(sequence);
            self.asked.insert(sequence);
        } else {
            self.asking.remove(&sequence);
        }
        self.sequences.insert(job.id().clone(), sequence);
        self.jobs.insert(sequence, job);
    }

    pub fn remove_dead_letter(&mut self, job: &JobId) -> bool {
        self.dead.remove(job).is_some_and(|sequence| self.dead_letters.remove(&sequence).is_some())
    }

    /// An expired blob does not exist, whether or not it was pruned yet.
    pub fn blob(&self, key: &BlobKey, now: Millis) -> Option<&(Bytes, Millis)> {
        self.blobs.get(key).filter(|(_, expires_at)| now < *expires_at)
    }

    /// What clients store, in the order of the keys.
    pub fn stored_blobs(&self, after: Option<&BlobKey>, limit: usize) -> Vec<StoredBlob> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let stored = self.blobs.range::<BlobKey, _>((from, Bound::Unbounded));
        let stored = stored.filter(|(key, _)| **key != BlobKey::workers_snapshot()).take(limit);
        let stored = stored.map(|(key, (value, expires_at))| StoredBlob {
            key: key.clone(),
            len: value.len(),
            expires_at: *expires_at,
        });
        stored.collect()
    }

    pub fn put_blob(&mut self, key: BlobKey, value: Bytes, expires_at: Millis) {
        self.remove_blob(&key);
        self.blob_ends.insert((expires_at, key.clone()));
        self.blobs.insert(key, (value, expires_at));
    }

    pub fn remove_blob(&mut self, key: &BlobKey) -> bool {
        let Some((_, expires_at)) = self.blobs.remove(key) else { return false };
        self.blob_ends.remove(&(expires_at, key.clone()))
    }

    /// Removes jobs that owe nothing, least recently touched first, with everything that belongs to them.
    pub fn prune_jobs(&mut self, ended_before: Millis, limit: usize) -> u64 {
        let over = |job: &Job| !job.is_live() && job.updated_at < ended_before;
        let mut ended: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, job)| over(job))
            .map(|(sequence, job)| (job.updated_at, *sequence))
            .collect();
        ended.sort_unstable();
        ended.truncate(limit);
        let mut gone = 0;
        for (_, sequence) in ended {
            let Some(job) = self.jobs.remove(&sequence) else { continue };
            let id = job.id();
            self.asked.remove(&sequence);
            self.sequences.remove(id);
            if let Some(key) = idempotency_key(&job) {
                self.by_idempotency_key.remove(&key);
            }
            gone += 1 + u64::from(self.remove_dead_letter(id));
            for key in [BlobKey::context_of(id), BlobKey::result_of(id)] {
                gone += u64::from(self.remove_blob(&key));
            }
        }
        gone
    }

    pub fn prune_blobs(&mut self, now: Millis, limit: usize) -> u64 {
        let expired: Vec<_> =
            self.blob_ends.iter().take_while(|(end, _)| *end <= now).take(limit).cloned().collect();
        for (_, key) in &expired {
            self.remove_blob(key);
        }
        expired.len() as u64
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence_last += 1;
        self.sequence_last
    }
}

fn idempotency_key(job: &Job) -> Option<(TenantId, String)> {
    job.request.idempotency_key.clone().map(|key| (job.request.tenant.clone(), key))
}
