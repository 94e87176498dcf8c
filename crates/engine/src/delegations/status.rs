//! The statuses of a delegation, as Molecule's clients follow them: none left out, none published twice, each kept
//! before it is published.

use super::{PREVIEW_LEN_MAX, row_of, shortened};
use crate::fleet::workspaces::Workspaces;
use crate::jobs::Jobs;
use crate::roster::{RosterBatch, RosterWriter};
use crate::runtime::Runtime;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::job::{Ending, Job};
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_core::presence::workspace::Workspace;
use reveille_roster::{Change, Roster, RosterError};
use serde_json::{Value, json};
use std::sync::Arc;

/// Where the statuses of jobs are recorded. One server alone keeps the rows of unfinished ones at hand; of several,
/// each reads the row before it records.
#[async_trait::async_trait]
pub trait StatusLog: Send + Sync {
    /// Brings the row to this status, as the job is. Called with the job's lock held.
    async fn record(&self, job: &Job, to: DelegationStatus);

    /// The row of this job is there, and up to date, when this returns. Called with the job's lock held.
    async fn catch_up(&self, job: &Job) -> Result<(), RosterError>;

    /// Whether a delegation that was just taken in has its row by now.
    fn has_row_at_once(&self) -> bool;

    /// Reads what is needed before anything runs.
    async fn load(&self) -> Result<(), RosterError>;

    /// Records what a crash, here or at another server, left unrecorded.
    async fn finish(&self);

    /// Unfinished delegations to a workspace.
    async fn open_to(&self, target: &WorkspaceId) -> Vec<JobId>;
}

/// What both logs write with.
#[derive(Clone)]
pub struct StatusWriter {
    pub runtime: Runtime,
    pub jobs: Jobs,
    pub workspaces: Workspaces,
    pub roster: Arc<dyn Roster>,
    pub writer: RosterWriter,
}

impl StatusWriter {
    /// The row of a new delegation, and what is published of it.
    pub fn opening(&self, job: &Job) -> (Delegation, RosterBatch) {
        let row = row_of(job);
        let mut batch = RosterBatch::default();
        if let Some(source) = self.workspaces.index().find(&row.source) {
            let payload = json!({
                "delegation_id": row.id, "target_id": row.target, "task_preview": shortened(&row.summary, 100),
            });
            self.add(&mut batch, &source, "DELEGATION_SENT", &row.target, payload);
            self.add_status(&mut batch, &source, &row, DelegationStatus::Pending);
        }
        (row, batch)
    }

    /// The row at the last of these statuses, and what is published of each.
    pub fn batch(&self, mut row: Delegation, path: &[DelegationStatus]) -> RosterBatch {
        let mut batch = RosterBatch::default();
        row.status = path.last().copied().unwrap_or(row.status);
        if let Some(source) = self.workspaces.index().find(&row.source) {
            for status in path {
                self.add_status(&mut batch, &source, &row, *status);
            }
        }
        batch.changes.push(Change::Delegation(row));
        batch
    }

    /// Keeps a row and publishes its statuses; returns when it is durable.
    pub async fn keep(&self, row: Delegation, path: &[DelegationStatus]) -> Result<(), RosterError> {
        self.writer.write(self.batch(row, path)).await
    }

    /// The row of a job that is no longer stored: nothing more will come of it.
    pub fn lost(&self, row: Delegation) -> Delegation {
        Delegation {
            error: Some("its job is no longer stored".to_owned()),
            updated_at: self.runtime.now(),
            ..row
        }
    }

    /// The first words of the answer, once there is one that may be read.
    pub async fn preview(&self, job: &Job, to: DelegationStatus) -> Option<String> {
        if to != DelegationStatus::Completed {
            return None;
        }
        let read = self.jobs.read_result(job).await.ok()?;
        let answer: Value = serde_json::from_slice(read.bytes()?).ok()?;
        answer.get("text").and_then(Value::as_str).map(|text| shortened(text, PREVIEW_LEN_MAX))
    }

    fn add_status(
        &self,
        batch: &mut RosterBatch,
        source: &Workspace,
        row: &Delegation,
        status: DelegationStatus,
    ) {
        let (id, target) = (&row.id, &row.target);
        let payload = json!({ "delegation_id": id, "target_id": target, "status": status.as_str() });
        self.add(batch, source, "DELEGATION_STATUS", target, payload);
        match status {
            DelegationStatus::Completed => {
                let preview: String =
                    row.response_preview.as_deref().unwrap_or_default().chars().take(200).collect();
                let payload =
                    json!({ "delegation_id": id, "target_id": target, "response_preview": preview });
                self.add(batch, source, "DELEGATION_COMPLETE", target, payload);
            }
            DelegationStatus::Failed => {
                let error = row.error.as_deref().unwrap_or("failed");
                let payload = json!({ "delegation_id": id, "target_id": target, "error": error });
                self.add(batch, source, "DELEGATION_FAILED", target, payload);
            }
            DelegationStatus::Pending
            | DelegationStatus::Dispatched
            | DelegationStatus::Received
            | DelegationStatus::InProgress => {}
        }
    }

    fn add(
        &self,
        batch: &mut RosterBatch,
        source: &Workspace,
        name: &'static str,
        target: &WorkspaceId,
        payload: Value,
    ) {
        let (change, event) = self.workspaces.structure_event(source, name, Some(target.clone()), payload);
        batch.changes.push(change);
        batch.events.push(event);
    }
}

/// The row as it is at a later status.
pub fn move_to(row: &mut Delegation, job: &Job, to: DelegationStatus, preview: Option<String>) {
    row.status = to;
    row.updated_at = job.updated_at;
    if let Some(ending) = job.ending().filter(|_| to == DelegationStatus::Failed) {
        row.error = Some(ending_words(ending));
    }
    row.response_preview = preview.or_else(|| row.response_preview.take());
}

fn ending_words(ending: &Ending) -> String {
    if ending.words.is_empty() { ending.state.to_string() } else { ending.words.clone() }
}
