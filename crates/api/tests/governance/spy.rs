//! A store that shows every commit to the ledger, and that can be made unable to read results.

use crate::ledger::Ledger;
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Clone)]
pub struct Spy {
    pub store: MemoryStore,
    pub ledger: Arc<Mutex<Ledger>>,
    pub clock: reveille_store::Clock,
    /// Results cannot be read.
    pub is_blind: Arc<AtomicBool>,
}

#[async_trait::async_trait]
impl Store for Spy {
    async fn commit(&self, step: Step) -> Result<Commit, StoreError> {
        let job = step.job.clone();
        let done = self.store.commit(step).await?;
        if done == Commit::Done {
            self.ledger.lock().unwrap().committed(&job, (self.clock)());
        }
        Ok(done)
    }

    async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        self.store.job(id).await
    }

    async fn job_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<JobId>, StoreError> {
        self.store.job_of_key(tenant, key).await
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        self.store.jobs(query).await
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        self.store.live(cursor, limit).await
    }

    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError> {
        self.store.dead_letters(query).await
    }

    async fn count_dead_letters(&self, tenant: Option<&TenantId>) -> Result<DeadLetterCounts, StoreError> {
        self.store.count_dead_letters(tenant).await
    }

    async fn remove_dead_letter(&self, job: &JobId) -> Result<bool, StoreError> {
        self.store.remove_dead_letter(job).await
    }

    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> Result<u64, StoreError> {
        self.store.prune(ended_before, now, limit).await
    }

    async fn lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>, StoreError> {
        self.store.lock(name, ttl_ms).await
    }

    async fn renew(&self, lock: &Lock, ttl_ms: i64) -> Result<bool, StoreError> {
        self.store.renew(lock, ttl_ms).await
    }

    async fn unlock(&self, lock: &Lock) -> Result<bool, StoreError> {
        self.store.unlock(lock).await
    }
}

impl Replicas for Spy {}

#[async_trait::async_trait]
impl DeadPackets for Spy {
    async fn bury(&self, packet: DeadPacket) -> Result<(), StoreError> {
        self.store.bury(packet).await
    }

    async fn buried(&self, cursor: Option<u64>, limit: usize) -> Result<Page<DeadPacket>, StoreError> {
        self.store.buried(cursor, limit).await
    }
}

#[async_trait::async_trait]
impl Breakers for Spy {
    async fn breaker(&self, name: &str) -> Result<Breaker, StoreError> {
        self.store.breaker(name).await
    }

    async fn swap_breaker(&self, name: &str, before: Breaker, after: Breaker) -> Result<bool, StoreError> {
        self.store.swap_breaker(name, before, after).await
    }
}

#[async_trait::async_trait]
impl Trail for Spy {
    async fn record(&self, drafts: Vec<Draft>) -> Result<(), StoreError> {
        self.store.record(drafts).await
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
        self.store.audit(query).await
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError> {
        self.store.chain(tenant, after, limit).await
    }

    async fn prune_audit(&self, before: Millis, limit: usize) -> Result<u64, StoreError> {
        self.store.prune_audit(before, limit).await
    }
}

#[async_trait::async_trait]
impl Blobs for Spy {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        if self.is_blind.load(Ordering::Relaxed) && key.job_of_result().is_some() {
            return Err(StoreError::Unavailable("on purpose".to_owned()));
        }
        self.store.blob(key).await
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        self.store.put_blob(key, value, expires_at, mode).await
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        self.store.delete_blobs(keys).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        self.store.blob_expiry(key).await
    }
}
