//! A workflow as people write it: the shape of the document, and nothing of its meaning.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// What is sent to be saved. Names and shapes are the reference's; what it did not have is marked "ours".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkflowDocument {
    pub id: String,
    /// Whose it is comes from the credential; named here, it has to agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_id: Option<String>,
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The author's own word for it. Saved versions are counted by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Json>,
    /// The whole run, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// Values that every run can read as `ctx.<name>`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Json>,
    /// Ours: what the run gives when it has succeeded; a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Ours: the ends after which what was done is undone. Failure alone, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compensate_on: Option<Vec<String>>,
    /// Ours: how it is undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackDocument>,
    pub steps: BTreeMap<String, StepDocument>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepDocument {
    /// The key in `steps`, if it is said again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `worker`, if nothing is said.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub worker_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub topic: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Ours: `succeeded` (every dependency has), or `settled` (every dependency is over, however).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_when: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// An expression that gives a list, or the list itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// Where in `ctx` the output is put, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_path: Option<String>,
    /// Which part of the result is the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_data_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// The step that runs if this one fails for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_sec: Option<f64>,
    /// RFC 3339, or a template that gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_until: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub route_labels: BTreeMap<String, String>,
    /// What undoes this step, once it has succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compensation: Option<CompensationDocument>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Meta {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub actor_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub actor_type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub idempotency_key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pack_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub capability: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risk_tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryDocument {
    pub max_retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_backoff_sec: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_backoff_sec: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompensationDocument {
    pub topic: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub route_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryDocument>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RollbackDocument {
    /// All at once, and not one after the other, last first.
    pub parallel: bool,
}
