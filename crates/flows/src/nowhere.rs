//! A server that keeps no workflows: there are none, and none can be saved.

use crate::{Flows, RunCommit, RunQuery, RunStep, Saved};
use reveille_core::flow::{Head, Line, Run};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use reveille_store::{Page, StoreError};
use std::sync::Arc;

pub struct NoFlows;

fn refused() -> StoreError {
    StoreError::Refused(
        "servers that share Redis, NATS and PostgreSQL keep no workflows yet; one server alone does"
            .to_owned(),
    )
}

#[async_trait::async_trait]
impl Flows for NoFlows {
    async fn save(&self, _saved: Saved) -> Result<u32, StoreError> {
        Err(refused())
    }

    async fn workflow(
        &self,
        _tenant: &TenantId,
        _id: &WorkflowId,
        _version: Option<u32>,
    ) -> Result<Option<Arc<Saved>>, StoreError> {
        Ok(None)
    }

    async fn workflows(
        &self,
        _tenant: &TenantId,
        _after: Option<&WorkflowId>,
        _limit: usize,
    ) -> Result<Vec<Arc<Saved>>, StoreError> {
        Ok(Vec::new())
    }

    async fn delete_workflow(&self, _tenant: &TenantId, _id: &WorkflowId) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn commit(&self, _step: RunStep) -> Result<RunCommit, StoreError> {
        Err(refused())
    }

    async fn run(&self, _id: &RunId) -> Result<Option<Run>, StoreError> {
        Ok(None)
    }

    async fn runs(&self, _query: &RunQuery) -> Result<Page<Head>, StoreError> {
        Ok(Page { items: Vec::new(), next: None })
    }

    async fn live(&self, _cursor: Option<u64>, _limit: usize) -> Result<Page<RunId>, StoreError> {
        Ok(Page { items: Vec::new(), next: None })
    }

    async fn timeline(
        &self,
        _id: &RunId,
        _after: u64,
        _limit: usize,
    ) -> Result<Vec<(u64, Line)>, StoreError> {
        Ok(Vec::new())
    }

    async fn delete_run(&self, _id: &RunId) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn prune(&self, _ended_before: Millis, _limit: usize) -> Result<u64, StoreError> {
        Ok(0)
    }
}
