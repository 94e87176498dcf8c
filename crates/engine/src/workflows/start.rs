//! How a run begins.

use super::Loaded;
use super::Workflows;
use crate::evaluation::{TooManyQuestions, at_once};
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::flow::{Flow, Run, RunChange, RunHead, RunOrigin, Schema, start};
use reveille_core::id::{KeyId, RunId, TenantId, WorkflowId};
use reveille_core::quota::{OverQuota, TenantQuota};
use reveille_core::request::Actor;
use reveille_store::StoreError;
use reveille_store::workflows::{RunCommit, RunStep};
use serde_json::Value as Json;
use std::sync::Arc;

/// Bytes of a run's input.
const INPUT_LEN_MAX: usize = 256 * 1024;
const KEY_LEN_MAX: usize = 256;

/// A run that somebody asks for.
#[derive(Debug, Clone)]
pub struct RunRequest {
    pub tenant: TenantId,
    pub workflow: WorkflowId,
    pub input: Json,
    pub idempotency_key: Option<String>,
    pub started_by: Option<KeyId>,
    pub actor: Actor,
}

/// Whether a new run has to fit in its tenant's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunQuota {
    /// Somebody starts it, or a step of another run does.
    Counts,
    /// It undoes what others did, or keeps what may have to be undone: that must go on however full it is.
    Exempt,
}

#[derive(Debug, Clone)]
pub enum Started {
    New(Box<RunHead>),
    /// The same idempotency key was used before.
    Existing(RunId),
}

impl Started {
    pub fn id(&self) -> &RunId {
        match self {
            Self::New(head) => &head.id,
            Self::Existing(id) => id,
        }
    }
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum StartRunError {
    #[error("there is no workflow {0}")]
    UnknownWorkflow(WorkflowId),
    #[error("{field}: {problem}")]
    Bad { field: &'static str, problem: String },
    #[error("{0}; try again later")]
    TooMany(OverQuota),
    #[error("this server is shutting down")]
    Draining,
    /// Only asked of what is worked out for an answer.
    #[error(transparent)]
    Busy(#[from] TooManyQuestions),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Workflows {
    /// Starts a run of a workflow's last version.
    pub async fn start_run(&self, asked: RunRequest) -> Result<Started, StartRunError> {
        if self.runtime.is_draining() {
            return Err(StartRunError::Draining);
        }
        let flow = self.flow(&asked.tenant, &asked.workflow, None).await?;
        let flow = flow.ok_or_else(|| StartRunError::UnknownWorkflow(asked.workflow.clone()))?;
        if asked.idempotency_key.as_ref().is_some_and(|key| key.is_empty() || key.len() > KEY_LEN_MAX) {
            let problem = format!("must have 1 to {KEY_LEN_MAX} bytes");
            return Err(StartRunError::Bad { field: "idempotency_key", problem });
        }
        let id = RunId::known(self.runtime.new_uuid());
        let run = self.new_run(id, &asked, &flow, RunOrigin::Started).await?;
        self.begin_run(run, flow, RunQuota::Counts).await
    }

    /// A run that has not begun, if its input is as it should be.
    pub(super) async fn new_run(
        &self,
        id: RunId,
        asked: &RunRequest,
        flow: &Flow,
        origin: RunOrigin,
    ) -> Result<Run, StartRunError> {
        let bad = |problem: String| StartRunError::Bad { field: "input", problem };
        if asked.input.to_string().len() > INPUT_LEN_MAX {
            return Err(bad(format!("is larger than {INPUT_LEN_MAX} bytes")));
        }
        if let Some(schema) = &flow.input_schema {
            self.check_schema(schema, &asked.input).await.map_err(bad)?;
        }
        let now = self.runtime.now();
        let memory_id = asked.input.get("memory_id").and_then(Json::as_str).unwrap_or_default().to_owned();
        let (tenant, workflow) = (asked.tenant.clone(), asked.workflow.clone());
        let head = RunHead {
            origin,
            started_by: asked.started_by.clone(),
            actor: asked.actor.clone(),
            idempotency_key: asked.idempotency_key.clone(),
            memory_id,
            ..RunHead::new(id, tenant, workflow, flow.version, now)
        };
        Ok(Run::new(head, Arc::new(asked.input.clone())))
    }

    /// Whether a value fits a schema.
    pub(super) async fn check_schema(&self, schema: &Schema, value: &Json) -> Result<(), String> {
        if let Some(checked) = at_once(|meter| schema.check(value, meter)) {
            return checked;
        }
        let (schema, value) = (schema.clone(), value.clone());
        let check = move |meter: &Meter| schema.check(&value, meter);
        self.runtime.evaluations().run(CostLimit::RUN_EVENT, check).await
    }

    /// What a run begins with.
    async fn first_steps(&self, run: &Run, flow: &Arc<Flow>) -> RunChange {
        let now = self.runtime.now();
        if let Some(change) = at_once(|meter| start(run, flow, now, meter)) {
            return change;
        }
        let (run, flow) = (run.clone(), flow.clone());
        let begin = move |meter: &Meter| start(&run, &flow, now, meter);
        self.runtime.evaluations().run(CostLimit::RUN_EVENT, begin).await
    }

    /// Commits a run with its first steps begun.
    pub(super) async fn begin_run(
        &self,
        run: Run,
        flow: Arc<Flow>,
        quota: RunQuota,
    ) -> Result<Started, StartRunError> {
        let workflows = self.clone();
        self.runtime
            .run_detached(async move {
                let id = run.head.id.clone();
                let slot = workflows.runs.slot(&id);
                let mut open = slot.lock().await;
                let change = Arc::new(workflows.first_steps(&run, &flow).await);
                let max = workflows.runtime.settings().limits.runs_per_tenant;
                let runs_max = (quota == RunQuota::Counts).then_some(max);
                let mut run = run;
                let step = RunStep { runs_max, ..RunStep::insert(Arc::new(run.clone()), change.clone()) };
                let committed = workflows.store.commit(step).await;
                let outcome = match committed {
                    Ok(RunCommit::Done) => {
                        run.apply((*change).clone());
                        workflows.observe.metrics().saga().recorded(change.compensations.len());
                        let loaded = Loaded { run, flow };
                        workflows.publish_run(&loaded.run.head, None);
                        workflows.act_on_all(&loaded);
                        let begun = Box::new(loaded.run.head.clone());
                        open.loaded = loaded.run.is_live().then_some(loaded);
                        Ok(Started::New(begun))
                    }
                    Ok(RunCommit::Duplicate(id)) => Ok(Started::Existing(id)),
                    Ok(RunCommit::QuotaExceeded) => {
                        let over = OverQuota { quota: TenantQuota::Runs, max: max.into() };
                        Err(StartRunError::TooMany(workflows.observe.metrics().over_quota(over)))
                    }
                    Ok(RunCommit::Conflict) => {
                        Err(StoreError::Unavailable("the workflow was changed just now".to_owned()).into())
                    }
                    Err(error) => {
                        // It may have counted all the same: then it goes on from what is stored.
                        if open.failed(&error) {
                            workflows.runtime.spawn(workflows.clone().resolve_in_doubt(id.clone()));
                        }
                        Err(error.into())
                    }
                };
                if open.loaded.is_none() && !open.is_unsure {
                    drop(open);
                    workflows.runs.close(&id);
                } else {
                    drop(open);
                }
                if let Ok(Started::New(head)) = &outcome
                    && let Some(entry) = workflows.about_start(head)
                {
                    workflows.audit.record_new(entry).await;
                }
                outcome
            })
            .await
    }
}
