//! Policy as it is asked and answered over HTTP: the reference's names, in its protojson spelling.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A job that might be asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct PolicyCheck {
    pub job_id: String,
    /// `job.…`
    pub topic: String,
    /// If given, it must be one that the key may see.
    pub tenant: String,
    pub org_id: String,
    pub team_id: String,
    pub workflow_id: String,
    pub step_id: String,
    pub principal_id: String,
    pub priority: String,
    pub labels: BTreeMap<String, String>,
    pub memory_id: String,
    pub budget: CheckBudget,
    pub meta: CheckMeta,
    /// Understood by the reference and of no effect here.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub effective_config: Value,
    pub estimated_cost: f64,
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub action: Value,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct CheckBudget {
    pub max_input_tokens: i64,
    pub max_output_tokens: i64,
    pub max_total_tokens: i64,
    pub deadline_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct CheckMeta {
    pub tenant_id: String,
    pub actor_id: String,
    pub actor_type: String,
    pub idempotency_key: String,
    pub capability: String,
    pub risk_tags: Vec<String>,
    pub requires: Vec<String>,
    pub pack_id: String,
    pub labels: BTreeMap<String, String>,
}

/// What policy says, in the reference's protojson.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyAnswer {
    /// `DECISION_TYPE_…`
    pub decision: String,
    pub reason: String,
    pub policy_snapshot: String,
    pub rule_id: String,
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub constraints: Option<Value>,
    pub approval_required: bool,
    pub approval_ref: String,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub remediations: Vec<Value>,
    /// Of every rule, in the order of asking, why it matched or did not; only when that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<TraceLine>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TraceLine {
    pub rule_id: String,
    pub tier: String,
    pub decision: String,
    pub matched: bool,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct DecisionsQuery {
    pub limit: Option<String>,
}

/// One decision about a job, with what it saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DecisionRecord {
    pub decision: String,
    pub reason: String,
    pub rule_id: String,
    pub policy_snapshot: String,
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub constraints: Option<Value>,
    pub approval_required: bool,
    pub approval_ref: String,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub remediations: Vec<Value>,
    /// Microseconds.
    pub checked_at: i64,
    pub checked_at_text: String,
    /// Who allowed it, if a person did.
    pub approved_by: Option<String>,
    /// Names what was asked for.
    pub job_hash: String,
    pub facts: Facts,
}

/// What policy saw of the job: a request never changes, so these are the facts of every decision about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Facts {
    pub tenant: String,
    pub topic: String,
    pub priority: String,
    pub labels: BTreeMap<String, String>,
    pub capability: String,
    pub risk_tags: Vec<String>,
    pub requires: Vec<String>,
    pub pack_id: String,
    pub principal_id: String,
    pub actor_id: String,
    pub actor_type: String,
    pub team: String,
    pub workflow_id: String,
    pub deadline_ms: i64,
}

/// Another policy, and since when jobs are to be judged by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReplayRequest {
    /// The text of a `safety.yaml`.
    pub policy: String,
    /// How far back, such as `24h`, or a time such as `2026-11-15T12:00:00Z`.
    pub since: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReplayReply {
    pub snapshot: String,
    pub examined: usize,
    pub changed: usize,
    /// There were more jobs than are looked at.
    pub partial: bool,
    pub differences: Vec<ReplayDifference>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReplayDifference {
    pub job_id: String,
    pub tenant: String,
    pub topic: String,
    pub was: String,
    pub was_rule: String,
    pub would_be: String,
    pub would_be_rule: String,
    pub reason: String,
}
