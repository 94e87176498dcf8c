//! Jobs over HTTP, in the reference's shapes.

use crate::json::Json;
use crate::quarantine::OutputSafety;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Deref;

/// A job that is in one of these states stays there. (A result that output policy looks at late can still turn
/// SUCCEEDED into `OUTPUT_QUARANTINED`, and a person can turn it back.)
pub const JOB_ENDS: [&str; 6] =
    ["SUCCEEDED", "FAILED", "TIMEOUT", "CANCELLED", "DENIED", "OUTPUT_QUARANTINED"];

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct ListQuery {
    /// 50 unless told, at most 500.
    pub limit: Option<String>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    pub state: Option<String>,
    pub topic: Option<String>,
    /// Operators only.
    pub tenant: Option<String>,
    pub team: Option<String>,
    pub trace_id: Option<String>,
    /// Microseconds since the epoch.
    pub updated_after: Option<i64>,
    pub updated_before: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct WaitQuery {
    /// How long to wait for the job to end: 30s, 500ms; at most five minutes.
    pub wait: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobPage {
    pub items: Vec<JobRecord>,
    /// Nothing on the last page. A page may be short, or empty, and not be the last: for each, 10,000 jobs at most are
    /// looked through.
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobRecord {
    pub id: String,
    pub trace_id: String,
    pub state: String,
    pub topic: String,
    pub tenant: String,
    pub priority: String,
    /// Microseconds since the epoch, like every time of the reference.
    pub updated_at: i64,
    pub created_at: i64,
    pub attempts: usize,
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
    /// Microseconds despite its name, as in the reference; zero when there is none.
    pub deadline_unix: i64,
    pub failure_reason: String,
}

impl JobRecord {
    pub fn has_ended(&self) -> bool {
        JOB_ENDS.contains(&self.state.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobDetail {
    #[serde(flatten)]
    pub record: JobRecord,
    /// Where the job stands in its trace (W3C Trace Context): the trace's id, and the job's span in it.
    pub traceparent: String,
    pub context_ptr: String,
    /// The input, up to 256 KiB.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    #[serde(default)]
    pub context: Json,
    /// available; gone (it has expired, or was never stored); elsewhere (the pointer names what is another's, or is
    /// not kept here, and so is not shown); or none.
    #[serde(default)]
    pub context_availability: String,
    pub result_ptr: String,
    /// The output, up to 256 KiB.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    #[serde(default)]
    pub result: Json,
    /// The same of the result; also held.
    #[serde(default)]
    pub result_availability: String,
    /// Nobody may read the result: it is in quarantine, or its content is still to be looked at.
    pub result_held: bool,
    /// What output policy said of the result.
    pub output_safety: Option<OutputSafety>,
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
    pub timeline: Vec<TimelineEntry>,
    pub decisions: Vec<Decision>,
}

/// Its fields are read as if they were the job's own.
impl Deref for JobDetail {
    type Target = JobRecord;

    fn deref(&self) -> &JobRecord {
        &self.record
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Progress {
    pub percent: u8,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimelineEntry {
    pub at: i64,
    pub event: String,
    pub state: String,
    pub worker_id: String,
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Decision {
    pub decision: String,
    pub reason: String,
    pub rule_id: String,
    pub policy_snapshot: String,
    pub checked_at: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Cancelled {
    pub id: String,
    pub state: String,
    /// Why nothing was cancelled, if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a job is where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Explained {
    pub job_id: String,
    pub state: String,
    pub code: String,
    /// One sentence.
    pub explanation: String,
    pub since: String,
    /// What would let it go on.
    pub unblock: Option<String>,
}
