//! Blobs: the contexts, results and artifacts that jobs point at instead of carrying.

use crate::StoreError;
use bytes::Bytes;
use reveille_core::time::Millis;

/// The largest value a blob may have. Contexts and results stop at 2 MiB, artifacts at 10 MiB.
pub const BLOB_LEN_MAX: usize = 10 * 1024 * 1024;

/// A key in the three families that jobs may point at: `ctx:`, `res:` and `art:`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobKey(String);

/// The key names none of the blob families, or is too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("only keys that start with ctx:, res: or art: and have at most 512 bytes exist here")]
pub struct NotABlobKey;

impl BlobKey {
    pub fn parse(key: &str) -> Result<Self, NotABlobKey> {
        let family =
            ["ctx:", "res:", "art:"].iter().any(|family| key.starts_with(family) && key.len() > family.len());
        if family && key.len() <= 512 { Ok(Self(key.to_owned())) } else { Err(NotABlobKey) }
    }

    /// The key that a pointer such as `redis://res:<job>` names.
    pub fn from_pointer(pointer: &str) -> Result<Self, NotABlobKey> {
        Self::parse(pointer.strip_prefix("redis://").ok_or(NotABlobKey)?)
    }

    pub fn context_of(job: &reveille_core::id::JobId) -> Self {
        Self(format!("ctx:{job}"))
    }

    pub fn result_of(job: &reveille_core::id::JobId) -> Self {
        Self(format!("res:{job}"))
    }

    pub fn pointer(&self) -> String {
        format!("redis://{}", self.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutMode {
    Always,
    /// Only if nothing is there (`SET … NX`).
    IfAbsent,
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
