//! The same ladder where several servers see one delegation's life: whichever commits a step reads in the roster how
//! far the telling has got, tells what is missing, and writes it down, under a lock. So nothing is told twice, and
//! nothing is left out because the one that began is gone.

use super::ladder::move_to;
use super::row_of;
use crate::Engine;
use crate::scribe::Note;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::job::Job;
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_roster::{Change, RosterError};
use reveille_store::Lock;
use std::time::Duration;

/// What stands before its id.
pub(crate) const LOCK: &str = "cordum:delegation:";
/// Longer than the roster takes to answer or give up.
const LOCK_MS: i64 = 30_000;
const BUSY_PAUSE: Duration = Duration::from_millis(25);
const PAUSE: Duration = Duration::from_secs(1);
const PAGE: usize = 500;

impl Engine {
    /// Nobody waits for it: a roster that is away holds up no job.
    pub(super) fn tell_together_later(&self, job: &Job, to: DelegationStatus) {
        let (engine, job) = (self.clone(), job.clone());
        self.spawn(async move {
            while let Err(error) = engine.tell_together(&job, to).await {
                let words = "a delegation waits to be told";
                engine.trouble.store.tell(engine.now(), words, job.id(), &error);
                tokio::time::sleep(PAUSE).await;
            }
        });
    }

    pub(super) async fn tell_together(&self, job: &Job, to: DelegationStatus) -> Result<(), RosterError> {
        let lock = self.lock_delegation(job.id()).await?;
        let told = self.tell_from_row(job, to).await;
        self.let_go(Some(lock)).await;
        told
    }

    async fn tell_from_row(&self, job: &Job, to: DelegationStatus) -> Result<(), RosterError> {
        let (mut row, mut note) = match self.roster.delegation(job.id()).await? {
            Some(row) if row.status.is_last() => return Ok(()),
            Some(row) => (row, Note::default()),
            None => {
                let row = row_of(job);
                let note = self.opening_note(&row);
                (row, note)
            }
        };
        let path = row.status.path(to);
        if path.is_empty() && note.changes.is_empty() {
            return Ok(());
        }
        if path.is_empty() {
            note.changes.push(Change::Delegation(row));
        } else {
            let preview =
                if to == DelegationStatus::Completed { self.answer_preview(job).await } else { None };
            move_to(&mut row, job, to, preview);
            let rungs = self.rungs_note(row, &path);
            note.changes.extend(rungs.changes);
            note.told.extend(rungs.told);
        }
        self.write_down(note).await
    }

    /// What a server committed and did not live to tell.
    pub(crate) async fn tell_what_was_left_untold(&self) {
        for row in self.open_rows().await.into_iter().filter(|row| row.is_job) {
            match self.store.job(&row.id).await {
                Ok(Some(job)) if !row.status.path(DelegationStatus::of(&job)).is_empty() => {
                    self.tell_together_later(&job, DelegationStatus::of(&job));
                }
                Ok(None) => self.lose_together(&row.id).await,
                Ok(Some(_)) => {}
                Err(error) => {
                    self.trouble.store.tell(self.now(), "a delegation could not be read", &row.id, &error);
                }
            }
        }
    }

    /// Its job is no longer stored: nothing more will come of it.
    async fn lose_together(&self, id: &JobId) {
        let Ok(lock) = self.lock_delegation(id).await else { return };
        if let Ok(Some(row)) = self.roster.delegation(id).await
            && !row.status.is_last()
        {
            let error = Some("its job is no longer stored".to_owned());
            let lost = Delegation { error, updated_at: self.now(), ..row };
            if let Err(error) = self.keep_rungs(lost, &[DelegationStatus::Failed]).await {
                tracing::warn!(job = %id, %error, "a lost delegation is told at the next look");
            }
        }
        self.let_go(Some(lock)).await;
    }

    /// Delegations to a workspace that have not ended.
    pub(super) async fn open_to(&self, target: &WorkspaceId) -> Vec<JobId> {
        let rows = self.open_rows().await.into_iter().filter(|row| row.is_job && row.target == *target);
        rows.map(|row| row.id).collect()
    }

    async fn open_rows(&self) -> Vec<Delegation> {
        let mut rows: Vec<Delegation> = Vec::new();
        loop {
            let after = rows.last().map(|row| row.id.clone());
            match self.roster.open_delegations(after, PAGE).await {
                Ok(page) => {
                    let is_last = page.len() < PAGE;
                    rows.extend(page);
                    if is_last {
                        return rows;
                    }
                }
                Err(error) => {
                    let words = "delegations could not be read; trying again";
                    self.trouble.store.tell(self.now(), words, &"delegations", &error);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn lock_delegation(&self, id: &JobId) -> Result<Lock, RosterError> {
        let name = format!("{LOCK}{id}");
        loop {
            match self.store.lock(&name, LOCK_MS).await {
                Ok(Some(lock)) => return Ok(lock),
                Ok(None) => tokio::time::sleep(BUSY_PAUSE).await,
                Err(error) => return Err(RosterError::Unavailable(error.to_string())),
            }
        }
    }
}
