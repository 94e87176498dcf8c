//! Blobs in memory, and a clock that stands still.

use bytes::Bytes;
use reveille_core::time::Millis;
use reveille_store::{BlobKey, Blobs, PutMode, StoreError};
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::sync::Barrier;

pub const NOW: Millis = Millis(1_000_000);

#[derive(Default)]
pub struct MemoryBlobs {
    blobs: Mutex<HashMap<BlobKey, (Bytes, Millis)>>,
    /// If set, a write is durable only once so many wait for it, as in a group commit.
    commit_together: Option<Barrier>,
}

impl MemoryBlobs {
    pub fn committing_together(writes: usize) -> Self {
        Self { commit_together: Some(Barrier::new(writes)), ..Self::default() }
    }

    pub fn insert(&self, key: &str, value: &'static str) {
        self.blobs.lock().unwrap().insert(BlobKey::parse(key).unwrap(), (value.into(), NOW + 60_000));
    }
}

#[async_trait::async_trait]
impl Blobs for MemoryBlobs {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        Ok(self.blobs.lock().unwrap().get(key).map(|(value, _)| value.clone()))
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        if let Some(commit_together) = &self.commit_together {
            commit_together.wait().await;
        }
        let mut blobs = self.blobs.lock().unwrap();
        if mode == PutMode::IfAbsent && blobs.contains_key(&key) {
            return Ok(false);
        }
        blobs.insert(key, (value, expires_at));
        Ok(true)
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        let mut blobs = self.blobs.lock().unwrap();
        Ok(keys.iter().filter(|key| blobs.remove(key).is_some()).count() as u64)
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        Ok(self.blobs.lock().unwrap().get(key).map(|(_, expires_at)| *expires_at))
    }
}
