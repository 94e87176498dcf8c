//! What a rollback goes by: a list of what undoes one thing each, last first, and on even if one fails.
//!
//! A rollback is a run of one step that goes through that list. How often each entry is tried again stands in the
//! entry itself, since every step of a workflow may have its own say.

use super::definition::{Flow, Retry, UndoJob};
use super::document::WorkflowDocument;
use super::node::NodeKey;
use super::run::Compensation;
use crate::id::JobId;
use crate::request::Request;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// The one step of a rollback.
pub const UNDO_STEP: &str = "undo";
/// The two ways through a list, as versions of what every rollback goes by.
pub const UNDO_IN_ORDER: u32 = 1;
pub const UNDO_AT_ONCE: u32 = 2;

/// What undoes one thing, as it stands in a rollback's list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Undoing {
    pub node: NodeKey,
    /// The job that is undone, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(default)]
    pub input: Json,
    /// Why its input could not be worked out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
    pub by: UndoneBy,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoneBy {
    /// A step of ours, as its workflow says.
    Step { index: u32, job: Box<UndoJob> },
    /// A client's job, as the client said: the request, all but its name.
    Client(Box<Request>),
}

impl Undoing {
    /// What undoes a step of this workflow, or a client's job; nothing, if the workflow does not say how.
    pub fn of(flow: &Flow, undo: &Compensation) -> Option<Self> {
        let by = if let Some(client) = &undo.client {
            UndoneBy::Client(Box::new(client.request.clone()))
        } else {
            let step = flow.steps.get(&undo.node.step)?;
            UndoneBy::Step { index: step.index, job: Box::new(step.compensation.as_ref()?.job.clone()) }
        };
        let Compensation { node, job, input, problem, .. } = undo.clone();
        Some(Self { node, job, input, problem, by })
    }
}

/// The workflow of every rollback, in one of its two versions.
pub fn rollback_flow(version: u32) -> Flow {
    let parallel_max = if version == UNDO_AT_ONCE { Json::Null } else { json!(1) };
    let step = json!({"topic": "job.undo", "for_each": "${input.undo}", "max_parallel": parallel_max, "input": "${item}"});
    let document = json!({"id": "rollback", "name": "rollback", "steps": {UNDO_STEP: step}});
    let document: WorkflowDocument =
        serde_json::from_value(document).unwrap_or_else(|error| unreachable!("it is a document: {error}"));
    let mut flow =
        Flow::read(&document, version).unwrap_or_else(|problem| unreachable!("it is a workflow: {problem}"));
    for step in flow.steps.values_mut() {
        step.retry = Retry::of_undoing();
        if let Some(for_each) = &mut step.for_each {
            for_each.is_tolerant = true;
        }
    }
    flow
}

/// How often and when an entry of the list is tried again, if it has a say in that.
pub(super) fn retry_of(entry: &Json) -> Option<Retry> {
    Retry::deserialize(entry.pointer("/by/step/job/retry")?).ok()
}
