//! What can be looked at: workflows as they were saved, runs and their timelines.

use super::Workflows;
use crate::placement::Ahead;
use reveille_core::flow::{Run, RunHead, TimelineEntry};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_store::workflows::{RunQuery, Saved};
use reveille_store::{Page, StoreError};
use std::sync::Arc;

impl Workflows {
    pub async fn workflows(
        &self,
        tenant: &TenantId,
        after: Option<&WorkflowId>,
        limit: usize,
    ) -> Result<Vec<Arc<Saved>>, StoreError> {
        self.store.workflows(tenant, after, limit).await
    }

    pub async fn workflow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        version: Option<u32>,
    ) -> Result<Option<Arc<Saved>>, StoreError> {
        self.store.workflow(tenant, id, version).await
    }

    pub async fn runs(&self, query: &RunQuery) -> Result<Page<RunHead>, StoreError> {
        self.store.runs(query).await
    }

    pub async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.store.run(id).await
    }

    pub async fn timeline(
        &self,
        id: &RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, TimelineEntry)>, StoreError> {
        self.store.timeline(id, after, limit).await
    }

    /// The moments of runs that this server waits for.
    pub fn timers(&self) -> Ahead {
        self.runs.ahead()
    }

    /// Whoever waits for a run is answered with how it stands.
    pub(crate) fn wake_all(&self) {
        self.waiters.wake_all();
    }

    /// A run has ended at another server.
    pub(crate) fn on_peer_run(&self, id: &RunId) {
        self.waiters.wake(id);
    }
}
