//! Telling a delegation's life, rung by rung: none left out, none told twice, each kept before it is
//! told.

use super::{row_of, shortened};
use crate::Engine;
use crate::scribe::Note;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::job::Job;
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_core::presence::workspace::Workspace;
use reveille_roster::{Change, RosterError};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Unfinished delegations, each with the last rung that was told.
#[derive(Default)]
pub struct Ladder(Mutex<FxHashMap<JobId, Delegation>>);

impl Ladder {
    pub fn put(&self, row: Delegation) {
        self.lock().insert(row.id.clone(), row);
    }

    fn take(&self, id: &JobId) -> Option<Delegation> {
        self.lock().remove(id)
    }

    pub fn ids(&self) -> Vec<JobId> {
        self.lock().keys().cloned().collect()
    }

    pub fn to(&self, target: &WorkspaceId) -> Vec<JobId> {
        self.lock().values().filter(|row| row.target == *target).map(|row| row.id.clone()).collect()
    }

    pub fn has(&self, id: &JobId) -> bool {
        self.lock().contains_key(id)
    }

    /// Moves a job's row to a rung; says what is to be told on the way.
    fn step(
        &self,
        job: &Job,
        to: DelegationStatus,
        preview: Option<String>,
    ) -> Option<(Delegation, Vec<DelegationStatus>)> {
        let mut rows = self.lock();
        let row = rows.get_mut(job.id())?;
        let path = row.status.path(to);
        if path.is_empty() {
            return None;
        }
        move_to(row, job, to, preview);
        let row = if to.is_last() { rows.remove(job.id())? } else { row.clone() };
        Some((row, path))
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<JobId, Delegation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The row as it is once a rung was told.
pub(super) fn move_to(row: &mut Delegation, job: &Job, to: DelegationStatus, preview: Option<String>) {
    row.status = to;
    row.updated_at = job.updated_at;
    if let Some(ending) = job.ending().filter(|_| to == DelegationStatus::Failed) {
        row.error = Some(ending_words(ending));
    }
    row.response_preview = preview.or_else(|| row.response_preview.take());
}

fn ending_words(ending: &reveille_core::job::Ending) -> String {
    if ending.words.is_empty() { ending.state.to_string() } else { ending.words.clone() }
}

impl Engine {
    /// Tells of a delegated job as it was committed. Called with the job's turn held, so that the rungs
    /// are told in order.
    pub(crate) async fn tell_delegation(&self, job: &Job) {
        if job.request.delegated.is_none() {
            return;
        }
        if self.is_one_of_many() {
            return self.tell_together_later(job, DelegationStatus::of(job));
        }
        let has_ended = job.state().is_terminal();
        // A live job without a row is new, or a crash came before its row was written.
        if !self.ladder.has(job.id()) && (!has_ended || job.revision <= 1) {
            self.open_ladder(job).await;
        }
        self.climb(job, DelegationStatus::of(job)).await;
    }

    pub(super) async fn open_ladder(&self, job: &Job) {
        let row = row_of(job);
        self.ladder.put(row.clone());
        let mut note = self.opening_note(&row);
        note.changes.push(Change::Delegation(row));
        self.jot_down(note).await;
    }

    /// What is told of a delegation that is new.
    pub(super) fn opening_note(&self, row: &Delegation) -> Note {
        let mut note = Note::default();
        if let Some(source) = self.workspaces.find(&row.source) {
            let payload = json!({
                "delegation_id": row.id, "target_id": row.target, "task_preview": shortened(&row.summary, 100),
            });
            let sent = self.structure_event(&source, "DELEGATION_SENT", Some(row.target.clone()), payload);
            note.changes.push(sent.0);
            note.told.push(sent.1);
            self.tell_rung(&mut note, &source, row, DelegationStatus::Pending);
        }
        note
    }

    /// A delegation has got to a rung: told, in order, once it is kept. Called with the job's turn held.
    pub(crate) async fn climb(&self, job: &Job, to: DelegationStatus) {
        if self.is_one_of_many() {
            return self.tell_together_later(job, to);
        }
        let preview = if to == DelegationStatus::Completed { self.answer_preview(job).await } else { None };
        let Some((row, path)) = self.ladder.step(job, to, preview) else { return };
        let note = self.rungs_note(row, &path);
        self.jot_down(note).await;
    }

    /// The job of an unfinished delegation is no longer stored: nothing more will come of it.
    pub(super) async fn lose_delegation(&self, id: &JobId) {
        let Some(row) = self.ladder.take(id) else { return };
        let error = Some("its job is no longer stored".to_owned());
        let lost = Delegation { error, updated_at: self.now(), ..row };
        let note = self.rungs_note(lost, &[DelegationStatus::Failed]);
        self.jot_down(note).await;
    }

    /// Keeps a row and tells of the rungs; returns when it is durable.
    pub(crate) async fn keep_rungs(
        &self,
        row: Delegation,
        path: &[DelegationStatus],
    ) -> Result<(), RosterError> {
        let note = self.rungs_note(row, path);
        self.write_down(note).await
    }

    pub(super) fn rungs_note(&self, mut row: Delegation, path: &[DelegationStatus]) -> Note {
        let mut note = Note::default();
        row.status = path.last().copied().unwrap_or(row.status);
        if let Some(source) = self.workspaces.find(&row.source) {
            for rung in path {
                self.tell_rung(&mut note, &source, &row, *rung);
            }
        }
        note.changes.push(Change::Delegation(row));
        note
    }

    fn tell_rung(&self, note: &mut Note, source: &Workspace, row: &Delegation, rung: DelegationStatus) {
        let (id, target) = (&row.id, &row.target);
        let mut tell = |name: &'static str, payload: serde_json::Value| {
            let (change, told) = self.structure_event(source, name, Some(target.clone()), payload);
            note.changes.push(change);
            note.told.push(told);
        };
        let status = json!({ "delegation_id": id, "target_id": target, "status": rung.as_str() });
        tell("DELEGATION_STATUS", status);
        match rung {
            DelegationStatus::Completed => {
                let preview: String =
                    row.response_preview.as_deref().unwrap_or_default().chars().take(200).collect();
                let payload =
                    json!({ "delegation_id": id, "target_id": target, "response_preview": preview });
                tell("DELEGATION_COMPLETE", payload);
            }
            DelegationStatus::Failed => {
                let error = row.error.as_deref().unwrap_or("failed");
                let payload = json!({ "delegation_id": id, "target_id": target, "error": error });
                tell("DELEGATION_FAILED", payload);
            }
            DelegationStatus::Pending
            | DelegationStatus::Dispatched
            | DelegationStatus::Received
            | DelegationStatus::InProgress => {}
        }
    }
}
