//! The statuses where one server is alone: the rows of unfinished delegations are kept at hand.

use super::status::{StatusLog, StatusWriter, move_to};
use crate::runtime::RETRY_PAUSE;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::job::Job;
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_roster::{Change, RosterError};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: usize = 500;

pub struct LocalStatuses {
    writer: StatusWriter,
    /// Unfinished delegations, each at the last status that was published.
    rows: Mutex<FxHashMap<JobId, Delegation>>,
}

impl LocalStatuses {
    pub fn new(writer: StatusWriter) -> Self {
        Self { writer, rows: Mutex::default() }
    }

    async fn open(&self, job: &Job) {
        let (row, mut batch) = self.writer.opening(job);
        self.rows().insert(row.id.clone(), row.clone());
        batch.changes.push(Change::Delegation(row));
        self.writer.writer.write_later(batch).await;
    }

    async fn advance(&self, job: &Job, to: DelegationStatus) {
        let preview = self.writer.preview(job, to).await;
        let Some((row, path)) = self.step(job, to, preview) else { return };
        let batch = self.writer.batch(row, &path);
        self.writer.writer.write_later(batch).await;
    }

    /// Moves a job's row to a status; says what is to be published on the way.
    fn step(
        &self,
        job: &Job,
        to: DelegationStatus,
        preview: Option<String>,
    ) -> Option<(Delegation, Vec<DelegationStatus>)> {
        let mut rows = self.rows();
        let row = rows.get_mut(job.id())?;
        let path = row.status.announcements(to);
        if path.is_empty() {
            return None;
        }
        move_to(row, job, to, preview);
        let row = if to.is_final() { rows.remove(job.id())? } else { row.clone() };
        Some((row, path))
    }

    fn has(&self, id: &JobId) -> bool {
        self.rows().contains_key(id)
    }

    fn rows(&self) -> MutexGuard<'_, FxHashMap<JobId, Delegation>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl StatusLog for LocalStatuses {
    async fn record(&self, job: &Job, to: DelegationStatus) {
        let has_ended = job.state().is_terminal();
        // A live job without a row is new, or a crash came before its row was written.
        if !self.has(job.id()) && (!has_ended || job.revision <= 1) {
            self.open(job).await;
        }
        self.advance(job, to).await;
    }

    async fn catch_up(&self, job: &Job) -> Result<(), RosterError> {
        if !self.has(job.id()) {
            match self.writer.roster.delegation(job.id()).await? {
                Some(row) if row.status.is_final() => return Ok(()),
                Some(row) => drop(self.rows().insert(row.id.clone(), row)),
                None => self.open(job).await,
            }
        }
        self.advance(job, DelegationStatus::of(job)).await;
        Ok(())
    }

    fn has_row_at_once(&self) -> bool {
        true
    }

    async fn load(&self) -> Result<(), RosterError> {
        let mut after: Option<JobId> = None;
        loop {
            let page = self.writer.roster.open_delegations(after.clone(), PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|row| row.id.clone());
            self.rows().extend(page.into_iter().map(|row| (row.id.clone(), row)));
            if is_last {
                return Ok(());
            }
        }
    }

    /// Jobs that ended while the row was not written: a crash came in between.
    async fn finish(&self) {
        let jobs = &self.writer.jobs;
        let ids: Vec<JobId> = self.rows().keys().cloned().collect();
        for id in ids {
            loop {
                let lock = jobs.lock(&id).await;
                match jobs.job(&id).await {
                    Ok(Some(job)) => break self.record(&job, DelegationStatus::of(&job)).await,
                    Ok(None) => {
                        let row = self.rows().remove(&id);
                        if let Some(row) = row {
                            let batch = self.writer.batch(self.writer.lost(row), &[DelegationStatus::Failed]);
                            self.writer.writer.write_later(batch).await;
                        }
                        break;
                    }
                    Err(error) => tracing::warn!(job = %id, %error, "delegation not read; retrying"),
                }
                drop(lock);
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }

    async fn open_to(&self, target: &WorkspaceId) -> Vec<JobId> {
        self.rows().values().filter(|row| row.target == *target).map(|row| row.id.clone()).collect()
    }
}
