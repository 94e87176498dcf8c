//! The blobs of a worker with a credential of its own: the inputs of the jobs that it was given, and the results that
//! it makes of them. What is another's is not there.

use super::Jobs;
use bytes::Bytes;
use reveille_core::fleet::WorkerCredential;
use reveille_core::id::{KeyId, WorkerId};
use reveille_core::job::Job;
use reveille_core::time::Millis;
use reveille_store::{BlobKey, Blobs, PutMode, StoreError};
use std::sync::Arc;

struct WorkerBlobs {
    jobs: Jobs,
    /// With what nobody may read, and what may not be changed any more, taken out already.
    guarded: Arc<dyn Blobs>,
    credential: Arc<WorkerCredential>,
}

impl Jobs {
    /// What whoever has this credential may touch.
    pub fn blobs_of(&self, credential: &Arc<WorkerCredential>) -> Arc<dyn Blobs> {
        let (jobs, guarded) = (self.clone(), self.readable_blobs());
        Arc::new(WorkerBlobs { jobs, guarded, credential: credential.clone() })
    }
}

impl WorkerBlobs {
    async fn may_read(&self, key: &BlobKey) -> Result<bool, StoreError> {
        Ok(self.is_of_given_job(key).await? || self.is_lent(key))
    }

    /// Artifacts have no job in their names: whoever makes one chooses a name that is free.
    async fn may_write(&self, key: &BlobKey) -> Result<bool, StoreError> {
        if key.job_of_context().is_some() {
            return Ok(false);
        }
        if key.job_of_result().is_some() {
            return self.is_of_given_job(key).await;
        }
        Ok(self.guarded.blob_expiry(key).await?.is_none())
    }

    async fn is_of_given_job(&self, key: &BlobKey) -> Result<bool, StoreError> {
        let Some(id) = key.job_of_context().or_else(|| key.job_of_result()) else { return Ok(false) };
        Ok(self.jobs.store.job(&id).await?.is_some_and(|job| self.was_given(&job)))
    }

    /// Whether the job is under way and one of this credential's workers has, or had, it. An attempt that went to a
    /// topic's queue group may be anybody's who serves it.
    fn was_given(&self, job: &Job) -> bool {
        let is_ours = |worker: &WorkerId| {
            let placement = self.jobs.placement.lock();
            placement.credential_of(worker).is_some_and(|own| self.is_holder(&own.key))
        };
        !job.state().is_terminal()
            && self.credential.grant.serves(&job.request.tenant, &job.request.topic)
            && job.attempts.iter().any(|given| given.as_ref().is_none_or(is_ours))
    }

    /// Whether a job at one of this credential's workers works on it, though it is not that job's own.
    fn is_lent(&self, key: &BlobKey) -> bool {
        let placement = self.jobs.placement.lock();
        placement.is_lent(&key.pointer(), &self.credential.grant, |holder| self.is_holder(holder))
    }

    fn is_holder(&self, key: &KeyId) -> bool {
        *key == self.credential.key || self.jobs.keys.is_same_holder(key, &self.credential.key)
    }
}

#[async_trait::async_trait]
impl Blobs for WorkerBlobs {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        if self.may_read(key).await? { self.guarded.blob(key).await } else { Ok(None) }
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        if !self.may_write(&key).await? {
            return Err(StoreError::Refused("this is not of a job that this key was given".to_owned()));
        }
        // Of two who choose the same name for an artifact, the second is told.
        let mode = if key.job_of_result().is_some() { mode } else { PutMode::IfAbsent };
        self.guarded.put_blob(key, value, expires_at, mode).await
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        let mut own = Vec::with_capacity(keys.len());
        for key in keys {
            if key.job_of_result().is_some() && self.is_of_given_job(&key).await? {
                own.push(key);
            }
        }
        self.guarded.delete_blobs(own).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        if self.may_read(key).await? { self.guarded.blob_expiry(key).await } else { Ok(None) }
    }
}
