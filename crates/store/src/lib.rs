//! The store's ports: everything durable that a job's life needs, and their adapters.

mod audit_trail;
mod blobs;
mod breakers;
mod dead_letters;
mod dead_packets;
mod event_log;
mod job_store;
mod ledger;
mod locks;
mod membership;
mod memory;
pub mod postgres;
mod preconditions;
mod query;
mod redis;
mod sqlite;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
pub mod workflows;
mod workspace_hints;

pub use audit_trail::{AuditOrder, AuditQuery, AuditTrail, ChainPage, verify_chain};
pub use blobs::{BLOB_LEN_MAX, BlobKey, Blobs, NotABlobKey, PutMode, SNAPSHOT_LEN_MAX, StoredBlob};
pub use breakers::Breakers;
pub use dead_letters::{DeadLetterCounts, DeadLetterQuery, DeadLetters};
pub use dead_packets::{
    AboutPacket, DEAD_PACKET_KEEP_MS, DEAD_PACKET_LEN_MAX, DEAD_PACKETS_MAX, DeadPacket, DeadPackets,
};
pub use event_log::{EVENT_LOG_BYTES_MAX, EVENT_LOG_KEPT_MAX, EVENT_LOG_LEN_MAX, EventLog, EventPage};
pub use job_store::{Commit, JobStore, Step};
pub use ledger::{Ledger, Origin};
pub use locks::{HeldLock, Lock, Locks};
pub use membership::{BEAT_MS, BEAT_TTL_MS, Members, Membership};
pub use memory::{MemoryLedger, MemoryStore};
pub use preconditions::{ExceededQuota, Opened, Preconditions, Quota, Receipt};
pub use query::{JobQuery, PAGE_LEN_MAX, Page, page_len};
pub use redis::{RedisLink, RedisOptions, RedisStore, key_part};
pub use sqlite::{OpenError, SqliteFile, SqliteStats, SqliteStore};
pub use workspace_hints::WorkspaceHints;

use reveille_core::time::Millis;
use std::sync::Arc;

/// Why a store operation failed. `Full` and `Unavailable` are worth retrying later.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Says what is full.
    #[error("{0}")]
    Full(&'static str),
    #[error("the store is not available: {0}")]
    Unavailable(String),
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
    /// A rule of a table says no, and will say so again.
    #[error("the store refuses a change: {0}")]
    Refused(String),
}

pub(crate) type StoreResult<T> = Result<T, StoreError>;

/// What a store on this machine says.
pub const DISK_FULL: &str = "the disk is full";

/// The current time, for code that must not return what has expired. In the simulation, the simulation sets it.
pub type ClockFn = Arc<dyn Fn() -> Millis + Send + Sync>;

impl StoreError {
    /// Whether a retry may work later. What is unreadable or refused stays so, and retrying would only hold up
    /// everything behind it.
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::Corrupt(_) | Self::Refused(_))
    }
}

/// Everything durable that a job's life needs: all the ports of one adapter together. Code that needs one of them
/// asks for that one; an `Arc<dyn Store>` is an `Arc<dyn Locks>` wherever that is wanted.
pub trait Store:
    JobStore
    + DeadLetters
    + Locks
    + Blobs
    + Breakers
    + DeadPackets
    + Membership
    + EventLog
    + AuditTrail
    + WorkspaceHints
{
}

impl<T> Store for T where
    T: JobStore
        + DeadLetters
        + Locks
        + Blobs
        + Breakers
        + DeadPackets
        + Membership
        + EventLog
        + AuditTrail
        + WorkspaceHints
{
}
