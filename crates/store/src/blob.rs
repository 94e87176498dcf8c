//! Blobs: the contexts, results and artifacts that jobs point at instead of carrying.

use crate::{Lock, StoreError};
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::time::Millis;

/// The largest value a blob may have. Contexts and results stop at 2 MiB, artifacts at 10 MiB.
pub const BLOB_LEN_MAX: usize = 10 * 1024 * 1024;

/// The largest value that the platform itself may store: its snapshot of a large fleet.
pub const SNAPSHOT_LEN_MAX: usize = 64 * 1024 * 1024;

const REDACTED: &str = ":redacted:";
const WORKERS_SNAPSHOT: &str = "sys:workers:snapshot";

/// A key in the three families that jobs may point at (`ctx:`, `res:` and `art:`), or the platform's own
/// snapshot of its workers.
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

    /// As [`BlobKey::parse`], for those who only look: the snapshot of the workers may be read, and
    /// written by nobody but us.
    pub fn parse_readable(key: &str) -> Result<Self, NotABlobKey> {
        if key == WORKERS_SNAPSHOT { Ok(Self::workers_snapshot()) } else { Self::parse(key) }
    }

    /// Where the platform says which workers it knows.
    pub fn workers_snapshot() -> Self {
        Self(WORKERS_SNAPSHOT.to_owned())
    }

    /// The key that a pointer such as `redis://res:<job>` names.
    pub fn from_pointer(pointer: &str) -> Result<Self, NotABlobKey> {
        Self::parse(pointer.strip_prefix("redis://").ok_or(NotABlobKey)?)
    }

    pub fn context_of(job: &JobId) -> Self {
        Self(format!("ctx:{job}"))
    }

    pub fn result_of(job: &JobId) -> Self {
        Self(format!("res:{job}"))
    }

    /// The job whose result this is, or a redacted copy of it.
    pub fn job_of_result(&self) -> Option<JobId> {
        let name = self.0.strip_prefix("res:")?;
        let id = name.split_once(REDACTED).map_or(name, |(id, _)| id);
        JobId::parse(id).ok()
    }

    /// The job that this is the input of.
    pub fn job_of_context(&self) -> Option<JobId> {
        JobId::parse(self.0.strip_prefix("ctx:")?).ok()
    }

    /// Where a copy of the result goes that lacks what nobody may read.
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

/// What jobs point at. A blob that was acknowledged survives kill -9, and every blob expires.
#[async_trait::async_trait]
pub trait Blobs: Send + Sync + 'static {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError>;

    /// Stores a blob until `expires_at`; says whether it was stored.
    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError>;

    /// Removes blobs; says how many there were.
    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError>;

    /// When a blob will go; nothing if there is none.
    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError>;
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
}
