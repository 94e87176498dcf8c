//! The blobs, as clients of the doors may read and write them. What policy has looked at stays as it was,
//! and what nobody may read is not there.

use super::Jobs;
use bytes::Bytes;
use reveille_core::job::{Job, State};
use reveille_core::time::Millis;
use reveille_store::{BlobKey, Blobs, PutMode, Store, StoreError};
use std::sync::Arc;

struct GuardedBlobs(Jobs);

impl Jobs {
    pub fn readable_blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(GuardedBlobs(self.clone()))
    }

    /// What a pointer of this job points at, if whoever may see the job may see that: a pointer is only a
    /// name, and a worker can name anything.
    pub async fn readable(&self, job: &Job, pointer: &str) -> Result<Option<Bytes>, StoreError> {
        let Ok(key) = BlobKey::from_pointer(pointer) else { return Ok(None) };
        if let Some(id) = key.job_of_result().or_else(|| key.job_of_context())
            && id != *job.id()
            && let Some(other) = self.store.job(&id).await?
            && (other.request.tenant != job.request.tenant || self.hides(&other, &key))
        {
            return Ok(None);
        }
        self.store.blob(&key).await
    }

    /// Whether nobody may read this of a job: it is held back, a redacted copy has taken its place, or nobody
    /// has looked at it yet and somebody must.
    fn hides(&self, job: &Job, key: &BlobKey) -> bool {
        if key.job_of_result().is_none() {
            return false;
        }
        let is_unseen = job.state() != State::Succeeded && self.holds_unseen();
        self.holds_result(job) || is_hidden(job, key) || is_unseen
    }
}

/// What a pointer points at, if it is ours.
pub(super) async fn content(store: &dyn Store, pointer: &str) -> Result<Option<Bytes>, StoreError> {
    match BlobKey::from_pointer(pointer) {
        Ok(key) => store.blob(&key).await,
        Err(_) => Ok(None),
    }
}

impl GuardedBlobs {
    /// Whether it is what somebody may still have to look at.
    async fn is_evidence(&self, key: &BlobKey) -> Result<bool, StoreError> {
        let Some(id) = key.job_of_result() else { return Ok(false) };
        let job = self.0.store.job(&id).await?;
        Ok(job.is_some_and(|job| job.state() == State::OutputQuarantined || is_hidden(&job, key)))
    }
}

/// A redacted copy has taken its place: of a result that was looked at, only what the job ended with is there.
fn is_hidden(job: &Job, key: &BlobKey) -> bool {
    let result = job.ending().filter(|ending| ending.state == State::Succeeded && job.output.is_some());
    result.is_some_and(|ending| ending.result_ptr != key.pointer())
}

#[async_trait::async_trait]
impl Blobs for GuardedBlobs {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        if let Some(id) = key.job_of_result()
            && let Some(job) = self.0.store.job(&id).await?
            && self.0.hides(&job, key)
        {
            return Ok(None);
        }
        self.0.store.blob(key).await
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        let of_context = key.job_of_context();
        let is_context = of_context.is_some();
        let Some(id) = of_context.or_else(|| key.job_of_result()) else {
            return self.0.store.put_blob(key, value, expires_at, mode).await;
        };
        // A verdict reads first and commits later; its lock keeps us out in between.
        let _lock = self.0.lock(&id).await;
        // An input is fixed from the moment its job exists, a result from the moment it has ended.
        let job = self.0.store.job(&id).await?;
        if job.is_some_and(|job| is_context || job.state().is_terminal()) {
            return Ok(false);
        }
        self.0.store.put_blob(key, value, expires_at, mode).await
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        let mut deletable = Vec::with_capacity(keys.len());
        for key in keys {
            if !self.is_evidence(&key).await? {
                deletable.push(key);
            }
        }
        self.0.store.delete_blobs(deletable).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        self.0.store.blob_expiry(key).await
    }
}
