//! Workflows: saved when there is nothing wrong with them, and read again with every run.

use super::Workflows;
use reveille_core::audit::Action;
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::flow::{Flow, FlowProblem, RunHead, RunOrigin, WorkflowDocument};
use reveille_core::id::{TenantId, WorkflowId};
use reveille_core::identity::Identity;
use reveille_store::StoreError;
use reveille_store::workflows::Saved;
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug, Clone, thiserror::Error)]
pub enum SaveError {
    #[error(transparent)]
    Bad(#[from] FlowProblem),
    #[error("the tenant has {0} workflows, and may have no more; delete one first")]
    TooMany(u32),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A document that is checked in less time than it takes to hand it over.
const SMALL_DOCUMENT_LEN: usize = 8 * 1024;

impl Workflows {
    /// Saves a workflow as its next version, and says which that is. Nothing of a bad one is stored.
    pub async fn save_workflow(
        &self,
        tenant: &TenantId,
        document: WorkflowDocument,
        by: impl Into<Identity>,
    ) -> Result<u32, SaveError> {
        let by = by.into();
        let now = self.runtime.now();
        let flow = self.checked(document.clone(), 1).await?;
        self.check_calls(tenant, &flow).await?;
        let saved_by = by.name.clone();
        let saved = Saved { tenant: tenant.clone(), version: 0, document, saved_at: now, saved_by };
        let max = self.runtime.settings().limits.workflows_per_tenant;
        let workflows = self.clone();
        self.runtime
            .run_detached(async move {
                let tenant = saved.tenant.clone();
                let version = workflows.store.save(saved, max).await?.ok_or(SaveError::TooMany(max))?;
                let entry = workflows.about_workflow(&tenant, &flow.id, Action::WorkflowSaved, &by);
                workflows.audit.record(entry.about("version", &version.to_string())).await;
                Ok(version)
            })
            .await
    }

    /// Says whether there was one. Runs that began with it go on.
    pub async fn delete_workflow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        by: impl Into<Identity>,
    ) -> Result<bool, StoreError> {
        let (workflows, tenant, id, by) = (self.clone(), tenant.clone(), id.clone(), by.into());
        self.runtime
            .run_detached(async move {
                let was_there = workflows.store.delete_workflow(&tenant, &id).await?;
                if was_there {
                    let entry = workflows.about_workflow(&tenant, &id, Action::WorkflowDeleted, &by);
                    workflows.audit.record(entry).await;
                }
                Ok(was_there)
            })
            .await
    }

    /// Says whether there was one that is over and owes nothing.
    pub async fn delete_run(&self, run: &RunHead, by: impl Into<Identity>) -> Result<bool, StoreError> {
        let (workflows, run, by) = (self.clone(), run.clone(), by.into());
        self.runtime
            .run_detached(async move {
                let was_there = workflows.store.delete_run(&run.id).await?;
                if was_there {
                    let entry = workflows.about_run(&run, Action::RunDeleted, &by);
                    workflows.audit.record(entry).await;
                }
                Ok(was_there)
            })
            .await
    }

    /// A document as a workflow that could be saved. Its schemas and expressions are somebody else's, and many.
    pub(super) async fn checked(
        &self,
        document: WorkflowDocument,
        version: u32,
    ) -> Result<Flow, FlowProblem> {
        let now = self.runtime.now();
        let len = serde_json::to_vec(&document).map_or(usize::MAX, |text| text.len());
        if len <= SMALL_DOCUMENT_LEN {
            return Flow::check(&document, version, now);
        }
        let check = move |_: &Meter| Flow::check(&document, version, now);
        self.runtime.evaluations().run(CostLimit::RUN_EVENT, check).await
    }

    /// A workflow must not end up in itself, whichever way it goes.
    pub(super) async fn check_calls(&self, tenant: &TenantId, flow: &Flow) -> Result<(), SaveError> {
        for (step, called) in flow.calls() {
            let problem = |problem: String| {
                SaveError::Bad(FlowProblem::new("input", problem).of_step(step.id.as_str()))
            };
            let (mut seen, mut open) = (BTreeSet::new(), vec![called.clone()]);
            while let Some(next) = open.pop() {
                if next == flow.id {
                    return Err(problem(format!("the workflow would run itself through {called}")));
                }
                if !seen.insert(next.clone()) {
                    continue;
                }
                match self.store.workflow(tenant, &next, None).await? {
                    Some(saved) => {
                        let read = Flow::read(&saved.document, saved.version);
                        let read = read.map_err(|bad| problem(format!("{next} cannot be read: {bad}")))?;
                        open.extend(read.calls().map(|(_, called)| called.clone()));
                    }
                    None if next == *called => return Err(problem(format!("there is no workflow {called}"))),
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// A workflow as it was saved, ready to run.
    pub async fn flow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        version: Option<u32>,
    ) -> Result<Option<Arc<Flow>>, StoreError> {
        let now = self.runtime.now();
        let read = |version: u32| self.runs.read(tenant, id, version, now);
        if let Some(flow) = version.and_then(read) {
            return Ok(Some(flow));
        }
        let Some(saved) = self.store.workflow(tenant, id, version).await? else { return Ok(None) };
        if let Some(flow) = read(saved.version) {
            return Ok(Some(flow));
        }
        let flow = Flow::read(&saved.document, saved.version);
        let flow = flow.map_err(|problem| {
            StoreError::Corrupt(format!("workflow {id}, version {}: {problem}", saved.version))
        })?;
        let flow = Arc::new(flow);
        self.runs.keep(tenant, &flow, now);
        Ok(Some(flow))
    }

    /// The workflow that a run goes by.
    pub(crate) async fn flow_of(&self, head: &RunHead) -> Result<Arc<Flow>, StoreError> {
        match head.origin {
            RunOrigin::Rollback { .. } => return Ok(super::rollback::flow(head.version)),
            RunOrigin::Client => return Ok(super::saga::flow()),
            _ => {}
        }
        let flow = self.flow(&head.tenant, &head.workflow, Some(head.version)).await?;
        let gone =
            || StoreError::Corrupt(format!("version {} of workflow {} is gone", head.version, head.workflow));
        flow.ok_or_else(gone)
    }
}
