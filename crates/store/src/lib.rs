//! The Store port: everything durable that a job's life needs, and its adapters.

mod audit;
mod blob;
mod breaker;
mod ledger;
mod lock;
mod memory;
mod packet;
mod preconditions;
mod query;
mod redis;
mod replica;
mod sqlite;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
pub mod workflows;

pub use audit::{AuditOrder, AuditQuery, ChainPage, Trail, verify_chain};
pub use blob::{BLOB_LEN_MAX, BlobKey, Blobs, NotABlobKey, PutMode, SNAPSHOT_LEN_MAX};
pub use breaker::Breakers;
pub use ledger::{Ledger, Origin};
pub use lock::{HeldLock, Lock};
pub use memory::{MemoryLedger, MemoryStore};
pub use packet::{
    AboutPacket, DEAD_PACKET_KEEP_MS, DEAD_PACKET_LEN_MAX, DEAD_PACKETS_MAX, DeadPacket, DeadPackets,
};
pub use preconditions::{Full, Opened, Preconditions, Quota, Receipt};
pub use query::{DeadLetterQuery, JobQuery, PAGE_LEN_MAX, Page, page_len};
pub use redis::{Order, RedisLink, RedisOptions, RedisStore, Stretch, key_part};
pub use replica::{
    BEAT_MS, BEAT_TTL_MS, EVENT_LOG_BYTES_MAX, EVENT_LOG_KEPT_MAX, EVENT_LOG_LEN_MAX, EventPage, Members,
    Replicas,
};
pub use sqlite::{OpenError, SqliteFile, SqliteStats, SqliteStore};

use bytes::Bytes;
use reveille_core::audit::{Draft, of_step};
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{DeadLetter, Job};
use reveille_core::reason::Reason;
use reveille_core::time::Millis;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a store could not do. `Full` and `Unavailable` are worth trying again later.
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

/// What a store on this machine says.
pub const DISK_FULL: &str = "the disk is full";

/// What time it is, for whoever must not hand out what has expired. The simulation owns it there.
pub type Clock = Arc<dyn Fn() -> Millis + Send + Sync>;

impl StoreError {
    /// Whether the same may work later. What is unreadable or refused stays so, and trying again would
    /// only hold up everything behind it.
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::Corrupt(_) | Self::Refused(_))
    }
}

/// One decided change of one job, with what must be stored together with it.
#[derive(Debug, Clone)]
pub struct Step {
    /// The job as it will be. The store writes it with the revision after that of `before`.
    pub job: Arc<Job>,
    /// The job that it was decided on; nothing for a new one. Where its revision is the store's, so is the rest.
    pub before: Option<Arc<Job>>,
    /// Blobs that become visible with the change, each with its expiry, under names from [`Store::kept_as`].
    pub blobs: Vec<(BlobKey, Bytes, Millis)>,
    /// What must be so elsewhere too.
    pub preconditions: Preconditions,
    /// What those who watch are told of it, where replicas share the store.
    pub news: Option<Bytes>,
    /// What the change adds to the audit trail. Nobody outside can put a step together without it.
    audit: Vec<Draft>,
}

impl Step {
    pub fn insert(job: Job) -> Self {
        let audit = of_step(None, &job);
        let job = Arc::new(Job { revision: 1, ..job });
        Self {
            job,
            before: None,
            blobs: Vec::new(),
            preconditions: Preconditions::default(),
            news: None,
            audit,
        }
    }

    pub fn change(before: &Arc<Job>, after: Job) -> Self {
        let audit = of_step(Some(before), &after);
        let job = Arc::new(Job { revision: before.revision + 1, ..after });
        let before = Some(Arc::clone(before));
        Self { job, before, blobs: Vec::new(), preconditions: Preconditions::default(), news: None, audit }
    }

    /// The same step, if these hold.
    pub fn on(self, preconditions: Preconditions) -> Self {
        Self { preconditions, ..self }
    }

    /// The same step, and those who watch are told this when it counts.
    pub fn telling(self, news: Bytes) -> Self {
        Self { news: Some(news), ..self }
    }

    pub fn audit(&self) -> &[Draft] {
        &self.audit
    }

    /// The revision that it was decided on.
    pub fn expects(&self) -> Option<u64> {
        self.before.as_ref().map(|before| before.revision)
    }

    /// The revision that this step would leave behind.
    fn revision(&self) -> u64 {
        self.expects().map_or(1, |revision| revision + 1)
    }

    /// The job as it will be written, with the right revision even if the step was put together by hand.
    fn job_to_write(&self) -> Arc<Job> {
        if self.job.revision == self.revision() {
            return Arc::clone(&self.job);
        }
        Arc::new(Job { revision: self.revision(), ..(*self.job).clone() })
    }
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commit {
    Done,
    /// The job is at another revision by now: load it and decide again.
    Conflict,
    /// A new job whose id or idempotency key (within its tenant) belongs to this one already.
    Duplicate(JobId),
    /// As many as there may be are there already.
    QuotaExceeded(Full),
    /// The lock that the step was decided under has lapsed: take it again, and decide again.
    Fenced,
    /// The message that the step answers was answered before.
    Seen,
}

/// Dead letters by reason; a job may have died of none that has a code.
pub type DeadLetterCounts = BTreeMap<Option<Reason>, u64>;

/// The port. What `commit` answered `Done` survives kill -9, whole; anything else left no trace.
/// A step counts only on its [`Preconditions`]; a store that has one process leaves it to that process to keep
/// [`Quota`], which it can do without asking. Live jobs (see [`Job::is_live`]) are found again by `live`. Reads see every commit that was
/// answered before they began. A `limit` above [`PAGE_LEN_MAX`] is lowered to it: follow `Page::next`.
#[async_trait::async_trait]
pub trait Store: Blobs + Breakers + DeadPackets + Replicas + Trail {
    /// Compares and swaps one job on its revision. If the step ends the job in a way that belongs among
    /// the dead letters ([`Job::dead_letter`]), the entry is written in the same commit; a later step
    /// that leaves the ending as it is does not bring back an entry that was taken off, and one that
    /// releases the result takes it off. What the step adds to the audit trail is appended in the same
    /// commit, to the chain of the job's tenant.
    async fn commit(&self, step: Step) -> Result<Commit, StoreError>;

    /// The name of a blob that is to be written in a step or under a lock, and by which it is then found. Nearly
    /// always it is as it was; a store that is spread over nodes keeps such blobs beside the jobs.
    fn kept_as(&self, key: BlobKey) -> BlobKey {
        key
    }

    async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError>;

    /// The job, for whoever is about to act on a message about it. A store that has one process needs to
    /// know nothing of messages.
    async fn open(&self, id: &JobId, _message: &Receipt) -> Result<Opened, StoreError> {
        Ok(Opened::Job { job: self.job(id).await?, lock: None })
    }

    /// The same for a message that asks for a new job: nobody else is about to change that, so there is no lock.
    async fn open_new(&self, id: &JobId, _message: &Receipt) -> Result<Opened, StoreError> {
        Ok(Opened::Job { job: self.job(id).await?, lock: None })
    }

    /// The job of a tenant that has this idempotency key.
    async fn job_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<JobId>, StoreError>;

    /// One page of jobs, newest first.
    async fn jobs(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError>;

    /// Live jobs in the order they were created, after `cursor` (from the page before).
    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<Arc<Job>>, StoreError>;

    /// One page of dead letters, newest first.
    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError>;

    /// How many dead letters a tenant has (all of them, if none is named) of each reason.
    async fn count_dead_letters(&self, tenant: Option<&TenantId>) -> Result<DeadLetterCounts, StoreError>;

    /// Takes a job off the dead letters; says whether it was there.
    async fn remove_dead_letter(&self, job: &JobId) -> Result<bool, StoreError>;

    /// Removes ended jobs that were last touched before `ended_before`, with their blobs, dead letters
    /// and idempotency keys, and blobs that expired and locks that lapsed by `now`; at most `limit` of
    /// each. Says how many rows went.
    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> Result<u64, StoreError>;

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
