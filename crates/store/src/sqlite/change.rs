//! What the writer can be asked to do, and what it answers.

use crate::{BlobKey, Commit, Lock, PutMode, Step, StoreError};
use bytes::Bytes;
use reveille_core::audit::Draft;
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_core::time::Millis;
use rusqlite::Connection;
use std::sync::Arc;
use tokio::sync::oneshot;

/// One change, all or nothing. Records are already JSON when they get here, to save time on the single writer thread.
pub(super) enum SqliteChange {
    Step {
        job: Arc<Job>,
        expects: Option<u64>,
        record: String,
        blobs: Vec<(BlobKey, Bytes, Millis)>,
        audit: Vec<Draft>,
    },
    PutBlob {
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
        now: Millis,
    },
    DeleteBlobs {
        keys: Vec<BlobKey>,
        now: Millis,
    },
    RemoveDeadLetter(JobId),
    Prune {
        ended_before: Millis,
        now: Millis,
        limit: usize,
    },
    Record {
        drafts: Vec<Draft>,
        /// Only while this lock is held.
        under: Option<(Lock, Millis)>,
    },
    PruneAudit {
        before: Millis,
        limit: usize,
    },
    /// A change to tables that are not the store's.
    Other(OtherChange),
}

/// Runs inside a transaction, more than once if need be. It returns a number of its own choice.
pub(super) type OtherChange = Box<dyn Fn(&Connection) -> rusqlite::Result<u64> + Send>;

impl SqliteChange {
    pub fn step(step: Step) -> Result<Self, StoreError> {
        let job = step.job_to_write();
        let record = super::rows::to_text(&*job)?;
        Ok(Self::Step { job, expects: step.expects(), record, blobs: step.blobs, audit: step.audit })
    }
}

/// The outcome of a change: how many rows it changed, or why none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangeOutcome {
    Rows(u64),
    Conflict,
    Duplicate(JobId),
}

impl ChangeOutcome {
    pub fn rows(&self) -> u64 {
        if let Self::Rows(rows) = self { *rows } else { 0 }
    }

    pub fn into_commit(self) -> Commit {
        match self {
            Self::Rows(_) => Commit::Done,
            Self::Conflict => Commit::Conflict,
            Self::Duplicate(holder) => Commit::Duplicate(holder),
        }
    }
}

/// A change that was made, with what it removed beyond its own subject.
pub(super) struct Applied {
    pub outcome: ChangeOutcome,
    pub jobs_gone: Vec<JobId>,
    pub blobs_gone: Vec<BlobKey>,
}

impl From<ChangeOutcome> for Applied {
    fn from(outcome: ChangeOutcome) -> Self {
        Self { outcome, jobs_gone: Vec::new(), blobs_gone: Vec::new() }
    }
}

/// A queued change, and where its answer goes.
pub(super) struct Work {
    pub change: SqliteChange,
    pub answer: oneshot::Sender<Result<ChangeOutcome, StoreError>>,
}
