//! A workflow store that does what the one under it does, except where a test steps in.
//!
//! A [`WorkflowHook`] has a method for each place where a test has wanted to; the rest is passed on as it is.

use crate::workflows::{RunCommit, RunQuery, RunStep, Saved, WorkflowStore};
use crate::{Page, StoreResult};
use async_trait::async_trait;
use reveille_core::flow::{Node, NodeKey, Run, RunHead, TimelineEntry};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use std::sync::Arc;

/// What a test does to the calls of others; unless it says otherwise, nothing.
#[async_trait]
pub trait WorkflowHook: Send + Sync + 'static {
    /// Stands in for a commit.
    async fn commit(&self, flows: &dyn WorkflowStore, step: RunStep) -> StoreResult<RunCommit> {
        flows.commit(step).await
    }

    /// Comes before every look at one step of a run, and may refuse it.
    fn before_node(&self) -> StoreResult<()> {
        Ok(())
    }
}

pub struct HookedWorkflows<H> {
    inner: Arc<dyn WorkflowStore>,
    hook: H,
}

impl<H: WorkflowHook> HookedWorkflows<H> {
    pub fn new(flows: impl WorkflowStore, hook: H) -> Self {
        Self { inner: Arc::new(flows), hook }
    }
}

#[async_trait]
impl<H: WorkflowHook> WorkflowStore for HookedWorkflows<H> {
    async fn commit(&self, step: RunStep) -> StoreResult<RunCommit> {
        self.hook.commit(&*self.inner, step).await
    }

    async fn node(&self, id: &RunId, key: &NodeKey) -> StoreResult<Option<Node>> {
        self.hook.before_node()?;
        self.inner.node(id, key).await
    }

    async fn save(&self, saved: Saved, workflows_max: u32) -> StoreResult<Option<u32>> {
        self.inner.save(saved, workflows_max).await
    }

    async fn workflow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        version: Option<u32>,
    ) -> StoreResult<Option<Arc<Saved>>> {
        self.inner.workflow(tenant, id, version).await
    }

    async fn workflows(
        &self,
        tenant: &TenantId,
        after: Option<&WorkflowId>,
        limit: usize,
    ) -> StoreResult<Vec<Arc<Saved>>> {
        self.inner.workflows(tenant, after, limit).await
    }

    async fn delete_workflow(&self, tenant: &TenantId, id: &WorkflowId) -> StoreResult<bool> {
        self.inner.delete_workflow(tenant, id).await
    }

    async fn run(&self, id: &RunId) -> StoreResult<Option<Run>> {
        self.inner.run(id).await
    }

    async fn due(&self, by: Millis, limit: usize) -> StoreResult<Vec<RunId>> {
        self.inner.due(by, limit).await
    }

    async fn runs(&self, query: &RunQuery) -> StoreResult<Page<RunHead>> {
        self.inner.runs(query).await
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> StoreResult<Page<RunId>> {
        self.inner.live(cursor, limit).await
    }

    async fn timeline(&self, id: &RunId, after: u64, limit: usize) -> StoreResult<Vec<(u64, TimelineEntry)>> {
        self.inner.timeline(id, after, limit).await
    }

    async fn delete_run(&self, id: &RunId) -> StoreResult<bool> {
        self.inner.delete_run(id).await
    }

    async fn prune(&self, ended_before: Millis, limit: usize) -> StoreResult<u64> {
        self.inner.prune(ended_before, limit).await
    }
}
