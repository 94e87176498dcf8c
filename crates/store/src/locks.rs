//! Locks between replicas: a name that one of them holds for a while.
//!
//! A lock saves work that two would do twice. It does not keep the truth: a holder that was stopped for
//! longer than its TTL does not know that it has lost the lock. What must not be done twice is compared
//! and swapped, or carries the fence.

use crate::StoreError;
use reveille_core::time::Millis;

/// Seed 004, section 8: how long a replica may take over one decision about a job.
pub(crate) const JOB_LOCK_MS: i64 = 60_000;

/// The latest that a lock of this TTL can last, if the clocks of replicas are a little apart. One that would
/// last longer was taken by a clock that has been set back since, and holds nobody up.
pub(crate) fn until_max(now: Millis, ttl_ms: i64) -> Millis {
    now + 2 * ttl_ms
}

/// A lock that was taken. It is proof of holding it for as long as it has neither lapsed nor been given
/// back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    pub name: String,
    /// Which taking of the lock this is: no other lock ever had this number, and a later holder of the
    /// same name has a larger one. So it tells holders apart, and whoever is written to can refuse a
    /// holder of yesterday.
    pub fence: u64,
}

/// A lock that somebody holds, for those who look on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLock {
    /// As it was asked for.
    pub name: String,
    /// The replica that has it; nothing where there is only one.
    pub holder: String,
    /// When it lapses, unless it is renewed before.
    pub until: Millis,
}

/// The port. At any moment a name has at most one holder by the store's clock. Who holds it may have lost it without
/// knowing, so that what must not happen twice is committed under the lock ([`Preconditions`](crate::Preconditions),
/// [`PutMode`](crate::PutMode)).
#[async_trait::async_trait]
pub trait Locks: Send + Sync + 'static {
    /// Takes a lock for `ttl_ms`; nothing if somebody holds it and it has not lapsed. A lock has the same TTL
    /// whoever takes it.
    async fn lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>, StoreError>;

    /// Holds on to a lock for `ttl_ms` from now. Says no if it has lapsed or somebody else has it.
    async fn renew(&self, lock: &Lock, ttl_ms: i64) -> Result<bool, StoreError>;

    /// Gives a lock back. Says no, and changes nothing, if it has lapsed or somebody else has it.
    async fn unlock(&self, lock: &Lock) -> Result<bool, StoreError>;

    /// Locks that are held, those that lapse first in front; at most `limit`. The ones that jobs are opened under are
    /// many and last a moment: they are not among these.
    async fn locks_held(&self, limit: usize) -> Result<Vec<HeldLock>, StoreError>;
}
