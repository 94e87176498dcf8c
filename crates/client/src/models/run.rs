//! A run of a workflow, in short and in full.

use crate::RUN_ENDS;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Deref;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StartedReply {
    pub run_id: String,
    /// Whether the same idempotency key had started it before.
    pub existing: bool,
}

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RunRecord {
    pub id: String,
    pub workflow_id: String,
    pub workflow_version: u32,
    pub org_id: String,
    pub status: String,
    pub created_at: String,
    pub updated_at: String,
    pub started_at: String,
    pub completed_at: Option<String>,
    pub error: String,
    /// `started`, `step`, `rerun`, `rollback`, or `client`: it keeps what undoes the jobs of a workflow that a client
    /// drives itself.
    pub origin: String,
    /// The run that this one is a step of, repeats or undoes.
    pub parent_run_id: Option<String>,
    /// Steps under way, and steps that wait.
    pub running: u32,
    pub waiting: u32,
    /// How much of it can be undone.
    pub compensations: u32,
}

impl RunRecord {
    pub fn has_ended(&self) -> bool {
        RUN_ENDS.contains(&self.status.as_str())
    }
}

/// A [`RunRecord`], whose fields are read as if they were its own, and more.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunDetail {
    #[serde(flatten)]
    pub record: RunRecord,
    pub input: Value,
    pub output: Value,
    /// By the step's id; rounds as `step[0]`.
    pub steps: BTreeMap<String, StepRecord>,
    pub context: Map<String, Value>,
    /// The run that undoes this one, if there is one; the last, if there are several.
    pub rollback_run_id: Option<String>,
}

impl Deref for RunDetail {
    type Target = RunRecord;

    fn deref(&self) -> &RunRecord {
        &self.record
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StepRecord {
    pub status: String,
    pub attempt: u32,
    pub since: String,
    pub started_at: Option<String>,
    /// When time alone moves it on.
    pub due_at: Option<String>,
    /// Why it is where it is.
    pub message: String,
    pub job_id: Option<String>,
    pub output: Value,
    pub rounds: Option<Rounds>,
}

/// Of a step that goes through a list: how many rounds there are, were begun, succeeded and failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Rounds {
    pub count: u32,
    pub begun: u32,
    pub succeeded: u32,
    pub failed: u32,
}
