//! Approvals over HTTP, in the reference's shapes.

use super::job::JobRecord;
use super::text;
use crate::ApiError;
use reveille_core::approval::{self, Answer, Choice, Decided, Status};
use reveille_core::job::Job;
use reveille_core::request::Request;
use reveille_engine::EligibleWorkers;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

/// Bytes of a reason or a note.
const WORDS_LEN_MAX: usize = 4096;
const PAGE_LEN: &str = "100";

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ApprovalQuery {
    /// 100 unless told, at most 500.
    limit: Option<String>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// `true`: also those that have been decided, or went away.
    include_resolved: Option<String>,
}

impl ApprovalQuery {
    pub fn limit(&self) -> Result<usize, ApiError> {
        text::limit(Some(self.limit.as_deref().unwrap_or(PAGE_LEN)))
    }

    pub fn cursor(&self) -> Result<Option<u64>, ApiError> {
        text::cursor(self.cursor.as_deref())
    }

    pub fn include_resolved(&self) -> Result<bool, ApiError> {
        match self.include_resolved.as_deref() {
            None | Some("" | "false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(word) => {
                Err(ApiError::field("include_resolved", format!("{word:?} is neither true nor false")))
            }
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ApprovalPage {
    pub items: Vec<Approval>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
}

/// A question to a person about one job, and what has become of it.
#[derive(Serialize, ToSchema)]
pub struct Approval {
    pub job: JobRecord,
    /// What policy said when it asked.
    pub decision: String,
    pub policy_snapshot: String,
    pub policy_rule_id: String,
    pub policy_reason: String,
    #[schema(value_type = Option<Object>)]
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

impl Approval {
    /// `is_own` says that whoever looks is who submitted it.
    pub fn of(job: &Job, status: Status, is_own: bool) -> Option<Self> {
        let question = approval::question(job)?;
        let (verdict, decided) = (&question.verdict, job.decided.as_ref());
        let actionability = match status {
            Status::Pending if is_own => "own_job",
            Status::Pending => "actionable",
            _ => "resolved",
        };
        Some(Self {
            job: JobRecord::of(job),
            decision: verdict.decision.as_str().to_owned(),
            policy_snapshot: verdict.snapshot.clone(),
            policy_rule_id: verdict.rule_id.clone(),
            policy_reason: approval::why(job),
            constraints: verdict.constraints.as_ref().and_then(|told| serde_json::to_value(told).ok()),
            job_hash: approval::job_hash(&job.request),
            approval_required: true,
            approval_ref: job.id().to_string(),
            approval_status: status.as_str().to_owned(),
            approval_actionability: actionability.to_owned(),
            approval_decision: decided.map(|decided| decided.choice.as_str().to_owned()),
            requested_at: question.checked_at.micros(),
            resolved_at: decided.map(|decided| decided.at.micros()),
            resolved_by: decided.map(|decided| decided.by.clone()),
            resolved_comment: decided.map(|decided| decided.comment.clone()),
        })
    }
}

/// What a person should know before they decide.
#[derive(Serialize, ToSchema)]
pub struct ApprovalContext {
    pub approval: Approval,
    pub blast_radius: BlastRadius,
    /// The last ten of the same topic and tenant.
    pub prior_approvals: Vec<PriorApproval>,
    pub rollback_hint: RollbackHint,
    pub policy_snapshot_summary: SnapshotSummary,
    /// Nothing when it waits for as long as it takes, or no longer waits.
    pub time_remaining_ms: Option<i64>,
    #[schema(value_type = Option<Object>)]
    pub constraints: Option<Value>,
    pub input: Input,
}

/// Where the job would go, and how risky it says it is.
#[derive(Serialize, ToSchema)]
pub struct BlastRadius {
    pub topic: String,
    pub pools: Vec<String>,
    /// Up to 20 of the workers that could get it now.
    pub workers: Vec<String>,
    pub workers_total: usize,
    pub risk_tags: Vec<String>,
    pub capability: String,
}

impl BlastRadius {
    pub fn of(request: &Request, reach: &EligibleWorkers) -> Self {
        Self {
            topic: request.topic.to_string(),
            pools: reach.pools.iter().map(ToString::to_string).collect(),
            workers: reach.workers.iter().map(ToString::to_string).collect(),
            workers_total: reach.workers_total,
            risk_tags: request.needs.risk_tags.clone(),
            capability: request.needs.capability.clone(),
        }
    }
}

#[derive(Serialize, ToSchema)]
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

impl PriorApproval {
    /// Nothing while it is pending.
    pub fn of(job: &Job) -> Option<Self> {
        let status = approval::status(job).filter(|status| *status != Status::Pending)?;
        let decided = job.decided.as_ref();
        Some(Self {
            job_id: job.id().to_string(),
            topic: job.request.topic.to_string(),
            tenant: job.request.tenant.to_string(),
            decision: status.as_str().to_owned(),
            resolved_by: decided.map(|decided| decided.by.clone()),
            resolved_at: decided.map(|decided| decided.at.micros()),
            was_approved: decided.is_some_and(|decided| decided.choice == Choice::Approve),
        })
    }
}

/// Whether the job brought a way to undo it.
#[derive(Serialize, ToSchema)]
pub struct RollbackHint {
    pub has_compensation: bool,
    pub hint: String,
}

impl RollbackHint {
    pub fn of(request: &Request) -> Self {
        let has_compensation = !request.compensation.is_empty();
        let hint = if has_compensation {
            "The job brought a compensation that undoes it."
        } else {
            "The job brought no compensation: what it does stays done."
        };
        Self { has_compensation, hint: hint.to_owned() }
    }
}

#[derive(Serialize, ToSchema)]
pub struct SnapshotSummary {
    /// The policy that asked.
    pub asked_under: String,
    pub in_force: String,
    pub is_current: bool,
    pub rule_id: String,
    pub reason: String,
}

impl SnapshotSummary {
    pub fn of(approval: &Approval, in_force: String) -> Self {
        Self {
            asked_under: approval.policy_snapshot.clone(),
            is_current: approval.policy_snapshot == in_force,
            in_force,
            rule_id: approval.policy_rule_id.clone(),
            reason: approval.policy_reason.clone(),
        }
    }
}

/// What the job would work on.
#[derive(Serialize, ToSchema)]
pub struct Input {
    pub pointer: String,
    /// In bytes; nothing if it has expired, or is not kept here.
    pub len: Option<usize>,
    /// Up to 256 KiB.
    #[schema(value_type = Option<Value>)]
    pub value: Option<Box<RawValue>>,
}

/// A person's answer. All of it may be left out.
#[derive(Deserialize, ToSchema, Default)]
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
    pub fn into_answer(self, answer: Answer) -> Result<Answer, ApiError> {
        for (field, words) in [("reason", &self.reason), ("note", &self.note)] {
            if words.as_ref().is_some_and(|words| words.len() > WORDS_LEN_MAX) {
                return Err(ApiError::field(field, format!("is longer than {WORDS_LEN_MAX} bytes")));
            }
        }
        let words = [self.reason, self.note].into_iter().flatten().filter(|words| !words.is_empty());
        Ok(Answer {
            comment: words.collect::<Vec<_>>().join("; "),
            job_hash: self.job_hash.filter(|hash| !hash.is_empty()),
            policy_snapshot: self.policy_snapshot.filter(|snapshot| !snapshot.is_empty()),
            ..answer
        })
    }
}

#[derive(Serialize, ToSchema)]
pub struct Approved {
    pub job_id: String,
    pub trace_id: String,
    /// `already_approved` if it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// Microseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<i64>,
}

impl Approved {
    pub fn now(job: &Job) -> Self {
        let (job_id, trace_id) = (job.id().to_string(), job.request.trace_id.clone());
        Self { job_id, trace_id, status: None, approved_by: None, approved_at: None }
    }

    pub fn before(job: &Job) -> Self {
        let (approved_by, approved_at) = who_and_when(job.decided.as_ref());
        Self { status: Some("already_approved"), approved_by, approved_at, ..Self::now(job) }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Rejected {
    pub job_id: String,
    /// `already_rejected` if it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_by: Option<String>,
    /// Microseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_at: Option<i64>,
}

impl Rejected {
    pub fn now(job: &Job) -> Self {
        Self { job_id: job.id().to_string(), status: None, rejected_by: None, rejected_at: None }
    }

    pub fn before(job: &Job) -> Self {
        let (rejected_by, rejected_at) = who_and_when(job.decided.as_ref());
        Self { status: Some("already_rejected"), rejected_by, rejected_at, ..Self::now(job) }
    }
}

fn who_and_when(decided: Option<&Decided>) -> (Option<String>, Option<i64>) {
    decided.map(|decided| (decided.by.clone(), decided.at.micros())).unzip()
}
