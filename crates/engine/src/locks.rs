//! Locks between servers. One that is alone needs none; which of the two it is, is decided at the start.

use reveille_store::{Lock, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// How long to leave a lock alone that another server holds.
pub const BUSY_PAUSE: Duration = Duration::from_millis(25);

#[derive(Clone)]
pub struct SharedLocks(Option<Arc<dyn Store>>);

impl SharedLocks {
    pub fn new(store: &Arc<dyn Store>) -> Self {
        Self(store.is_shared().then(|| store.clone()))
    }

    /// Waits for the lock; nothing where nobody else could hold it.
    pub async fn take(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>, StoreError> {
        let Some(store) = &self.0 else { return Ok(None) };
        loop {
            if let Some(lock) = store.lock(name, ttl_ms).await? {
                return Ok(Some(lock));
            }
            tokio::time::sleep(BUSY_PAUSE).await;
        }
    }

    /// Whether this server is the one to do what all of them would. The claim lapses by itself. A store that is
    /// away keeps nobody from it.
    pub async fn claim(&self, name: &str, ttl_ms: i64) -> bool {
        let Some(store) = &self.0 else { return true };
        store.lock(name, ttl_ms).await.map_or(true, |lock| lock.is_some())
    }

    /// Gives a lock back. If that fails, it lapses by itself.
    pub async fn release(&self, lock: Option<Lock>) {
        if let (Some(store), Some(lock)) = (&self.0, lock)
            && let Err(error) = store.unlock(&lock).await
        {
            tracing::debug!(lock = %lock.name, %error, "lock not released; it will expire");
        }
    }
}
