//! A job as it is asked for over HTTP, and what undoes it.

use crate::json::Json;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `prompt` or `context` must be there; the worker gets the context, with the prompt in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SubmitRequest {
    /// At most 50,000 characters.
    pub prompt: Option<String>,
    /// Any JSON: the worker's input.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    pub context: Json,
    /// `job.…`; `job.default` unless told.
    pub topic: Option<String>,
    /// batch, interactive or critical.
    pub priority: Option<String>,
    pub adapter_id: Option<String>,
    pub memory_id: Option<String>,
    pub context_mode: Option<String>,
    /// If given, it must be the key's own tenant.
    pub tenant_id: Option<String>,
    pub org_id: Option<String>,
    pub team_id: Option<String>,
    pub project_id: Option<String>,
    pub principal_id: Option<String>,
    pub actor_id: Option<String>,
    /// human or service.
    pub actor_type: Option<String>,
    /// The same key returns the same job, within a tenant.
    pub idempotency_key: Option<String>,
    pub pack_id: Option<String>,
    pub capability: Option<String>,
    pub risk_tags: Vec<String>,
    pub requires: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub tags: Vec<String>,
    pub max_input_tokens: Option<i64>,
    pub max_output_tokens: Option<i64>,
    pub max_total_tokens: Option<i64>,
    /// Milliseconds until the job must be over.
    pub deadline_ms: Option<i64>,
    pub allow_summarization: bool,
    pub allow_retrieval: bool,
    /// The workflow that it is part of, if the caller drives one itself.
    pub workflow_id: Option<String>,
    /// Which step of that workflow it is.
    pub step_index: Option<i32>,
    /// What undoes it, once it has succeeded, when a job of the same workflow fails for good.
    pub compensation: Option<CompensationBody>,
}

/// What is not said is as the job has it. Its priority is always critical.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CompensationBody {
    /// `job.…`: who undoes it.
    pub topic: String,
    /// Where its input is; the job's own unless told.
    pub context_ptr: String,
    /// `saga_parallel: "true"` on all of them lets them go at once.
    pub labels: BTreeMap<String, String>,
    pub capability: String,
    pub risk_tags: Vec<String>,
    pub requires: Vec<String>,
    pub pack_id: String,
    /// Made of the workflow, the job and the topic unless told.
    pub idempotency_key: String,
    /// Milliseconds that it may take.
    pub deadline_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Remediate {
    /// The id of one of the `remediations` of the job's last decision.
    pub remediation_id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubmitReply {
    pub job_id: String,
    pub trace_id: String,
    /// `approval_required` when a person must decide first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
