//! Locks between replicas: a name that one of them holds for a while.
//!
//! A lock saves work that two would do twice. It does not keep the truth: a holder that was stopped for
//! longer than its TTL does not know that it has lost the lock. What must not be done twice is compared
//! and swapped, or carries the fence.

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
