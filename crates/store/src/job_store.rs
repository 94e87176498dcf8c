//! Jobs: one record each, changed by compare-and-swap steps.

use crate::preconditions::{ExceededQuota, Opened, Preconditions, Receipt};
use crate::{BlobKey, JobQuery, Page, StoreError};
use bytes::Bytes;
use reveille_core::audit::{Draft, of_step};
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::Job;
use reveille_core::time::Millis;
use std::sync::Arc;

/// One decided change of one job, with what must be stored together with it.
#[derive(Debug, Clone)]
pub struct Step {
    /// The job as it will be. The store writes it with the revision after that of `before`.
    pub job: Arc<Job>,
    /// The job that it was decided on; nothing for a new one. If its revision matches the store's, so does the rest.
    pub before: Option<Arc<Job>>,
    /// Blobs that become visible with the change, each with its expiry, under names from [`JobStore::colocated_key`].
    pub blobs: Vec<(BlobKey, Bytes, Millis)>,
    /// Further conditions that must hold.
    pub preconditions: Preconditions,
    /// What the change appends to the event log ([`EventLog`](crate::EventLog)), where servers share the store.
    pub event: Option<Bytes>,
    /// What the change adds to the audit trail. Nothing outside can construct a step without it.
    pub(crate) audit: Vec<Draft>,
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
            event: None,
            audit,
        }
    }

    pub fn change(before: &Arc<Job>, after: Job) -> Self {
        let audit = of_step(Some(before), &after);
        let job = Arc::new(Job { revision: before.revision + 1, ..after });
        let before = Some(Arc::clone(before));
        Self { job, before, blobs: Vec::new(), preconditions: Preconditions::default(), event: None, audit }
    }

    /// The same step, if these hold.
    pub fn on(self, preconditions: Preconditions) -> Self {
        Self { preconditions, ..self }
    }

    /// The same step, which appends this to the event log when it counts.
    pub fn with_event(self, event: Bytes) -> Self {
        Self { event: Some(event), ..self }
    }

    pub fn audit(&self) -> &[Draft] {
        &self.audit
    }

    /// The revision that it was decided on.
    pub fn expects(&self) -> Option<u64> {
        self.before.as_ref().map(|before| before.revision)
    }

    /// The revision that this step would leave behind.
    pub(crate) fn revision(&self) -> u64 {
        self.expects().map_or(1, |revision| revision + 1)
    }

    /// The job as it will be written, with the right revision even if the step was constructed by hand.
    pub(crate) fn job_to_write(&self) -> Arc<Job> {
        if self.job.revision == self.revision() {
            return Arc::clone(&self.job);
        }
        Arc::new(Job { revision: self.revision(), ..(*self.job).clone() })
    }
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commit {
    Done,
    /// The job is at another revision by now: load it and decide again.
    Conflict,
    /// A new job whose id or idempotency key (within its tenant) belongs to this one already.
    Duplicate(JobId),
    /// A quota is exhausted.
    QuotaExceeded(ExceededQuota),
    /// The lock that the step was decided under has expired: take it again, and decide again.
    Fenced,
    /// The message that the step answers was answered before.
    Seen,
}

/// The port. What `commit` answered with `Done` survives kill -9 in full; anything else left no trace. A step counts
/// only if its [`Preconditions`] hold; a store with one process leaves it to that process to enforce the
/// [`Quota`](crate::Quota), which it can do without asking. Live jobs (see [`Job::is_live`]) are found again by
/// `live`. Reads see every commit that was answered before they began. A `limit` above
/// [`PAGE_LEN_MAX`](crate::PAGE_LEN_MAX) is lowered to it: follow `Page::next`.
#[async_trait::async_trait]
pub trait JobStore: Send + Sync + 'static {
    /// Compare-and-swap of one job on its revision. If the step ends the job as a dead letter ([`Job::dead_letter`]),
    /// the entry is written in the same commit; a later step that does not change the ending does not restore an
    /// entry that was removed, and one that releases the result removes it. What the step adds to the audit trail is
    /// appended in the same commit, to the chain of the job's tenant.
    async fn commit(&self, step: Step) -> Result<Commit, StoreError>;

    /// The key under which a blob is written in a step or under a lock, and then found. It is nearly always
    /// unchanged; a store that is spread over nodes keeps such blobs beside the jobs.
    fn colocated_key(&self, key: BlobKey) -> BlobKey {
        key
    }

    async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError>;

    /// The job, for a caller about to act on a message about it. A store with one process need not know about
    /// messages.
    async fn open(&self, id: &JobId, _message: &Receipt) -> Result<Opened, StoreError> {
        Ok(Opened::Job { job: self.job(id).await?, lock: None })
    }

    /// The same for a message that submits a new job: nobody else can be changing it, so there is no lock.
    async fn open_new(&self, id: &JobId, _message: &Receipt) -> Result<Opened, StoreError> {
        Ok(Opened::Job { job: self.job(id).await?, lock: None })
    }

    /// The job of a tenant that has this idempotency key.
    async fn job_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<JobId>, StoreError>;

    /// One page of jobs, newest first.
    async fn jobs(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError>;

    /// Live jobs in the order they were created, after `cursor` (from the page before).
    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<Arc<Job>>, StoreError>;

    /// Removes ended jobs that were last touched before `ended_before`, with their blobs, dead letters and
    /// idempotency keys, and blobs and locks that expired by `now`; at most `limit` of each. Returns how many rows
    /// were removed.
    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> Result<u64, StoreError>;
}
