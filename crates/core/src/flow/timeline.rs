//! What happened to a run, line by line, for people.

use super::node::{Node, NodeKey};
use super::table::{RunState, StepState};
use crate::id::JobId;
use crate::time::Millis;
use crate::words::words;
use serde::{Deserialize, Serialize};

/// Lines kept of one run: the last ones.
pub const LINES_MAX: usize = 1000;

words! {
    TimelineKind {
        RunStatus = "run_status",
        StepDispatched = "step_dispatched",
        StepWaiting = "step_waiting",
        StepCompleted = "step_completed",
        StepFailed = "step_failed",
        StepSkipped = "step_skipped",
        StepCancelled = "step_cancelled",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEntry {
    #[serde(rename = "time")]
    pub at: Millis,
    #[serde(rename = "type")]
    pub kind: TimelineKind,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "step_id")]
    pub node: Option<NodeKey>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "job_id")]
    pub job: Option<JobId>,
    pub status: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl TimelineEntry {
    pub fn of_step(at: Millis, key: &NodeKey, node: &Node) -> Self {
        let kind = match node.state {
            StepState::Pending | StepState::Running => TimelineKind::StepDispatched,
            StepState::Waiting => TimelineKind::StepWaiting,
            StepState::Succeeded => TimelineKind::StepCompleted,
            StepState::Failed | StepState::Denied | StepState::TimedOut => TimelineKind::StepFailed,
            StepState::Cancelled => TimelineKind::StepCancelled,
            StepState::Skipped => TimelineKind::StepSkipped,
        };
        let (status, message) = (node.state.to_string(), node.words.clone());
        Self { at, kind, node: Some(key.clone()), job: node.job().cloned(), status, message }
    }

    pub fn of_run(at: Millis, kind: TimelineKind, state: RunState, message: &str) -> Self {
        Self { at, kind, node: None, job: None, status: state.to_string(), message: message.to_owned() }
    }
}
