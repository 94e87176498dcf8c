//! The store without a disk, for tests and for the simulation.
//!
//! It is deterministic: everything is kept in order, so that a seed always gives the same run. A simulated crash
//! drops the users of the store and keeps a handle; what was committed is still there.
//!
//! Deliberately not here: faults. The simulation wraps this store to make it fail.

mod audit_trail;
mod dead_packets;
mod event_log;
mod ledger;
mod locks;
mod membership;
mod state;
mod usage;

pub use ledger::MemoryLedger;

use crate::locks::JOB_LOCK_MS;
use crate::query::page_len;
use crate::{
    AuditQuery, AuditTrail, BlobKey, Blobs, Breakers, ChainPage, ClockFn, Commit, DeadLetterCounts,
    DeadLetterQuery, DeadLetters, DeadPacket, DeadPackets, EventLog, EventPage, HeldLock, JobQuery, JobStore,
    Lock, Locks, Members, Membership, Opened, Page, PutMode, Receipt, Step, StoreError, StoredBlob,
    WorkspaceHints,
};
use bytes::Bytes;
use reveille_core::audit::{Draft, Entry};
use reveille_core::breaker::Breaker;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{DeadLetter, Job};
use reveille_core::time::Millis;
use state::MemoryState;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A handle; clones share one store.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<MemoryState>>,
    clock: ClockFn,
    /// The name of the replica that has this handle; nothing where there is only one.
    replica: String,
}

impl MemoryStore {
    pub fn new(clock: ClockFn) -> Self {
        Self { state: Arc::default(), clock, replica: String::new() }
    }

    /// A handle for one of several replicas.
    pub fn as_replica(&self, name: &str) -> Self {
        Self { replica: name.to_owned(), ..self.clone() }
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Millis {
        (self.clock)()
    }
}

#[async_trait::async_trait]
impl JobStore for MemoryStore {
    async fn commit(&self, step: Step) -> Result<Commit, StoreError> {
        let now = self.now();
        Ok(self.state().commit(step, &self.replica, now))
    }

    async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        Ok(self.state().job(id).cloned())
    }

    async fn open(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        let now = self.now();
        let mut state = self.state();
        if state.processed.contains(message) {
            return Ok(Opened::Seen);
        }
        let name = format!("cordum:scheduler:job:{id}");
        let Some(lock) = state.locks.open(&name, &self.replica, now, JOB_LOCK_MS) else {
            return Ok(Opened::Busy);
        };
        Ok(Opened::Job { job: state.job(id).cloned(), lock: Some(lock) })
    }

    async fn open_new(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        let state = self.state();
        if state.processed.contains(message) {
            return Ok(Opened::Seen);
        }
        Ok(Opened::Job { job: state.job(id).cloned(), lock: None })
    }

    async fn job_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<JobId>, StoreError> {
        Ok(self.state().holder_of(tenant, key))
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        let state = self.state();
        let older = ..query.cursor.unwrap_or(u64::MAX);
        let sequences: Box<dyn Iterator<Item = &u64>> = match query.state {
            Some(reveille_core::job::State::ApprovalRequired) => Box::new(state.asking.range(older).rev()),
            _ if query.asked => Box::new(state.asked.range(older).rev()),
            _ => Box::new(state.jobs.range(older).rev().map(|(sequence, _)| sequence)),
        };
        let looked_at = sequences.map(|sequence| {
            let job = &state.jobs[sequence];
            (*sequence, query.matches(job).then(|| job.clone()))
        });
        Ok(Page::look(page_len(query.limit), query.look_through, looked_at))
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        let state = self.state();
        let after = cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let live = state.live.range((after, Bound::Unbounded));
        Ok(Page::take(page_len(limit), live.map(|sequence| (*sequence, state.jobs[sequence].clone()))))
    }

    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> Result<u64, StoreError> {
        let mut state = self.state();
        Ok(state.prune_jobs(ended_before, limit)
            + state.prune_blobs(now, limit)
            + state.locks.prune(now, limit)
            + state.buried.prune(now))
    }
}

#[async_trait::async_trait]
impl DeadLetters for MemoryStore {
    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError> {
        let state = self.state();
        let older = state.dead_letters.range(..query.cursor.unwrap_or(u64::MAX)).rev();
        let matching = older.filter(|(_, letter)| query.matches(letter));
        Ok(Page::take(page_len(query.limit), matching.map(|(sequence, letter)| (*sequence, letter.clone()))))
    }

    async fn count_dead_letters(&self, tenant: Option<&TenantId>) -> Result<DeadLetterCounts, StoreError> {
        let state = self.state();
        let mut counts = DeadLetterCounts::new();
        let query = DeadLetterQuery { tenant: tenant.cloned(), ..DeadLetterQuery::default() };
        for letter in state.dead_letters.values().filter(|letter| query.matches(letter)) {
            *counts.entry(letter.reason_code).or_default() += 1;
        }
        Ok(counts)
    }

    async fn remove_dead_letter(&self, job: &JobId) -> Result<bool, StoreError> {
        Ok(self.state().remove_dead_letter(job))
    }
}

#[async_trait::async_trait]
impl Locks for MemoryStore {
    async fn lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>, StoreError> {
        let now = self.now();
        Ok(self.state().locks.take(name, &self.replica, now, ttl_ms))
    }

    async fn renew(&self, lock: &Lock, ttl_ms: i64) -> Result<bool, StoreError> {
        let now = self.now();
        Ok(self.state().locks.renew(lock, now, ttl_ms))
    }

    async fn unlock(&self, lock: &Lock) -> Result<bool, StoreError> {
        let now = self.now();
        Ok(self.state().locks.give_back(lock, now))
    }

    async fn locks_held(&self, limit: usize) -> Result<Vec<HeldLock>, StoreError> {
        let now = self.now();
        Ok(self.state().locks.list(now, page_len(limit)))
    }
}

#[async_trait::async_trait]
impl Breakers for MemoryStore {
    async fn breaker(&self, name: &str) -> Result<Breaker, StoreError> {
        Ok(self.state().breakers.get(name))
    }

    async fn swap_breaker(&self, name: &str, before: Breaker, after: Breaker) -> Result<bool, StoreError> {
        Ok(self.state().breakers.swap(name, before, after))
    }
}

#[async_trait::async_trait]
impl DeadPackets for MemoryStore {
    async fn bury(&self, packet: DeadPacket) -> Result<(), StoreError> {
        self.state().buried.add(packet);
        Ok(())
    }

    async fn buried(&self, cursor: Option<u64>, limit: usize) -> Result<Page<DeadPacket>, StoreError> {
        let now = self.now();
        Ok(self.state().buried.list(cursor, limit, now))
    }
}

#[async_trait::async_trait]
impl Membership for MemoryStore {
    fn name(&self) -> &str {
        &self.replica
    }

    async fn beat(&self, _about: &str) -> Result<Members, StoreError> {
        let now = self.now();
        Ok(self.state().owners.beat(&self.replica, now))
    }

    async fn adopt(&self, silent: &str, limit: usize) -> Result<Option<Vec<Arc<Job>>>, StoreError> {
        let now = self.now();
        let mut state = self.state();
        let Some(ids) = state.owners.adopt(silent, &self.replica, limit, now) else { return Ok(None) };
        Ok(Some(ids.iter().filter_map(|id| state.job(id).cloned()).collect()))
    }

    async fn owned(&self, cursor: Option<u64>, limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        let state = self.state();
        let after = cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let live = state.live.range((after, Bound::Unbounded));
        let own = live.map(|sequence| (*sequence, state.jobs[sequence].clone()));
        let own = own.filter(|(_, job)| state.owners.owner(job.id()) == Some(&self.replica));
        Ok(Page::take(page_len(limit), own))
    }

    async fn owner(&self, job: &JobId) -> Result<Option<String>, StoreError> {
        Ok(self.state().owners.owner(job).cloned())
    }
}

#[async_trait::async_trait]
impl EventLog for MemoryStore {
    async fn read_events(&self, after: u64, wait: Duration) -> Result<EventPage, StoreError> {
        let appended = self.state().events.appended.clone();
        let heard = appended.notified();
        tokio::pin!(heard);
        heard.as_mut().enable();
        let page = self.state().events.after(after);
        if !page.items.is_empty() {
            return Ok(page);
        }
        // Whether something came or the time is up, it is looked at.
        let _ = tokio::time::timeout(wait, heard).await;
        Ok(self.state().events.after(after))
    }

    async fn append_events(&self, batch: u64, items: &[Bytes]) -> Result<(), StoreError> {
        let now = self.now();
        self.state().events.append_batch(&self.replica, batch, items, now);
        Ok(())
    }
}

impl WorkspaceHints for MemoryStore {}

#[async_trait::async_trait]
impl AuditTrail for MemoryStore {
    async fn record(&self, drafts: Vec<Draft>) -> Result<(), StoreError> {
        self.state().trail.append(drafts);
        Ok(())
    }

    async fn record_under(&self, lock: &Lock, drafts: Vec<Draft>) -> Result<bool, StoreError> {
        let now = self.now();
        let mut state = self.state();
        let is_held = state.locks.is_held(lock, now);
        if is_held {
            state.trail.append(drafts);
        }
        Ok(is_held)
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
        Ok(self.state().trail.list(query))
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError> {
        Ok(self.state().trail.chain(tenant, after, page_len(limit)))
    }

    async fn chains(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError> {
        Ok(self.state().trail.chains(after, page_len(limit)))
    }

    async fn prune_audit(&self, before: Millis, limit: usize) -> Result<u64, StoreError> {
        Ok(self.state().trail.prune(before, limit))
    }
}

#[async_trait::async_trait]
impl Blobs for MemoryStore {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        let now = self.now();
        Ok(self.state().blob(key, now).map(|(value, _)| value.clone()))
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        let now = self.now();
        let mut state = self.state();
        let may = match mode {
            PutMode::Always => true,
            PutMode::IfAbsent => state.blob(&key, now).is_none(),
            PutMode::Under(lock) => state.locks.is_held(&lock, now),
        };
        if !may {
            return Ok(false);
        }
        state.put_blob(key, value, expires_at);
        Ok(true)
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        let now = self.now();
        let mut state = self.state();
        let mut deleted = 0;
        for key in &keys {
            deleted += u64::from(state.blob(key, now).is_some());
            state.remove_blob(key);
        }
        Ok(deleted)
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        let now = self.now();
        Ok(self.state().blob(key, now).map(|(_, expires_at)| *expires_at))
    }

    async fn stored_blobs(
        &self,
        after: Option<BlobKey>,
        limit: usize,
    ) -> Result<Vec<StoredBlob>, StoreError> {
        Ok(self.state().stored_blobs(after.as_ref(), limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::suite::{self, ManualClock};

    #[tokio::test]
    async fn the_memory_store_keeps_the_promises_of_the_port() {
        let clock = ManualClock::new(Millis(1_000_000));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clock()));
        suite::run(&store, &clock).await;
        suite::blobs::what_is_stored_is_listed_by_key_with_its_length(&*store, &clock).await;
    }

    #[tokio::test]
    async fn replicas_can_rely_on_it() {
        let clock = ManualClock::new(Millis(1_000_000));
        let store = MemoryStore::new(clock.clock());
        let first: Arc<dyn Store> = Arc::new(store.as_replica("first"));
        let second: Arc<dyn Store> = Arc::new(store.as_replica("second"));
        suite::sharing::run(&first, &second, &clock).await;
    }

    #[tokio::test]
    async fn a_kept_handle_survives_the_crash_of_its_user() {
        let clock = ManualClock::new(Millis(1_000_000));
        let kept = MemoryStore::new(clock.clock());
        let used = kept.clone();
        used.commit(Step::insert(suite::new_job("crash", "kept", clock.now()))).await.unwrap();
        drop(used);
        assert!(kept.job(&JobId::known("crash-kept")).await.unwrap().is_some());
    }
}
