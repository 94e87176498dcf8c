//! Sagas that a client drives itself: it asks for jobs of one workflow of its own, each with what undoes it, and
//! what was done is undone when one of them fails for good.
//!
//! What undoes the jobs of such a workflow is kept in a run of its own, the *stack*: one without steps, which is
//! over when it begins, so that it owes nothing and is pruned by age. A failure makes it owe a rollback, as a run
//! of ours that fails does. Nothing is taken off it: it counts how many were given to rollbacks, so that a job
//! that is told of twice is known.

use super::RunRefusal;
use super::definition::Flow;
use super::draft::RunDraft;
use super::node::NodeKey;
use super::run::{Compensation, Run, RunHead, RunOrigin};
use super::table::RunState;
use super::timeline::{TimelineEntry, TimelineKind};
use crate::digest::sha256_hex;
use crate::id::{JobId, RunId, StepId, TenantId, WorkflowId};
use crate::request::Request;
use crate::time::Millis;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Compensations that one stack takes, those that were undone included.
pub const STACK_MAX: usize = 1000;

/// Where a stack stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Stack {
    /// The job that failed last, and when. What was asked for before that belongs to what has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<SagaFailure>,
    /// Up to here everything was given to a rollback, or lies further up once more.
    pub undone: u32,
    /// Up to here the last rollback goes.
    pub undo_to: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SagaFailure {
    pub job: JobId,
    pub at: Millis,
}

/// What undoes a job of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientUndo {
    /// When the job was asked for.
    pub asked_at: Millis,
    /// The job that undoes it, all but its name.
    pub request: Request,
}

/// The stack of a workflow of a client. The tenant's length keeps two names from reading as two others.
pub fn stack_id(tenant: &TenantId, workflow_id: &str) -> RunId {
    let name = format!("saga:{}:{tenant}:{workflow_id}", tenant.as_str().len());
    RunId::known(&sha256_hex(name.as_bytes())[..32])
}

/// An empty stack, to begin with.
pub fn stack(tenant: &TenantId, workflow_id: &str, now: Millis) -> Run {
    let id = stack_id(tenant, workflow_id);
    // A client may call its workflow anything; what is no name here goes by the stack's own.
    let workflow = WorkflowId::parse(workflow_id).unwrap_or_else(|_| WorkflowId::known(id.as_str()));
    let head = RunHead {
        origin: RunOrigin::Client,
        stack: Some(Box::default()),
        ..RunHead::new(id, tenant.clone(), workflow, 0, now)
    };
    Run::new(head, Arc::new(serde_json::json!({ "workflow_id": workflow_id })))
}

/// What every stack goes by: there is nothing to do.
pub fn stack_flow() -> Flow {
    Flow {
        id: WorkflowId::known("saga"),
        version: 0,
        name: "saga".to_owned(),
        timeout_ms: None,
        input_schema: None,
        parameters: BTreeMap::new(),
        output: None,
        compensate_on: BTreeSet::new(),
        undoes_at_once: false,
        steps: BTreeMap::new(),
    }
}

impl Compensation {
    /// What undoes this job of a client.
    pub fn of_client(job: &JobId, undo: ClientUndo) -> Self {
        Self {
            // It is no step of anything.
            node: NodeKey::of(&StepId::known("job")),
            job: Some(job.clone()),
            input: serde_json::Value::Null,
            problem: String::new(),
            client: Some(Box::new(undo)),
        }
    }
}

impl Run {
    /// What the rollback that it owes undoes, in the order in which it was recorded.
    pub fn to_undo(&self) -> Vec<&Arc<Compensation>> {
        let Some(stack) = &self.head.stack else { return self.compensations.iter().collect() };
        let given = self.compensations.iter().take(stack.undo_to as usize).skip(stack.undone as usize);
        given.filter(|undo| !is_newer(undo, stack.failed.as_ref())).collect()
    }
}

/// Whether the job was asked for after the failure: then it belongs to another try. Of two in the same
/// millisecond nobody knows.
fn is_newer(undo: &Compensation, failed: Option<&SagaFailure>) -> bool {
    let asked_at = undo.client.as_ref().map(|client| client.asked_at);
    failed.zip(asked_at).is_some_and(|(failed, asked_at)| asked_at > failed.at)
}

/// A job has succeeded: what undoes it is put on top.
pub(super) fn record(draft: &mut RunDraft<'_>, undo: &Arc<Compensation>) -> Result<(), RunRefusal> {
    let (Some(stack), Some(client)) = (&draft.head.stack, &undo.client) else {
        return Err(RunRefusal::Stale);
    };
    if draft.run.compensations.iter().any(|known| known.job == undo.job) {
        return Err(RunRefusal::Stale);
    }
    if stack.failed.as_ref().is_some_and(|failed| client.asked_at < failed.at) {
        return Err(RunRefusal::Failed);
    }
    if draft.run.compensations.len() >= STACK_MAX {
        return Err(RunRefusal::Full);
    }
    draft.record(undo.clone());
    Ok(())
}

/// A job has failed for good: what is on the stack is to be undone. One rollback is made after the other.
pub(super) fn fail(draft: &mut RunDraft<'_>, failed: &SagaFailure, words: &str) -> Result<(), RunRefusal> {
    let (now, run) = (draft.now, draft.run);
    let owes = draft.head.owes_rollback;
    let Some(stack) = &mut draft.head.stack else { return Err(RunRefusal::Stale) };
    // Whatever an earlier failure could undo, a later one has undone.
    if stack.failed.as_ref().is_some_and(|last| failed.at < last.at || failed == last) {
        return Err(RunRefusal::Stale);
    }
    if owes {
        return Err(RunRefusal::TooEarly);
    }
    let open = &run.compensations[stack.undone as usize..];
    let newer: Vec<_> = open.iter().filter(|undo| is_newer(undo, Some(failed))).cloned().collect();
    stack.failed = Some(failed.clone());
    if newer.len() < open.len() {
        stack.undo_to = run.compensations.len() as u32;
        draft.head.owes_rollback = true;
        // The client has begun anew before anybody came to look: that goes on top once more.
        for undo in newer {
            draft.record(undo);
        }
    }
    // Not ours to end: all is well with a client's workflow until it fails, and it may fail again.
    draft.head.state = RunState::Failed;
    draft.head.error = format!("job {}: {words}", failed.job);
    let line = TimelineEntry::of_run(now, TimelineKind::RunStatus, RunState::Failed, &draft.head.error);
    draft.note(line);
    Ok(())
}

/// The rollback that goes up to `upto` is there.
pub(super) fn rollback_made(draft: &mut RunDraft<'_>, upto: u32) -> Result<(), RunRefusal> {
    if !draft.head.owes_rollback {
        return Err(RunRefusal::Stale);
    }
    if let Some(stack) = &mut draft.head.stack {
        if upto != stack.undo_to {
            return Err(RunRefusal::Stale);
        }
        stack.undone = upto;
    }
    draft.head.owes_rollback = false;
    Ok(())
}
