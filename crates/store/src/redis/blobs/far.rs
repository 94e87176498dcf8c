//! Blobs on a different cluster node than the jobs: results, under the names that workers give them.
//!
//! Each command has one key, so that it can be sent to whichever node has it. Nothing ties such a blob to a step: it
//! exists before its job ends, and it is deleted shortly after its job, or when it expires.

use super::super::RedisStore;
use crate::{BlobKey, PutMode, StoreError};
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::time::Millis;

impl RedisStore {
    /// Whether it is out of the scripts' reach.
    pub(in super::super) fn is_far(&self, key: &BlobKey) -> bool {
        self.keys.is_on_a_cluster() && !key.is_in_our_slot()
    }

    pub(super) async fn far_blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        let value: Option<Vec<u8>> = self.link.large_command(redis::cmd("GET").arg(key.as_str())).await?;
        Ok(value.map(Bytes::from))
    }

    pub(super) async fn put_far(
        &self,
        key: &BlobKey,
        value: &Bytes,
        expires_at: Millis,
        mode: &PutMode,
    ) -> Result<bool, StoreError> {
        let mut set = redis::cmd("SET");
        set.arg(key.as_str()).arg(&value[..]).arg("PX").arg((expires_at.0 - self.now().0).max(1));
        match mode {
            PutMode::Always => {
                let () = self.link.large_command(&set).await?;
                Ok(true)
            }
            PutMode::IfAbsent => Ok(self.link.command_once(set.arg("NX")).await?),
            PutMode::Under(_) => {
                let words = format!("no lock holds for {}, which is on another node", key.as_str());
                Err(StoreError::Refused(words))
            }
        }
    }

    /// The client sends one command to each node.
    pub(in super::super) async fn delete_far(
        &self,
        keys: impl Iterator<Item = String>,
    ) -> Result<u64, StoreError> {
        let keys: Vec<String> = keys.collect();
        if keys.is_empty() {
            return Ok(0);
        }
        Ok(self.link.large_command(redis::cmd("DEL").arg(keys)).await?)
    }

    pub(super) async fn far_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        let ttl: i64 = self.link.large_command(redis::cmd("PTTL").arg(key.as_str())).await?;
        Ok(self.expiry_of(ttl))
    }

    /// A worker writes its result without a TTL; the end of the job gives it one. If that fails, the result is
    /// deleted with its job.
    pub(in super::super) async fn keep_result_of(&self, job: &JobId) {
        let mut expire = redis::cmd("PEXPIRE");
        expire.arg(BlobKey::result_of(job).as_str()).arg(self.options.keep_results_ms).arg("NX");
        if let Err(error) = self.link.large_command::<u64>(&expire).await {
            tracing::debug!(%job, %error, "the result has no end of its own");
        }
    }
}
