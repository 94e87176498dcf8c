//! A run that is not run, over HTTP: the reference's names, and beside them what policy says of each step.

use crate::json::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DryRunBody {
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub input: Option<Value>,
    /// Understood by the reference and of no effect here: policy does not look at it.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub environment: Option<Value>,
    /// Ours: a document to go through instead of the one that is saved under this id. It is not saved.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub workflow: Json,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DryRunReply {
    pub workflow_id: String,
    /// Nothing for a document that is not saved.
    pub version: Option<u32>,
    /// In an order in which they could run.
    pub steps: Vec<DryStepRecord>,
    pub warnings: Vec<String>,
    /// What the delays that are known add up to; how long workers take is not known.
    pub estimated_duration_sec: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DryStepRecord {
    pub step_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it would come to stand: `running`, `waiting` (for a person or a rate), `denied`, `failed`, `skipped`, or `pending`
    /// if it is not known whether it begins.
    pub status: String,
    /// Why it would be skipped or fail.
    pub error: String,
    /// What it rests on whether it begins.
    pub begins_on: Vec<String>,
    /// What its condition says, if that is known.
    pub condition: Option<bool>,
    /// How many rounds a `for_each` would have, if that is known.
    pub rounds: Option<usize>,
    /// What it would be given (in its first round), if that is known.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub input: Option<Value>,
    /// What its input rests on, if it is not known.
    pub input_on: Vec<String>,
    /// What it would give, if that needs no worker.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub output: Option<Value>,
    /// Nothing for a step that is no job, or that would be skipped.
    pub policy: Option<DryPolicy>,
    /// What policy would say of the job that undoes it, if it had to be undone.
    pub compensation_policy: Option<DryPolicy>,
    /// Of a step that is another run: how that would go. Of several rounds, the first whose input is known.
    #[cfg_attr(feature = "schema", schema(no_recursion))]
    pub run: Option<Box<DryRunReply>>,
}

/// What policy would say now; of several rounds, the strictest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DryPolicy {
    pub decision: String,
    pub reason: String,
    pub rule_id: String,
    pub policy_snapshot: String,
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub constraints: Option<Value>,
    pub approval_required: bool,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub remediations: Vec<Value>,
    /// Of which round.
    pub round: Option<u32>,
    /// Rules will read the input, and it is not known yet.
    pub is_unread: bool,
}
