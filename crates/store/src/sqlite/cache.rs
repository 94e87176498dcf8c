//! What the store caches of its own file, so that common queries need no trip to another thread.
//!
//! The writer updates it after a change is on disk and before it answers, so whoever was answered finds the change.
//! Correctness does not depend on it: whether a change is allowed is decided in SQL.

mod blobs;
mod jobs;

use super::change::{Applied, ChangeOutcome, SqliteChange};
use blobs::BlobCache;
use jobs::{FillNumber, JobCache};
use reveille_core::id::JobId;
use reveille_core::job::Job;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct Caches {
    jobs: Mutex<JobCache>,
    blobs: Mutex<BlobCache>,
}

impl Caches {
    /// A job, or the permission to keep it once it was read from the file.
    pub fn job(&self, id: &JobId) -> CacheLookup<'_> {
        let mut jobs = self.jobs();
        match jobs.get(id) {
            Some(job) => CacheLookup::Job(job),
            None => CacheLookup::Nothing(Fill { caches: self, id: id.clone(), number: jobs.begin_fill(id) }),
        }
    }

    fn jobs(&self) -> MutexGuard<'_, JobCache> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn blobs(&self) -> MutexGuard<'_, BlobCache> {
        self.blobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what was committed, in the order it was.
    pub fn remember<'a>(&self, changes: impl Iterator<Item = (&'a SqliteChange, &'a Applied)>) {
        let (mut jobs, mut blobs) = (self.jobs(), self.blobs());
        for (change, applied) in changes {
            match change {
                SqliteChange::Step { job, blobs: with_it, .. }
                    if matches!(applied.outcome, ChangeOutcome::Rows(_)) =>
                {
                    jobs.put(job);
                    for (key, value, expires_at) in with_it {
                        blobs.put(key, value, *expires_at);
                    }
                }
                SqliteChange::PutBlob { key, value, expires_at, .. } if applied.outcome.rows() > 0 => {
                    blobs.put(key, value, *expires_at);
                }
                SqliteChange::DeleteBlobs { keys, .. } => keys.iter().for_each(|key| blobs.remove(key)),
                _ => {}
            }
            applied.jobs_gone.iter().for_each(|id| jobs.remove(id));
            applied.blobs_gone.iter().for_each(|key| blobs.remove(key));
        }
    }
}

pub(super) enum CacheLookup<'a> {
    Job(Arc<Job>),
    Nothing(Fill<'a>),
}

/// What is read while this lives may be kept, unless the writer changes the job first.
pub(super) struct Fill<'a> {
    caches: &'a Caches,
    id: JobId,
    number: FillNumber,
}

impl Fill<'_> {
    pub fn keep(self, job: &Arc<Job>) {
        self.caches.jobs().end_fill(&self.id, self.number, Some(job));
    }
}

impl Drop for Fill<'_> {
    /// Even if the caller stopped waiting.
    fn drop(&mut self) {
        self.caches.jobs().end_fill(&self.id, self.number, None);
    }
}
