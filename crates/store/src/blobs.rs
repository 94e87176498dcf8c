//! Blobs: the contexts, results and artifacts that jobs point to instead of carrying.

use crate::{Lock, StoreError};
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::time::Millis;

/// The largest value a blob may have. Contexts and results stop at 2 MiB, artifacts at 10 MiB.
pub const BLOB_LEN_MAX: usize = 10 * 1024 * 1024;

/// The largest value that the platform itself may store: its snapshot of a large fleet.
pub const SNAPSHOT_LEN_MAX: usize = 64 * 1024 * 1024;

/// The hash tag that all keys of ours have in common on a Redis Cluster, so that they are in one slot.
pub(crate) const SLOT_TAG: &str = "{rv}";

const REDACTED: &str = ":redacted:";
const WORKERS_SNAPSHOT: &str = "sys:workers:snapshot";

/// A key in the three families that jobs may point at (`ctx:`, `res:` and `art:`), or the platform's own
/// snapshot of its workers. On a Redis Cluster, what we write together with a job has a hash tag before it
/// ([`Store::colocated_key`](crate::Store::colocated_key)).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobKey(String);

/// The key names none of the blob families, or is too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("only keys that start with ctx:, res: or art: and have at most 512 bytes exist here")]
pub struct NotABlobKey;

impl BlobKey {
    /// A key that a client may write.
    pub fn parse(key: &str) -> Result<Self, NotABlobKey> {
        let family =
            ["ctx:", "res:", "art:"].iter().any(|family| key.starts_with(family) && key.len() > family.len());
        if family && key.len() <= 512 { Ok(Self(key.to_owned())) } else { Err(NotABlobKey) }
    }

    /// Like [`BlobKey::parse`], for readers: the worker snapshot may be read by clients, and written only by us.
    pub fn parse_readable(key: &str) -> Result<Self, NotABlobKey> {
        if key == WORKERS_SNAPSHOT { Ok(Self::workers_snapshot()) } else { Self::parse(key) }
    }

    /// The key of the worker snapshot.
    pub fn workers_snapshot() -> Self {
        Self(WORKERS_SNAPSHOT.to_owned())
    }

    /// The key that a pointer such as `redis://res:<job>` names. With the tag it is a different key; without a
    /// cluster, nobody writes that.
    pub fn from_pointer(pointer: &str) -> Result<Self, NotABlobKey> {
        let key = pointer.strip_prefix("redis://").ok_or(NotABlobKey)?;
        match key.strip_prefix(SLOT_TAG) {
            Some(name) => Self::parse(name).map(Self::in_our_slot),
            None => Self::parse(key),
        }
    }

    /// The same name, beside the jobs of a cluster.
    pub(crate) fn in_our_slot(self) -> Self {
        if self.is_in_our_slot() { self } else { Self(format!("{SLOT_TAG}{}", self.0)) }
    }

    pub(crate) fn is_in_our_slot(&self) -> bool {
        self.0.starts_with(SLOT_TAG)
    }

    fn name(&self) -> &str {
        self.0.strip_prefix(SLOT_TAG).unwrap_or(&self.0)
    }

    pub fn context_of(job: &JobId) -> Self {
        Self(format!("ctx:{job}"))
    }

    pub fn result_of(job: &JobId) -> Self {
        Self(format!("res:{job}"))
    }

    /// The job whose result this is, or a redacted copy of it.
    pub fn job_of_result(&self) -> Option<JobId> {
        let name = self.name().strip_prefix("res:")?;
        let id = name.split_once(REDACTED).map_or(name, |(id, _)| id);
        JobId::parse(id).ok()
    }

    /// The job that this is the input of.
    pub fn job_of_context(&self) -> Option<JobId> {
        JobId::parse(self.name().strip_prefix("ctx:")?).ok()
    }

    /// The key of the redacted copy of the result.
    pub fn redacted_result_of(job: &JobId, hash: &str) -> Self {
        Self(format!("res:{job}{REDACTED}{hash}"))
    }

    pub fn pointer(&self) -> String {
        format!("redis://{}", self.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutMode {
    Always,
    /// Only if nothing is there (`SET … NX`).
    IfAbsent,
    /// Only while this lock is held.
    Under(Lock),
}

/// What is known of a stored blob without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    pub key: BlobKey,
    pub len: usize,
    pub expires_at: Millis,
}

/// What jobs point to. A blob that was acknowledged survives kill -9, and every blob expires.
#[async_trait::async_trait]
pub trait Blobs: Send + Sync + 'static {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError>;

    /// Stores a blob until `expires_at`; returns whether it was stored.
    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError>;

    /// Removes blobs; returns how many existed.
    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError>;

    /// When a blob expires; nothing if there is none.
    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError>;

    /// What clients have stored, in the order of the keys after `after`, expired or not. Only asked of a store that one
    /// server has to itself.
    async fn stored_blobs(
        &self,
        _after: Option<BlobKey>,
        _limit: usize,
    ) -> Result<Vec<StoredBlob>, StoreError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshot_may_be_read_and_not_written() {
        let snapshot = BlobKey::workers_snapshot();
        assert_eq!(BlobKey::parse_readable("sys:workers:snapshot").as_ref(), Ok(&snapshot));
        assert_eq!(BlobKey::parse(snapshot.as_str()), Err(NotABlobKey));
        assert_eq!(BlobKey::from_pointer(&snapshot.pointer()), Err(NotABlobKey));
        assert_eq!(BlobKey::parse_readable("ctx:a"), BlobKey::parse("ctx:a"));
        for key in ["sys:workers:snapshot2", "sys:workers", "sys:", "ctx:", "key"] {
            assert_eq!(BlobKey::parse_readable(key), Err(NotABlobKey), "{key}");
        }
    }

    #[test]
    fn a_pointer_may_carry_the_tag_and_a_clients_key_may_not() {
        let job = JobId::known("j");
        let kept = BlobKey::context_of(&job).in_our_slot();
        assert_eq!(kept.pointer(), "redis://{rv}ctx:j");
        assert_eq!(BlobKey::from_pointer(&kept.pointer()).as_ref(), Ok(&kept));
        assert_eq!((kept.job_of_context(), kept.clone().in_our_slot()), (Some(job.clone()), kept.clone()));
        assert_eq!(BlobKey::from_pointer("redis://{rv}res:j:redacted:1").unwrap().job_of_result(), Some(job));
        assert_eq!(BlobKey::parse(kept.as_str()), Err(NotABlobKey));
        for pointer in ["redis://{rv}sys:workers:snapshot", "redis://{rv}{rv}ctx:j", "redis://{other}ctx:j"] {
            assert_eq!(BlobKey::from_pointer(pointer), Err(NotABlobKey), "{pointer}");
        }
    }
}
