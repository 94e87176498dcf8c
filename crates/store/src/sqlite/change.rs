//! What the writer can be asked to do, and what it answers.

use crate::{BlobKey, Commit, PutMode, Step, StoreError};
use bytes::Bytes;
use reveille_core::audit::Draft;
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_core::time::Millis;
use rusqlite::Connection;
use std::sync::Arc;
use tokio::sync::oneshot;

/// One change, whole or not at all. Records are JSON by the time they get here: the writer is one thread
/// and has better things to do.
pub(super) enum Change {
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
    Record(Vec<Draft>),
    PruneAudit {
        before: Millis,
        limit: usize,
    },
    /// Somebody else's, in tables that are not the store's.
    Other(OtherChange),
    /// Lets the file grow by so many pages and no further: a disk that is full.
    #[cfg(test)]
    LimitPages(u32),
    /// Keeps the writer busy until the other end is dropped, so that what follows becomes one group.
    #[cfg(test)]
    Hold(std::sync::mpsc::Receiver<()>),
}

/// To be run inside a transaction, more than once if need be. It answers with a number of its own choice.
pub(super) type OtherChange = Box<dyn Fn(&Connection) -> rusqlite::Result<u64> + Send>;

impl Change {
    pub fn step(step: Step) -> Result<Self, StoreError> {
        let job = step.job_to_write();
        let record = super::rows::to_text(&*job)?;
        Ok(Self::Step { job, expects: step.expects(), record, blobs: step.blobs, audit: step.audit })
    }
}

/// What became of a change: how many rows it changed, or why none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Rows(u64),
    Conflict,
    Duplicate(JobId),
}

impl Outcome {
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

/// A change that was made, with what it took away beyond its own subject.
pub(super) struct Applied {
    pub outcome: Outcome,
    pub jobs_gone: Vec<JobId>,
    pub blobs_gone: Vec<BlobKey>,
}

impl From<Outcome> for Applied {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, jobs_gone: Vec::new(), blobs_gone: Vec::new() }
    }
}

/// A change on its way, and where its answer is awaited.
pub(super) struct Work {
    pub change: Change,
    pub answer: oneshot::Sender<Result<Outcome, StoreError>>,
}
