//! A store whose commits fail a few times, and that can be away as a whole for what locks and dead packets need.

use bytes::Bytes;
use reveille_core::audit::{Draft, Entry};
use reveille_core::breaker::Breaker;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{DeadLetter, Job};
use reveille_core::time::Millis;
use reveille_store::{
    AuditQuery, BlobKey, Blobs, Breakers, ChainPage, Commit, DISK_FULL, DeadLetterCounts, DeadLetterQuery,
    DeadPacket, DeadPackets, JobQuery, Lock, MemoryStore, Page, PutMode, Replicas, Step, Store, StoreError,
    Trail,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

type Answer<T> = Result<T, StoreError>;

#[derive(Clone)]
pub struct Failing {
    pub store: MemoryStore,
    /// How many commits are still to fail.
    pub failures: Arc<AtomicU32>,
    pub is_away: Arc<AtomicBool>,
}

impl Failing {
    pub fn new(store: MemoryStore) -> Self {
        Self { store, failures: Arc::default(), is_away: Arc::default() }
    }

    fn check(&self) -> Answer<()> {
        let is_away = self.is_away.load(Ordering::SeqCst);
        if is_away { Err(StoreError::Unavailable("it is away".to_owned())) } else { Ok(()) }
    }
}

#[async_trait::async_trait]
impl Store for Failing {
    async fn commit(&self, step: Step) -> Answer<Commit> {
        let one_less = |left: u32| left.checked_sub(1);
        if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return Err(StoreError::Full(DISK_FULL));
        }
        self.store.commit(step).await
    }

    async fn job(&self, id: &JobId) -> Answer<Option<Arc<Job>>> {
        self.store.job(id).await
    }

    async fn job_of_key(&self, tenant: &TenantId, key: &str) -> Answer<Option<JobId>> {
        self.store.job_of_key(tenant, key).await
    }

    async fn jobs(&self, query: &JobQuery) -> Answer<Page<Arc<Job>>> {
        self.store.jobs(query).await
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> Answer<Page<Arc<Job>>> {
        self.store.live(cursor, limit).await
    }

    async fn dead_letters(&self, query: &DeadLetterQuery) -> Answer<Page<DeadLetter>> {
        self.store.dead_letters(query).await
    }

    async fn count_dead_letters(&self, tenant: Option<&TenantId>) -> Answer<DeadLetterCounts> {
        self.store.count_dead_letters(tenant).await
    }

    async fn remove_dead_letter(&self, job: &JobId) -> Answer<bool> {
        self.store.remove_dead_letter(job).await
    }

    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> Answer<u64> {
        self.store.prune(ended_before, now, limit).await
    }

    async fn lock(&self, name: &str, ttl_ms: i64) -> Answer<Option<Lock>> {
        self.check()?;
        self.store.lock(name, ttl_ms).await
    }

    async fn renew(&self, lock: &Lock, ttl_ms: i64) -> Answer<bool> {
        self.check()?;
        self.store.renew(lock, ttl_ms).await
    }

    async fn unlock(&self, lock: &Lock) -> Answer<bool> {
        self.check()?;
        self.store.unlock(lock).await
    }
}

impl Replicas for Failing {}

#[async_trait::async_trait]
impl DeadPackets for Failing {
    async fn bury(&self, packet: DeadPacket) -> Answer<()> {
        self.check()?;
        self.store.bury(packet).await
    }

    async fn buried(&self, cursor: Option<u64>, limit: usize) -> Answer<Page<DeadPacket>> {
        self.store.buried(cursor, limit).await
    }
}

#[async_trait::async_trait]
impl Breakers for Failing {
    async fn breaker(&self, name: &str) -> Answer<Breaker> {
        self.store.breaker(name).await
    }

    async fn swap_breaker(&self, name: &str, before: Breaker, after: Breaker) -> Answer<bool> {
        self.store.swap_breaker(name, before, after).await
    }
}

#[async_trait::async_trait]
impl Trail for Failing {
    async fn record(&self, drafts: Vec<Draft>) -> Answer<()> {
        self.store.record(drafts).await
    }

    async fn audit(&self, query: &AuditQuery) -> Answer<Page<Entry>> {
        self.store.audit(query).await
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Answer<ChainPage> {
        self.store.chain(tenant, after, limit).await
    }

    async fn prune_audit(&self, before: Millis, limit: usize) -> Answer<u64> {
        self.store.prune_audit(before, limit).await
    }
}

#[async_trait::async_trait]
impl Blobs for Failing {
    async fn blob(&self, key: &BlobKey) -> Answer<Option<Bytes>> {
        self.store.blob(key).await
    }

    async fn put_blob(&self, key: BlobKey, value: Bytes, expires_at: Millis, mode: PutMode) -> Answer<bool> {
        self.store.put_blob(key, value, expires_at, mode).await
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Answer<u64> {
        self.store.delete_blobs(keys).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Answer<Option<Millis>> {
        self.store.blob_expiry(key).await
    }
}
