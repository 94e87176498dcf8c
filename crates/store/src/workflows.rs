//! The [`WorkflowStore`] port: workflows and their runs, and its adapters.
//!
//! A run is kept in parts, and a change writes the parts that change ([`RunChange::parts`]): a step of a run with a
//! thousand steps costs as much as one of a run with two. Jobs are not here: a run names the jobs it has submitted,
//! and looks them up in the store.

mod memory;
mod redis;
mod sqlite;
#[cfg(any(test, feature = "suite"))]
pub mod suite;

pub use memory::MemoryWorkflows;
pub use redis::RedisWorkflows;
pub use sqlite::SqliteWorkflows;

use crate::{Page, StoreError};
use reveille_core::flow::{
    Node, NodeKey, Run, RunChange, RunHead, RunState, TimelineEntry, WorkflowDocument,
};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A workflow as it was saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    pub tenant: TenantId,
    /// Counts the versions of this workflow, from one.
    pub version: u32,
    pub document: WorkflowDocument,
    pub saved_at: Millis,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub saved_by: String,
}

/// One decided change of one run.
#[derive(Debug, Clone)]
pub struct RunStep {
    /// The revision of its head is the one after.
    pub change: Arc<RunChange>,
    /// The revision that it was decided on; nothing for a new run.
    pub expects: Option<u64>,
    /// For a new run: its initial data beyond the change, mainly its input.
    pub begins_with: Option<Arc<Run>>,
    /// A new run counts only if its tenant has fewer unfinished runs than this.
    pub runs_max: Option<u32>,
}

impl RunStep {
    pub fn insert(run: Arc<Run>, change: Arc<RunChange>) -> Self {
        Self { change, expects: None, begins_with: Some(run), runs_max: None }
    }

    pub fn change(before: &RunHead, change: Arc<RunChange>) -> Self {
        Self { change, expects: Some(before.revision), begins_with: None, runs_max: None }
    }

    /// Everything that is written besides the head.
    fn parts(&self) -> Vec<(String, Option<String>)> {
        let mut parts = Vec::new();
        if let Some(run) = &self.begins_with {
            parts.push(run.input_part());
            // A run that repeats another brings the steps that it does not repeat.
            let brought = RunChange {
                head: RunHead { compensations: run.compensations.len() as u32, ..run.head.clone() },
                nodes: run.nodes.clone().into_iter().collect(),
                context: run
                    .context
                    .iter()
                    .map(|(name, value)| (name.clone(), Some(value.clone())))
                    .collect(),
                items: run.items.clone().into_iter().collect(),
                compensations: run.compensations.clone(),
                timeline: Vec::new(),
                output: None,
            };
            parts.extend(brought.parts());
        }
        parts.extend(self.change.parts());
        parts
    }
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunCommit {
    Done,
    /// The run is at another revision by now, or the workflow version of a new run is gone: load and decide again.
    Conflict,
    /// A new run whose id, or idempotency key (within its tenant), belongs to this one already.
    Duplicate(RunId),
    /// The tenant has reached its limit of unfinished runs.
    QuotaExceeded,
}

/// Filters are applied before the limit, so a page is short only when it is the last.
#[derive(Debug, Clone, Default)]
pub struct RunQuery {
    /// None means every tenant.
    pub tenant: Option<TenantId>,
    pub workflow: Option<WorkflowId>,
    pub state: Option<RunState>,
    pub team: Option<String>,
    /// Both ends are inclusive.
    pub updated_after: Option<Millis>,
    pub updated_before: Option<Millis>,
    /// Where the page before ended: only runs that began earlier.
    pub cursor: Option<u64>,
    pub limit: usize,
}

impl RunQuery {
    fn matches(&self, head: &RunHead) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| *tenant == head.tenant)
            && self.workflow.as_ref().is_none_or(|workflow| *workflow == head.workflow)
            && self.state.is_none_or(|state| state == head.state)
            && self.team.as_ref().is_none_or(|team| *team == head.actor.team)
            && self.updated_after.is_none_or(|after| head.updated_at >= after)
            && self.updated_before.is_none_or(|before| head.updated_at <= before)
    }
}

/// The port. What was answered as done survives kill -9 in full; anything else left no trace. Reads see every change
/// that was answered before they began.
#[async_trait::async_trait]
pub trait WorkflowStore: Send + Sync + 'static {
    /// Saves a workflow as the next version of its id, and returns that version. The version in `saved` is ignored. A
    /// document equal to the last one saved keeps that version. A new (or deleted) id is not saved if its tenant
    /// already has `workflows_max`; then there is no version.
    async fn save(&self, saved: Saved, workflows_max: u32) -> Result<Option<u32>, StoreError>;

    /// A workflow: the named version, or the last one if none is named. A deleted workflow has no last version, and
    /// keeps the others for the runs that began with them.
    async fn workflow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        version: Option<u32>,
    ) -> Result<Option<Arc<Saved>>, StoreError>;

    /// The last versions of a tenant's workflows, in the order of their ids, after `after`.
    async fn workflows(
        &self,
        tenant: &TenantId,
        after: Option<&WorkflowId>,
        limit: usize,
    ) -> Result<Vec<Arc<Saved>>, StoreError>;

    /// Returns whether it existed.
    async fn delete_workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<bool, StoreError>;

    /// Compare-and-swap of one run on its revision.
    async fn commit(&self, step: RunStep) -> Result<RunCommit, StoreError>;

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError>;

    /// One step of a run.
    async fn node(&self, id: &RunId, key: &NodeKey) -> Result<Option<Node>, StoreError>;

    /// One page of runs, newest first.
    async fn runs(&self, query: &RunQuery) -> Result<Page<RunHead>, StoreError>;

    /// Runs that owe something ([`RunHead::is_live`]), in the order they began, after `cursor`.
    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<RunId>, StoreError>;

    /// Runs that were due by then ([`RunHead::due`]), and were not handled.
    async fn due(&self, by: Millis, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// What happened to a run, oldest first, after line number `after`.
    async fn timeline(
        &self,
        id: &RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, TimelineEntry)>, StoreError>;

    /// Removes a run that owes nothing any more; returns whether it existed.
    async fn delete_run(&self, id: &RunId) -> Result<bool, StoreError>;

    /// Removes runs that owe nothing and were last touched before `ended_before`, at most `limit` of them, and unused
    /// workflow versions. Returns how many runs were removed.
    async fn prune(&self, ended_before: Millis, limit: usize) -> Result<u64, StoreError>;
}
