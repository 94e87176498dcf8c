//! Approvals over HTTP, in the reference's shapes.

use crate::job::JobRecord;
use crate::json::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct ApprovalQuery {
    /// 100 unless told, at most 500.
    pub limit: Option<String>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// `true`: also those that have been decided, or went away.
    pub include_resolved: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApprovalPage {
    pub items: Vec<Approval>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
}

/// A question to a person about one job, and what has become of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Approval {
    pub job: JobRecord,
    /// What policy said when it asked.
    pub decision: String,
    pub policy_snapshot: String,
    pub policy_rule_id: String,
    pub policy_reason: String,
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub constraints: Option<Value>,
    /// Name it in the answer to be sure that it is about this request.
    pub job_hash: String,
    pub approval_required: bool,
    pub approval_ref: String,
    /// pending, approved, rejected, expired or invalidated.
    pub approval_status: String,
    /// actionable, `own_job` (somebody else has to approve it) or resolved.
    pub approval_actionability: String,
    /// approve or reject, once somebody has decided.
    pub approval_decision: Option<String>,
    /// Microseconds since the epoch.
    pub requested_at: i64,
    pub resolved_at: Option<i64>,
    pub resolved_by: Option<String>,
    pub resolved_comment: Option<String>,
}

/// What a person should know before they decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApprovalContext {
    pub approval: Approval,
    pub blast_radius: BlastRadius,
    /// The last ten of the same topic and tenant.
    pub prior_approvals: Vec<PriorApproval>,
    pub rollback_hint: RollbackHint,
    pub policy_snapshot_summary: SnapshotSummary,
    /// Nothing when it waits for as long as it takes, or no longer waits.
    pub time_remaining_ms: Option<i64>,
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub constraints: Option<Value>,
    pub input: Input,
}

/// Where the job would go, and how risky it says it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BlastRadius {
    pub topic: String,
    pub pools: Vec<String>,
    /// Up to 20 of the workers that could get it now.
    pub workers: Vec<String>,
    pub workers_total: usize,
    pub risk_tags: Vec<String>,
    pub capability: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PriorApproval {
    pub job_id: String,
    pub topic: String,
    pub tenant: String,
    /// approved, rejected, expired or invalidated.
    pub decision: String,
    pub resolved_by: Option<String>,
    /// Microseconds since the epoch.
    pub resolved_at: Option<i64>,
    pub was_approved: bool,
}

/// Whether the job brought a way to undo it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RollbackHint {
    pub has_compensation: bool,
    pub hint: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SnapshotSummary {
    /// The policy that asked.
    pub asked_under: String,
    pub in_force: String,
    pub is_current: bool,
    pub rule_id: String,
    pub reason: String,
}

/// What the job would work on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Input {
    pub pointer: String,
    /// In bytes; nothing unless it is available.
    pub len: Option<usize>,
    /// available; gone (it has expired, or was never stored); elsewhere (the pointer names what is another's, or is
    /// not kept here, and so is not shown); or none.
    #[serde(default)]
    pub availability: String,
    /// Up to 256 KiB.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    #[serde(default)]
    pub value: Json,
}

/// A person's answer. All of it may be left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Resolution {
    pub reason: Option<String>,
    pub note: Option<String>,
    /// The request that is meant, as the list names it.
    pub job_hash: Option<String>,
    /// The policy that asked, as the list names it.
    pub policy_snapshot: Option<String>,
}

impl Resolution {
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Approved {
    pub job_id: String,
    pub trace_id: String,
    /// `already_approved` if it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// Microseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rejected {
    pub job_id: String,
    /// `already_rejected` if it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_by: Option<String>,
    /// Microseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_at: Option<i64>,
}
