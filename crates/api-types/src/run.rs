//! Runs of workflows, in the reference's shapes.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;

/// A run that is in one of these states stays there.
pub const RUN_ENDS: [&str; 5] = ["succeeded", "failed", "denied", "cancelled", "timed_out"];

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct StartBody {
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub input: Option<Value>,
    pub idempotency_key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct StartQuery {
    pub idempotency_key: Option<String>,
    pub org_id: Option<String>,
    pub team_id: Option<String>,
    pub dry_run: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StartedReply {
    pub run_id: String,
    /// Whether the same idempotency key had started it before.
    pub existing: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct RunListQuery {
    /// 50 unless told, at most 500.
    pub limit: Option<String>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    pub status: Option<String>,
    pub workflow_id: Option<String>,
    /// Operators only.
    pub org_id: Option<String>,
    pub team_id: Option<String>,
    /// Microseconds since the epoch.
    pub updated_after: Option<i64>,
    pub updated_before: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunPage {
    pub items: Vec<RunRecord>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
    /// `started`, `step`, `rerun`, `rollback`, or `client`: it keeps what undoes the jobs of a workflow that a
    /// client drives itself.
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunDetail {
    #[serde(flatten)]
    pub record: RunRecord,
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub input: Value,
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub output: Value,
    /// The run that undoes this one, if there is one; the last, if there are several.
    pub rollback_run_id: Option<String>,
    /// By the step's id; rounds as `step[0]`.
    pub steps: BTreeMap<String, StepRecord>,
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub context: BTreeMap<String, Value>,
}

/// Its fields are read as if they were the run's own.
impl Deref for RunDetail {
    type Target = RunRecord;

    fn deref(&self) -> &RunRecord {
        &self.record
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepRecord {
    pub status: String,
    pub attempt: u32,
    pub since: String,
    pub started_at: Option<String>,
    pub job_id: Option<String>,
    /// When time alone moves it on.
    pub due_at: Option<String>,
    /// Why it is where it is.
    pub message: String,
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub output: Value,
    /// Of a step that goes through a list: how many rounds there are, were begun, succeeded and failed.
    pub rounds: Option<Rounds>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rounds {
    pub count: u32,
    pub begun: u32,
    pub succeeded: u32,
    pub failed: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct TimelineQuery {
    /// 50 unless told, at most 500.
    pub limit: Option<String>,
    /// The number of the last line that is known.
    pub after: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimelineLine {
    /// Counts the lines of this run, from one.
    pub n: u64,
    pub time: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub run_id: String,
    pub workflow_id: String,
    pub step_id: Option<String>,
    pub job_id: Option<String>,
    pub status: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RerunBody {
    /// The step to begin with; all of it unless told.
    pub from_step: Option<String>,
    pub dry_run: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CancelBody {
    pub reason: String,
}
