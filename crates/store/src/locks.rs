//! Locks between replicas: a name that one of them holds for a while.
//!
//! A lock saves duplicate work. It does not guarantee correctness: a holder that was stopped for longer than its TTL
//! does not know that it has lost the lock. What must not be done twice uses compare-and-swap, or carries the fence.

use crate::StoreError;
use reveille_core::time::Millis;

/// Seed 004, section 8: how long a replica may take over one decision about a job.
pub(crate) const JOB_LOCK_MS: i64 = 60_000;

/// The longest that a lock of this TTL can last, allowing for small clock differences between replicas. A lock that
/// would last longer was taken before the clock was set back, and is ignored.
pub(crate) fn until_max(now: Millis, ttl_ms: i64) -> Millis {
    now + 2 * ttl_ms
}

/// A lock that was taken. It is proof of holding it until it expires or is released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    pub name: String,
    /// The fencing token: no other lock ever had this number, and a later holder of the same name has a larger one.
    /// So it distinguishes holders, and a store can refuse a former holder's write.
    pub fence: u64,
}

/// A lock that is held, for observers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLock {
    /// As it was asked for.
    pub name: String,
    /// The replica that has it; nothing where there is only one.
    pub holder: String,
    /// When it expires, unless it is renewed before.
    pub until: Millis,
}

/// The port. At any moment a name has at most one holder by the store's clock. A holder may have lost it without
/// knowing, so what must not happen twice is committed under the lock ([`Preconditions`](crate::Preconditions),
/// [`PutMode`](crate::PutMode)).
#[async_trait::async_trait]
pub trait Locks: Send + Sync + 'static {
    /// Takes a lock for `ttl_ms`; nothing if someone holds it and it has not expired. A lock has the same TTL whoever
    /// takes it.
    async fn lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>, StoreError>;

    /// Renews a lock for `ttl_ms` from now. Returns false if it has expired or someone else has it.
    async fn renew(&self, lock: &Lock, ttl_ms: i64) -> Result<bool, StoreError>;

    /// Releases a lock. Returns false, and changes nothing, if it has expired or someone else has it.
    async fn unlock(&self, lock: &Lock) -> Result<bool, StoreError>;

    /// Locks that are held, those that expire first in front; at most `limit`. Excludes the locks under which jobs
    /// are opened: they are many and brief.
    async fn locks_held(&self, limit: usize) -> Result<Vec<HeldLock>, StoreError>;
}
