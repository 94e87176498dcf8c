//! A job, in short and in full, and what is said about one.

use crate::JOB_ENDS;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SubmitReply {
    pub job_id: String,
    pub trace_id: String,
    /// `approval_required` when a person must decide first.
    pub status: Option<String>,
    pub reason: Option<String>,
}

/// A job as lists show it. What is not known is empty, or zero.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct JobRecord {
    pub id: String,
    pub trace_id: String,
    pub state: String,
    pub topic: String,
    pub tenant: String,
    pub priority: String,
    pub updated_at: i64,
    pub created_at: i64,
    pub attempts: u64,
    pub worker_id: String,
    pub team: String,
    pub principal: String,
    pub actor_id: String,
    pub actor_type: String,
    pub idempotency_key: String,
    pub capability: String,
    pub risk_tags: Vec<String>,
    pub requires: Vec<String>,
    pub pack_id: String,
    pub safety_decision: String,
    pub safety_reason: String,
    pub safety_rule_id: String,
    pub safety_snapshot: String,
    /// Microseconds despite its name.
    pub deadline_unix: i64,
    pub failure_reason: String,
}

impl JobRecord {
    pub fn has_ended(&self) -> bool {
        JOB_ENDS.contains(&self.state.as_str())
    }
}

/// A [`JobRecord`], whose fields are read as if they were its own, and more.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct JobDetail {
    #[serde(flatten)]
    pub record: JobRecord,
    /// Where the job stands in its trace (W3C Trace Context).
    pub traceparent: String,
    pub context_ptr: String,
    /// The input, up to 256 KiB.
    #[serde(default)]
    pub context: Value,
    pub result_ptr: String,
    /// The output, up to 256 KiB.
    #[serde(default)]
    pub result: Value,
    /// Nobody may read the result: it is in quarantine, or its content is still to be looked at.
    pub result_held: bool,
    pub labels: BTreeMap<String, String>,
    pub workflow_id: String,
    pub step_index: i32,
    /// The job it came of: the one that was retried, if it is a retry.
    pub parent_job_id: String,
    pub error_code: String,
    pub error_message: String,
    /// Why it failed, in one word.
    pub reason_code: String,
    pub execution_ms: i64,
    pub progress: Option<Progress>,
    pub output_safety: Option<OutputSafety>,
    pub timeline: Vec<TimelineEntry>,
    pub decisions: Vec<Decision>,
}

impl Deref for JobDetail {
    type Target = JobRecord;

    fn deref(&self) -> &JobRecord {
        &self.record
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Progress {
    pub percent: u32,
    pub message: String,
}

/// What output policy said of a result.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OutputSafety {
    /// ALLOW, QUARANTINE, DENY or REDACT.
    pub decision: String,
    pub reason: String,
    pub rule_id: String,
    /// `sync`: by what is known of it. `async`: by its content.
    pub phase: String,
    /// A redacted copy has taken the result's place.
    pub redacted: bool,
    /// `released` or `discarded`, once somebody has decided.
    pub resolution: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TimelineEntry {
    pub at: i64,
    pub event: String,
    pub state: String,
    pub worker_id: String,
    pub note: String,
}

/// What policy said, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Decision {
    pub decision: String,
    pub reason: String,
    pub rule_id: String,
    pub policy_snapshot: String,
    pub checked_at: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Cancelled {
    pub id: String,
    pub state: String,
    /// Why nothing was cancelled, if nothing was.
    pub reason: Option<String>,
}

/// Why a job is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Explained {
    pub job_id: String,
    pub state: String,
    pub code: String,
    /// One sentence.
    pub explanation: String,
    /// RFC 3339.
    pub since: String,
    /// What would let it go on.
    pub unblock: Option<String>,
}
