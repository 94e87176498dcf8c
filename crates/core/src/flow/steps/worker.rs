//! A worker step is a job like any other: judged, placed, retried and checked as jobs are.

use super::super::definition::FlowProblem;
use super::super::document::StepDocument;
use super::super::draft::RunDraft;
use super::super::job_id;
use super::super::node::{NodeKey, SubmittedWork};
use super::super::table::StepState;
use crate::id::{Topic, WorkerId};

#[derive(Debug, Clone)]
pub struct WorkerStep {
    pub topic: Topic,
    /// Only this worker, if one is named.
    pub worker: Option<WorkerId>,
}

impl WorkerStep {
    pub(super) fn read(document: &StepDocument) -> Result<Self, FlowProblem> {
        if document.topic.is_empty() {
            return Err(FlowProblem::new("topic", "a worker step needs one"));
        }
        let topic = Topic::parse(&document.topic)
            .map_err(|problem| FlowProblem::new("topic", problem.to_string()))?;
        let worker = match document.worker_id.as_str() {
            "" => None,
            id => Some(
                WorkerId::parse(id).map_err(|problem| FlowProblem::new("worker_id", problem.to_string()))?,
            ),
        };
        Ok(Self { topic, worker })
    }
}

/// The job is owed from here on; that it is submitted follows from the step's state.
pub(super) fn begin(draft: &mut RunDraft<'_>, key: &NodeKey) {
    match draft.input(key) {
        Ok(input) => send_off(draft, key, input, StepState::Running),
        Err(problem) => draft.fail(key, &problem),
    }
}

pub(super) fn send_off(draft: &mut RunDraft<'_>, key: &NodeKey, input: serde_json::Value, state: StepState) {
    let mut node = draft.node(key);
    node.attempt += 1;
    node.state = state;
    node.started_at.get_or_insert(draft.now);
    node.sent = Some(SubmittedWork::Job(job_id(&draft.run.head.id, key, node.attempt)));
    node.input = Some(input.into());
    node.due = None;
    draft.put(key, node);
}
