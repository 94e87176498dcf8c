//! What a person is asked, what it would do, and the answer.

use super::text;
use super::{job_record, json};
use crate::ApiError;
use reveille_api_types::approval::{
    Approval, ApprovalQuery, Approved, BlastRadius, PriorApproval, Rejected, Resolution, RollbackHint,
    SnapshotSummary,
};
use reveille_core::approval::{self, Answer, Choice, Decided, Status};
use reveille_core::job::Job;
use reveille_core::request::Request;
use reveille_engine::EligibleWorkers;

/// Bytes of a reason or a note.
const WORDS_LEN_MAX: usize = 4096;
const PAGE_LEN: &str = "100";

/// How many are on a page.
pub fn approvals_limit(query: &ApprovalQuery) -> Result<usize, ApiError> {
    text::limit(Some(query.limit.as_deref().unwrap_or(PAGE_LEN)))
}

pub fn include_resolved(query: &ApprovalQuery) -> Result<bool, ApiError> {
    match query.include_resolved.as_deref() {
        None | Some("" | "false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        Some(word) => Err(ApiError::field("include_resolved", format!("{word:?} is neither true nor false"))),
    }
}

/// `is_own` says that whoever looks is who submitted it.
pub fn approval(job: &Job, status: Status, is_own: bool) -> Option<Approval> {
    let question = approval::question(job)?;
    let (verdict, decided) = (&question.verdict, job.decided.as_ref());
    let actionability = match status {
        Status::Pending if is_own => "own_job",
        Status::Pending => "actionable",
        _ => "resolved",
    };
    Some(Approval {
        job: job_record(job),
        decision: verdict.decision.as_str().to_owned(),
        policy_snapshot: verdict.snapshot.clone(),
        policy_rule_id: verdict.rule_id.clone(),
        policy_reason: approval::why(job),
        constraints: verdict.constraints.as_ref().map(json),
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

pub fn blast_radius(request: &Request, reach: &EligibleWorkers) -> BlastRadius {
    BlastRadius {
        topic: request.topic.to_string(),
        pools: reach.pools.iter().map(ToString::to_string).collect(),
        workers: reach.workers.iter().map(ToString::to_string).collect(),
        workers_total: reach.workers_total,
        risk_tags: request.needs.risk_tags.clone(),
        capability: request.needs.capability.clone(),
    }
}

/// Nothing while it is pending.
pub fn prior_approval(job: &Job) -> Option<PriorApproval> {
    let status = approval::status(job).filter(|status| *status != Status::Pending)?;
    let decided = job.decided.as_ref();
    Some(PriorApproval {
        job_id: job.id().to_string(),
        topic: job.request.topic.to_string(),
        tenant: job.request.tenant.to_string(),
        decision: status.as_str().to_owned(),
        resolved_by: decided.map(|decided| decided.by.clone()),
        resolved_at: decided.map(|decided| decided.at.micros()),
        was_approved: decided.is_some_and(|decided| decided.choice == Choice::Approve),
    })
}

pub fn rollback_hint(request: &Request) -> RollbackHint {
    let has_compensation = !request.compensation.is_empty();
    let hint = if has_compensation {
        "The job brought a compensation that undoes it."
    } else {
        "The job brought no compensation: what it does stays done."
    };
    RollbackHint { has_compensation, hint: hint.to_owned() }
}

pub fn snapshot_summary(approval: &Approval, in_force: String) -> SnapshotSummary {
    SnapshotSummary {
        asked_under: approval.policy_snapshot.clone(),
        is_current: approval.policy_snapshot == in_force,
        in_force,
        rule_id: approval.policy_rule_id.clone(),
        reason: approval.policy_reason.clone(),
    }
}

/// What a person says, put into the answer of whoever it is.
pub fn approval_answer(body: Resolution, answer: Answer) -> Result<Answer, ApiError> {
    for (field, words) in [("reason", &body.reason), ("note", &body.note)] {
        if words.as_ref().is_some_and(|words| words.len() > WORDS_LEN_MAX) {
            return Err(ApiError::field(field, format!("is longer than {WORDS_LEN_MAX} bytes")));
        }
    }
    let words = [body.reason, body.note].into_iter().flatten().filter(|words| !words.is_empty());
    Ok(Answer {
        comment: words.collect::<Vec<_>>().join("; "),
        job_hash: body.job_hash.filter(|hash| !hash.is_empty()),
        policy_snapshot: body.policy_snapshot.filter(|snapshot| !snapshot.is_empty()),
        ..answer
    })
}

pub fn approved_now(job: &Job) -> Approved {
    let (job_id, trace_id) = (job.id().to_string(), job.request.trace_id.clone());
    Approved { job_id, trace_id, status: None, approved_by: None, approved_at: None }
}

pub fn approved_before(job: &Job) -> Approved {
    let (approved_by, approved_at) = who_and_when(job.decided.as_ref());
    Approved { status: Some("already_approved".to_owned()), approved_by, approved_at, ..approved_now(job) }
}

pub fn rejected_now(job: &Job) -> Rejected {
    Rejected { job_id: job.id().to_string(), status: None, rejected_by: None, rejected_at: None }
}

pub fn rejected_before(job: &Job) -> Rejected {
    let (rejected_by, rejected_at) = who_and_when(job.decided.as_ref());
    Rejected { status: Some("already_rejected".to_owned()), rejected_by, rejected_at, ..rejected_now(job) }
}

fn who_and_when(decided: Option<&Decided>) -> (Option<String>, Option<i64>) {
    decided.map(|decided| (decided.by.clone(), decided.at.micros())).unzip()
}
