//! The statuses where several servers see one delegation's life: whichever commits a step reads in the roster how
//! far the publishing has got, publishes what is missing, and records it, under a lock. So nothing is published twice,
//! and nothing is left out because the one that began is gone.

use super::status::{StatusLog, StatusWriter, move_to};
use crate::locks::SharedLocks;
use crate::observe::{Observe, Trouble};
use crate::roster::RosterBatch;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::job::Job;
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_roster::{Change, RosterError};
use reveille_store::Lock;

/// What stands before its id.
pub const LOCK: &str = "cordum:delegation:";
/// Longer than the roster takes to answer or give up.
const LOCK_MS: i64 = 30_000;
const PAGE: usize = 500;

#[derive(Clone)]
pub struct SharedStatuses {
    pub writer: StatusWriter,
    pub observe: Observe,
    pub locks: SharedLocks,
}

impl SharedStatuses {
    async fn record_now(&self, job: &Job, to: DelegationStatus) -> Result<(), RosterError> {
        let lock = self.lock(job.id()).await?;
        let recorded = self.record_from_row(job, to).await;
        self.locks.release(lock).await;
        recorded
    }

    async fn record_from_row(&self, job: &Job, to: DelegationStatus) -> Result<(), RosterError> {
        let (mut row, mut batch) = match self.writer.roster.delegation(job.id()).await? {
            Some(row) if row.status.is_final() => return Ok(()),
            Some(row) => (row, RosterBatch::default()),
            None => self.writer.opening(job),
        };
        let path = row.status.announcements(to);
        if path.is_empty() && batch.changes.is_empty() {
            return Ok(());
        }
        if path.is_empty() {
            batch.changes.push(Change::Delegation(row));
        } else {
            let preview = self.writer.preview(job, to).await;
            move_to(&mut row, job, to, preview);
            let later = self.writer.batch(row, &path);
            batch.changes.extend(later.changes);
            batch.events.extend(later.events);
        }
        self.writer.writer.write(batch).await
    }

    /// Its job is no longer stored: nothing more will come of it.
    async fn lose(&self, id: &JobId) {
        let Ok(lock) = self.lock(id).await else { return };
        if let Ok(Some(row)) = self.writer.roster.delegation(id).await
            && !row.status.is_final()
        {
            let lost = self.writer.lost(row);
            if let Err(error) = self.writer.keep(lost, &[DelegationStatus::Failed]).await {
                tracing::warn!(job = %id, %error, "lost delegation not recorded; retrying in the next pass");
            }
        }
        self.locks.release(lock).await;
    }

    async fn open_rows(&self) -> Vec<Delegation> {
        let mut rows: Vec<Delegation> = Vec::new();
        loop {
            let after = rows.last().map(|row| row.id.clone());
            let read = || self.writer.roster.open_delegations(after.clone(), PAGE);
            let words = "delegations not read; retrying";
            let page = self.observe.insist(Trouble::Store, words, &"delegations", read).await;
            let is_last = page.len() < PAGE;
            rows.extend(page);
            if is_last {
                return rows;
            }
        }
    }

    async fn lock(&self, id: &JobId) -> Result<Option<Lock>, RosterError> {
        let lock = self.locks.take(&format!("{LOCK}{id}"), LOCK_MS).await;
        lock.map_err(|error| RosterError::Unavailable(error.to_string()))
    }
}

#[async_trait::async_trait]
impl StatusLog for SharedStatuses {
    /// Nobody waits for it: a roster that is away holds up no job. A row that the roster refuses stays as it is.
    async fn record(&self, job: &Job, to: DelegationStatus) {
        let (statuses, job) = (self.clone(), job.clone());
        self.writer.runtime.spawn(async move {
            let words = "delegation status not recorded; retrying";
            let record = || statuses.record_now(&job, to);
            if let Err(error) = statuses.observe.until_answered(words, job.id(), record).await {
                tracing::error!(job = %job.id(), %error, "delegation status cannot be recorded");
            }
        });
    }

    async fn catch_up(&self, job: &Job) -> Result<(), RosterError> {
        self.record_now(job, DelegationStatus::of(job)).await
    }

    fn has_row_at_once(&self) -> bool {
        false
    }

    async fn load(&self) -> Result<(), RosterError> {
        Ok(())
    }

    async fn finish(&self) {
        for row in self.open_rows().await.into_iter().filter(|row| row.is_job) {
            match self.writer.jobs.job(&row.id).await {
                Ok(Some(job)) if !row.status.announcements(DelegationStatus::of(&job)).is_empty() => {
                    self.record(&job, DelegationStatus::of(&job)).await;
                }
                Ok(None) => self.lose(&row.id).await,
                Ok(Some(_)) => {}
                Err(error) => self.observe.log(Trouble::Store, "delegation not read", &row.id, &error),
            }
        }
    }

    async fn open_to(&self, target: &WorkspaceId) -> Vec<JobId> {
        let rows = self.open_rows().await.into_iter().filter(|row| row.is_job && row.target == *target);
        rows.map(|row| row.id).collect()
    }
}
