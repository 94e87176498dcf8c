//! A store that sees every commit in its order, and that can be slow to list jobs.

use async_trait::async_trait;
use bytes::Bytes;
use reveille_core::audit::{Draft, Entry};
use reveille_core::breaker::Breaker;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{DeadLetter, Job};
use reveille_core::time::Millis;
use reveille_store::{
    AuditQuery, BlobKey, Blobs, Breakers, ChainPage, Commit, DeadLetterCounts, DeadLetterQuery, DeadPacket,
    DeadPackets, JobQuery, Lock, MemoryStore, Page, PutMode, Replicas, Step, Store, StoreError, Trail,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, watch};

pub struct Watched {
    inner: MemoryStore,
    /// One commit at a time, so that the order is known.
    one: Semaphore,
    seen: Mutex<Seen>,
    lists: watch::Sender<bool>,
}

#[derive(Default)]
struct Seen {
    active: BTreeMap<TenantId, BTreeSet<JobId>>,
    most: BTreeMap<TenantId, usize>,
    /// Jobs in the order in which they were first given to a worker.
    dispatched: Vec<JobId>,
}

impl Watched {
    pub fn new(inner: MemoryStore) -> Self {
        let one = Semaphore::new(1);
        Self { inner, one, seen: Mutex::default(), lists: watch::Sender::new(true) }
    }

    /// Whether jobs can be listed; while not, whoever asks waits.
    pub fn open_lists(&self, open: bool) {
        self.lists.send_replace(open);
    }

    /// The most jobs of a tenant that were ever at workers at once.
    pub fn most(&self, tenant: &str) -> usize {
        self.seen.lock().unwrap().most.get(tenant).copied().unwrap_or_default()
    }

    pub fn active(&self, tenant: &str) -> usize {
        self.seen.lock().unwrap().active.get(tenant).map_or(0, BTreeSet::len)
    }

    pub fn dispatched(&self) -> Vec<JobId> {
        self.seen.lock().unwrap().dispatched.clone()
    }

    fn look(&self, job: &Job) {
        let mut seen = self.seen.lock().unwrap();
        let (id, tenant) = (job.id().clone(), job.request.tenant.clone());
        if job.attempt().is_some() && !seen.dispatched.contains(&id) {
            seen.dispatched.push(id.clone());
        }
        let active = seen.active.entry(tenant.clone()).or_default();
        if job.attempt().is_some() {
            active.insert(id)
        } else {
            active.remove(&id)
        };
        let now = active.len();
        let most = seen.most.entry(tenant).or_default();
        *most = now.max(*most);
    }

    async fn listed(&self) {
        let _ = self.lists.subscribe().wait_for(|open| *open).await;
    }
}

#[async_trait]
impl Store for Watched {
    async fn commit(&self, step: Step) -> Result<Commit, StoreError> {
        let _one = self.one.acquire().await.unwrap();
        let job = step.job.clone();
        let done = self.inner.commit(step).await?;
        if done == Commit::Done {
            self.look(&job);
        }
        Ok(done)
    }

    async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        self.inner.job(id).await
    }

    async fn job_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<JobId>, StoreError> {
        self.inner.job_of_key(tenant, key).await
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        self.listed().await;
        self.inner.jobs(query).await
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        self.listed().await;
        self.inner.live(cursor, limit).await
    }

    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError> {
        self.inner.dead_letters(query).await
    }

    async fn count_dead_letters(&self, tenant: Option<&TenantId>) -> Result<DeadLetterCounts, StoreError> {
        self.inner.count_dead_letters(tenant).await
    }

    async fn remove_dead_letter(&self, job: &JobId) -> Result<bool, StoreError> {
        self.inner.remove_dead_letter(job).await
    }

    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> Result<u64, StoreError> {
        self.inner.prune(ended_before, now, limit).await
    }

    async fn lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>, StoreError> {
        self.inner.lock(name, ttl_ms).await
    }

    async fn renew(&self, lock: &Lock, ttl_ms: i64) -> Result<bool, StoreError> {
        self.inner.renew(lock, ttl_ms).await
    }

    async fn unlock(&self, lock: &Lock) -> Result<bool, StoreError> {
        self.inner.unlock(lock).await
    }
}

#[async_trait]
impl Blobs for Watched {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        self.inner.blob(key).await
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        until: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        self.inner.put_blob(key, value, until, mode).await
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        self.inner.delete_blobs(keys).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        self.inner.blob_expiry(key).await
    }
}

impl Replicas for Watched {}

#[async_trait::async_trait]
impl DeadPackets for Watched {
    async fn bury(&self, packet: DeadPacket) -> Result<(), StoreError> {
        self.inner.bury(packet).await
    }

    async fn buried(&self, cursor: Option<u64>, limit: usize) -> Result<Page<DeadPacket>, StoreError> {
        self.inner.buried(cursor, limit).await
    }
}

#[async_trait]
impl Breakers for Watched {
    async fn breaker(&self, name: &str) -> Result<Breaker, StoreError> {
        self.inner.breaker(name).await
    }

    async fn swap_breaker(&self, name: &str, before: Breaker, after: Breaker) -> Result<bool, StoreError> {
        self.inner.swap_breaker(name, before, after).await
    }
}

#[async_trait]
impl Trail for Watched {
    async fn record(&self, drafts: Vec<Draft>) -> Result<(), StoreError> {
        self.inner.record(drafts).await
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
        self.inner.audit(query).await
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError> {
        self.inner.chain(tenant, after, limit).await
    }

    async fn prune_audit(&self, before: Millis, limit: usize) -> Result<u64, StoreError> {
        self.inner.prune_audit(before, limit).await
    }
}
