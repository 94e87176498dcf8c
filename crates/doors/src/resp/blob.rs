//! What blob commands do: query the store and turn its answer into a reply.

use super::command::BlobCommand;
use super::reply::RespReply;
use reveille_store::{BlobKey, Blobs, ClockFn, StoreError};
use std::sync::Arc;

/// What Redis answers for the TTL of a key that does not exist.
const NO_SUCH_KEY: i64 = -2;

#[derive(Clone)]
pub(super) struct BlobExecutor {
    pub blobs: Arc<dyn Blobs>,
    pub clock: ClockFn,
    /// How long a blob is kept when the client does not say.
    pub ttl_ms: i64,
    /// How long a blob is kept at most, whatever the client says.
    pub ttl_max_ms: i64,
}

impl BlobExecutor {
    pub async fn perform(&self, command: BlobCommand) -> RespReply {
        self.attempt(command).await.unwrap_or_else(|error| {
            // Somebody asked for what is not theirs.
            if let StoreError::Refused(why) = error {
                return RespReply::error(format!("NOPERM {why}"));
            }
            tracing::warn!(%error, "a blob command failed");
            RespReply::error(format!("ERR {error}"))
        })
    }

    async fn attempt(&self, command: BlobCommand) -> Result<RespReply, StoreError> {
        Ok(match command {
            BlobCommand::Get(key) => self.blobs.blob(&key).await?.map_or(RespReply::Null, RespReply::Bulk),
            BlobCommand::Set { key, value, ttl_ms, mode } => {
                let expires_at = (self.clock)() + ttl_ms.unwrap_or(self.ttl_ms).min(self.ttl_max_ms);
                let stored = self.blobs.put_blob(key, value, expires_at, mode).await?;
                if stored { RespReply::OK } else { RespReply::Null }
            }
            BlobCommand::Delete(keys) => RespReply::Integer(self.blobs.delete_blobs(keys).await? as i64),
            BlobCommand::Exists(keys) => {
                let mut count = 0;
                for key in &keys {
                    count += i64::from(self.millis_left(key).await?.is_some());
                }
                RespReply::Integer(count)
            }
            BlobCommand::TtlSeconds(key) => {
                let seconds = self.millis_left(&key).await?.map(|left_ms| (left_ms + 500) / 1000);
                RespReply::Integer(seconds.unwrap_or(NO_SUCH_KEY))
            }
            BlobCommand::TtlMillis(key) => {
                RespReply::Integer(self.millis_left(&key).await?.unwrap_or(NO_SUCH_KEY))
            }
        })
    }

    /// How long a blob remains; nothing if there is none, or it has expired.
    async fn millis_left(&self, key: &BlobKey) -> Result<Option<i64>, StoreError> {
        let expires_at = self.blobs.blob_expiry(key).await?;
        Ok(expires_at.map(|expires_at| expires_at.since((self.clock)())).filter(|left_ms| *left_ms > 0))
    }
}
