//! Blobs under the names that workers read and write themselves.
//!
//! What we store expires by our clock, according to `blob:ends`; Redis's own TTL comes a minute later and catches
//! what we miss. What a worker stores has no entry there and expires as the worker said. Blobs on another node of a
//! cluster are treated as a worker's, whoever stored them (`far.rs`).

mod far;

use super::RedisStore;
use super::script::{ScriptCall, call};
use super::scripts::{DeleteBlobs, PutBlob, PutBlobUnder};
use crate::{BlobKey, Blobs, Lock, PutMode, StoreError};
use bytes::Bytes;
use redis::Pipeline;
use reveille_core::time::Millis;

/// How long a blob stays in its staging key if its writer is gone.
const BESIDE_MS: i64 = 60_000;

#[async_trait::async_trait]
impl Blobs for RedisStore {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        if self.is_far(key) {
            return self.far_blob(key).await;
        }
        let mut pipeline = Pipeline::new();
        pipeline.cmd("GET").arg(key.as_str());
        pipeline.cmd("ZSCORE").arg(self.keys.of("blob:ends")).arg(key.as_str());
        let (value, ends): (Option<Vec<u8>>, Option<i64>) = self.link.large_pipeline(&pipeline).await?;
        Ok(value.filter(|_| self.is_there_until(ends)).map(Bytes::from))
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        if self.is_far(&key) {
            return self.put_far(&key, &value, expires_at, &mode).await;
        }
        let ttl = self.ttl_ms(expires_at);
        if let PutMode::Under(lock) = &mode {
            return self.put_under(lock, &key, &value, expires_at).await;
        }
        if mode == PutMode::IfAbsent {
            let put = call!(PutBlob {
                blob: key.as_str(),
                prefix: &self.keys.prefix,
                now: self.now().0,
                value: &value[..],
                expires_at: expires_at.0,
                ttl_ms: ttl,
            });
            return Ok(self.link.run(&put.of(&self.scripts)).await?);
        }
        // No script: it would copy the value once more.
        let mut pipeline = Pipeline::new();
        pipeline.atomic();
        pipeline.cmd("SET").arg(key.as_str()).arg(&value[..]).arg("PX").arg(ttl).ignore();
        pipeline.cmd("ZADD").arg(self.keys.of("blob:ends")).arg(expires_at.0).arg(key.as_str()).ignore();
        let () = self.link.large_pipeline(&pipeline).await?;
        Ok(true)
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        let (far, near): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| self.is_far(key));
        let gone = self.delete_far(far.iter().map(|key| key.as_str().to_owned())).await?;
        if near.is_empty() {
            return Ok(gone);
        }
        let delete = call!(DeleteBlobs { prefix: &self.keys.prefix, now: self.now().0 });
        let delete = delete.of_more(&self.scripts, near.iter().map(BlobKey::as_str));
        Ok(gone + self.link.run::<u64>(&delete).await?)
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        if self.is_far(key) {
            return self.far_expiry(key).await;
        }
        let mut pipeline = Pipeline::new();
        pipeline.cmd("PTTL").arg(key.as_str());
        pipeline.cmd("ZSCORE").arg(self.keys.of("blob:ends")).arg(key.as_str());
        let (ttl, ends): (i64, Option<i64>) = self.link.pipeline(&pipeline).await?;
        let foreign = self.expiry_of(ttl);
        Ok(foreign.filter(|_| self.is_there_until(ends)).map(|foreign| ends.map_or(foreign, Millis)))
    }
}

impl RedisStore {
    /// A script would copy a large value once more, so it is written to a staging key first.
    async fn put_under(
        &self,
        lock: &Lock,
        key: &BlobKey,
        value: &Bytes,
        expires_at: Millis,
    ) -> Result<bool, StoreError> {
        let beside = self.keys.of(&format!("cordum:beside:{}", lock.fence));
        let mut pipeline = Pipeline::new();
        pipeline.cmd("SET").arg(&beside).arg(&value[..]).arg("PX").arg(BESIDE_MS).ignore();
        let () = self.link.large_pipeline(&pipeline).await?;
        let put = call!(PutBlobUnder {
            lock: &lock.name,
            beside: &beside,
            blob: key.as_str(),
            prefix: &self.keys.prefix,
            fence: lock.fence,
            now: self.script_now(),
            expires_at: expires_at.0,
            ttl_ms: self.ttl_ms(expires_at),
        });
        Ok(self.link.run_surely(&put.of(&self.scripts)).await?)
    }

    /// The answer of `PTTL`. −2: no such key. −1: a key without a TTL.
    fn expiry_of(&self, ttl: i64) -> Option<Millis> {
        match ttl {
            -2 => None,
            -1 => Some(Millis(i64::MAX)),
            ttl => Some(self.now() + ttl),
        }
    }

    fn is_there_until(&self, ends: Option<i64>) -> bool {
        ends.is_none_or(|ends| self.now().0 < ends)
    }
}
