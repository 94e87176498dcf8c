//! A store that does what the one under it does, except where a test steps in.
//!
//! A [`StoreHook`] has a method for each place where a test has wanted to; the rest is passed on as it is.

use crate::{
    AuditQuery, AuditTrail, BlobKey, Blobs, Breakers, ChainPage, Commit, DeadLetterCounts, DeadLetterQuery,
    DeadLetters, DeadPacket, DeadPackets, EventLog, EventPage, HeldLock, JobQuery, JobStore, Lock, Locks,
    Members, Membership, Opened, Page, PutMode, Receipt, Step, Store, StoreResult, StoredBlob,
    WorkspaceHints,
};
use async_trait::async_trait;
use bytes::Bytes;
use reveille_core::audit::{Draft, Entry};
use reveille_core::breaker::Breaker;
use reveille_core::id::{JobId, TenantId, WorkspaceId};
use reveille_core::job::{DeadLetter, Job};
use reveille_core::time::Millis;
use std::sync::Arc;
use std::time::Duration;

/// What a test does to the calls of others; unless it says otherwise, nothing.
#[async_trait]
pub trait StoreHook: Send + Sync + 'static {
    /// Stands in for a commit.
    async fn commit(&self, store: &dyn Store, step: Step) -> StoreResult<Commit> {
        store.commit(step).await
    }

    /// Comes before every list of jobs.
    async fn before_list(&self) {}

    /// Comes before everything about locks, and before a packet is buried; it may refuse.
    fn before_lock_or_bury(&self) -> StoreResult<()> {
        Ok(())
    }

    /// Comes before every look at a blob, and may refuse it.
    fn before_blob(&self, _key: &BlobKey) -> StoreResult<()> {
        Ok(())
    }

    /// Comes before every entry of the audit trail that belongs to no commit, and may refuse it.
    fn before_record(&self) -> StoreResult<()> {
        Ok(())
    }
}

pub struct HookedStore<H> {
    /// What is under it, for whoever wants to pass by the hook.
    pub inner: Arc<dyn Store>,
    pub hook: Arc<H>,
}

impl<H: StoreHook> HookedStore<H> {
    pub fn new(store: impl Store, hook: H) -> Self {
        Self { inner: Arc::new(store), hook: Arc::new(hook) }
    }
}

impl<H> Clone for HookedStore<H> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), hook: self.hook.clone() }
    }
}

#[async_trait]
impl<H: StoreHook> JobStore for HookedStore<H> {
    async fn commit(&self, step: Step) -> StoreResult<Commit> {
        self.hook.commit(&*self.inner, step).await
    }

    fn colocated_key(&self, key: BlobKey) -> BlobKey {
        self.inner.colocated_key(key)
    }

    async fn job(&self, id: &JobId) -> StoreResult<Option<Arc<Job>>> {
        self.inner.job(id).await
    }

    async fn open(&self, id: &JobId, message: &Receipt) -> StoreResult<Opened> {
        self.inner.open(id, message).await
    }

    async fn open_new(&self, id: &JobId, message: &Receipt) -> StoreResult<Opened> {
        self.inner.open_new(id, message).await
    }

    async fn job_of_key(&self, tenant: &TenantId, key: &str) -> StoreResult<Option<JobId>> {
        self.inner.job_of_key(tenant, key).await
    }

    async fn jobs(&self, query: &JobQuery) -> StoreResult<Page<Arc<Job>>> {
        self.hook.before_list().await;
        self.inner.jobs(query).await
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> StoreResult<Page<Arc<Job>>> {
        self.hook.before_list().await;
        self.inner.live(cursor, limit).await
    }

    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> StoreResult<u64> {
        self.inner.prune(ended_before, now, limit).await
    }
}

#[async_trait]
impl<H: StoreHook> DeadLetters for HookedStore<H> {
    async fn dead_letters(&self, query: &DeadLetterQuery) -> StoreResult<Page<DeadLetter>> {
        self.inner.dead_letters(query).await
    }

    async fn count_dead_letters(&self, tenant: Option<&TenantId>) -> StoreResult<DeadLetterCounts> {
        self.inner.count_dead_letters(tenant).await
    }

    async fn remove_dead_letter(&self, job: &JobId) -> StoreResult<bool> {
        self.inner.remove_dead_letter(job).await
    }
}

#[async_trait]
impl<H: StoreHook> Locks for HookedStore<H> {
    async fn lock(&self, name: &str, ttl_ms: i64) -> StoreResult<Option<Lock>> {
        self.hook.before_lock_or_bury()?;
        self.inner.lock(name, ttl_ms).await
    }

    async fn renew(&self, lock: &Lock, ttl_ms: i64) -> StoreResult<bool> {
        self.hook.before_lock_or_bury()?;
        self.inner.renew(lock, ttl_ms).await
    }

    async fn unlock(&self, lock: &Lock) -> StoreResult<bool> {
        self.hook.before_lock_or_bury()?;
        self.inner.unlock(lock).await
    }

    async fn locks_held(&self, limit: usize) -> StoreResult<Vec<HeldLock>> {
        self.hook.before_lock_or_bury()?;
        self.inner.locks_held(limit).await
    }
}

#[async_trait]
impl<H: StoreHook> Membership for HookedStore<H> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    async fn beat(&self, about: &str) -> StoreResult<Members> {
        self.inner.beat(about).await
    }

    async fn adopt(&self, silent: &str, limit: usize) -> StoreResult<Option<Vec<Arc<Job>>>> {
        self.inner.adopt(silent, limit).await
    }

    async fn owned(&self, cursor: Option<u64>, limit: usize) -> StoreResult<Page<Arc<Job>>> {
        self.inner.owned(cursor, limit).await
    }

    async fn owner(&self, job: &JobId) -> StoreResult<Option<String>> {
        self.inner.owner(job).await
    }
}

#[async_trait]
impl<H: StoreHook> EventLog for HookedStore<H> {
    async fn read_events(&self, after: u64, wait: Duration) -> StoreResult<EventPage> {
        self.inner.read_events(after, wait).await
    }

    async fn append_events(&self, batch: u64, items: &[Bytes]) -> StoreResult<()> {
        self.inner.append_events(batch, items).await
    }
}

#[async_trait]
impl<H: StoreHook> WorkspaceHints for HookedStore<H> {
    async fn hint(&self, heard: &[(WorkspaceId, Option<String>)]) -> StoreResult<()> {
        self.inner.hint(heard).await
    }
}

#[async_trait]
impl<H: StoreHook> DeadPackets for HookedStore<H> {
    async fn bury(&self, packet: DeadPacket) -> StoreResult<()> {
        self.hook.before_lock_or_bury()?;
        self.inner.bury(packet).await
    }

    async fn buried(&self, cursor: Option<u64>, limit: usize) -> StoreResult<Page<DeadPacket>> {
        self.inner.buried(cursor, limit).await
    }
}

#[async_trait]
impl<H: StoreHook> Breakers for HookedStore<H> {
    async fn breaker(&self, name: &str) -> StoreResult<Breaker> {
        self.inner.breaker(name).await
    }

    async fn swap_breaker(&self, name: &str, before: Breaker, after: Breaker) -> StoreResult<bool> {
        self.inner.swap_breaker(name, before, after).await
    }
}

#[async_trait]
impl<H: StoreHook> AuditTrail for HookedStore<H> {
    async fn record_under(&self, lock: &Lock, drafts: Vec<Draft>) -> StoreResult<bool> {
        self.hook.before_record()?;
        self.inner.record_under(lock, drafts).await
    }

    async fn record(&self, drafts: Vec<Draft>) -> StoreResult<()> {
        self.hook.before_record()?;
        self.inner.record(drafts).await
    }

    async fn audit(&self, query: &AuditQuery) -> StoreResult<Page<Entry>> {
        self.inner.audit(query).await
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> StoreResult<ChainPage> {
        self.inner.chain(tenant, after, limit).await
    }

    async fn chains(&self, after: Option<&TenantId>, limit: usize) -> StoreResult<Vec<TenantId>> {
        self.inner.chains(after, limit).await
    }

    async fn prune_audit(&self, before: Millis, limit: usize) -> StoreResult<u64> {
        self.inner.prune_audit(before, limit).await
    }
}

#[async_trait]
impl<H: StoreHook> Blobs for HookedStore<H> {
    async fn blob(&self, key: &BlobKey) -> StoreResult<Option<Bytes>> {
        self.hook.before_blob(key)?;
        self.inner.blob(key).await
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> StoreResult<bool> {
        self.inner.put_blob(key, value, expires_at, mode).await
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> StoreResult<u64> {
        self.inner.delete_blobs(keys).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> StoreResult<Option<Millis>> {
        self.inner.blob_expiry(key).await
    }

    async fn stored_blobs(&self, after: Option<BlobKey>, limit: usize) -> StoreResult<Vec<StoredBlob>> {
        self.inner.stored_blobs(after, limit).await
    }
}
