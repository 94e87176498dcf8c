//! What a person is asked, and what came of it.

use super::JobRecord;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Approval {
    pub job: JobRecord,
    /// What policy said when it asked.
    pub decision: String,
    pub policy_snapshot: String,
    pub policy_rule_id: String,
    pub policy_reason: String,
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
    pub requested_at: i64,
    pub resolved_at: Option<i64>,
    pub resolved_by: Option<String>,
    pub resolved_comment: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Approved {
    pub job_id: String,
    pub trace_id: String,
    /// `already_approved` if it was before, by whom and when.
    pub status: Option<String>,
    pub approved_by: Option<String>,
    pub approved_at: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Rejected {
    pub job_id: String,
    /// `already_rejected` if it was before, by whom and when.
    pub status: Option<String>,
    pub rejected_by: Option<String>,
    pub rejected_at: Option<i64>,
}
