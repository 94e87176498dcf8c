//! Running a run again, from one of its steps: what came before is taken over, and the rest is done anew.

use super::{RunQuota, RunRequest, StartRunError, Started, Workflows};
use reveille_core::flow::{NodeKey, Run, RunOrigin, StepState};
use reveille_core::id::{KeyId, RunId, StepId};

#[derive(Debug, Clone, thiserror::Error)]
pub enum RerunError {
    #[error("there is no such run")]
    Unknown,
    #[error("the workflow has no step {0}")]
    UnknownStep(StepId),
    #[error("the run is not over")]
    NotOver,
    #[error("only runs of workflows are repeated; this one keeps or undoes what others did")]
    NotOfAWorkflow,
    #[error("{0} has not succeeded, and {1} needs it")]
    NotDone(StepId, StepId),
    #[error(transparent)]
    Start(#[from] StartRunError),
}

impl Workflows {
    /// A new run of the same version with the same input. Everything that `from` depends on is taken over, and
    /// has to have succeeded; without `from` everything is done anew.
    pub async fn rerun(
        &self,
        id: &RunId,
        from: Option<&StepId>,
        by: Option<KeyId>,
    ) -> Result<Started, RerunError> {
        let loaded = self.load_run(id).await.map_err(StartRunError::from)?.ok_or(RerunError::Unknown)?;
        let (old, flow) = (loaded.run, loaded.flow);
        if !old.head.state.is_terminal() {
            return Err(RerunError::NotOver);
        }
        if matches!(old.head.origin, RunOrigin::Rollback { .. } | RunOrigin::Client) {
            return Err(RerunError::NotOfAWorkflow);
        }
        let asked = RunRequest {
            tenant: old.head.tenant.clone(),
            workflow: old.head.workflow.clone(),
            input: (*old.input).clone(),
            idempotency_key: None,
            started_by: by,
            actor: old.head.actor.clone(),
        };
        let first = flow.in_order().first().map_or_else(|| StepId::known("none"), |step| step.id.clone());
        let origin = RunOrigin::Rerun { of: id.clone(), from: from.unwrap_or(&first).clone() };
        let mut run = self.new_run(RunId::known(self.runtime.new_uuid()), &asked, &flow, origin).await?;
        if let Some(from) = from {
            if !flow.steps.contains_key(from) {
                return Err(RerunError::UnknownStep(from.clone()));
            }
            for step in flow.before(from) {
                if old.state_of(&step) != StepState::Succeeded {
                    return Err(RerunError::NotDone(step, from.clone()));
                }
                take_over(&old, &mut run, &step);
            }
        }
        Ok(self.begin_run(run, flow, RunQuota::Counts).await?)
    }
}

/// A step that is done, with its rounds, its items, and what would undo it.
fn take_over(old: &Run, new: &mut Run, step: &StepId) {
    let rounds = old.nodes.iter().filter(|(key, _)| key.step == *step);
    for (key, node) in rounds {
        new.put(key.clone(), node.clone());
    }
    if let Some(items) = old.items.get(step) {
        new.items.insert(step.clone(), items.clone());
    }
    for (name, value) in &old.context {
        new.context.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let undo = old.compensations.iter().filter(|undo| undo.node.step == *step);
    new.compensations.extend(undo.cloned());
    new.head.compensations = new.compensations.len() as u32;
    debug_assert!(new.nodes.contains_key(&NodeKey::of(step)), "a step that succeeded is there");
}
