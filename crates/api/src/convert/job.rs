//! Jobs, and why they are where they are.

use super::output_safety;
use crate::jobs::inline;
use reveille_api_types::job::{Decision, Explained, JobDetail, JobRecord, Progress, TimelineEntry};
use reveille_core::job::{Job, Mark};
use reveille_core::policy::RecordedVerdict;
use reveille_core::trace::TraceContext;
use reveille_engine::{BlobRead, Explanation};

pub fn job_record(job: &Job) -> JobRecord {
    let request = &job.request;
    let verdict = job.last_verdict().map(|recorded| &recorded.verdict);
    let said =
        |part: fn(&reveille_core::policy::Verdict) -> &str| verdict.map(part).unwrap_or_default().to_owned();
    JobRecord {
        id: job.id().to_string(),
        trace_id: request.trace_id.clone(),
        state: job.state().to_string(),
        topic: request.topic.to_string(),
        tenant: request.tenant.to_string(),
        priority: request.priority.as_str().to_owned(),
        updated_at: job.updated_at.micros(),
        created_at: job.created_at.micros(),
        attempts: job.attempts.len(),
        worker_id: job.worker().map(ToString::to_string).unwrap_or_default(),
        team: request.actor.team.clone(),
        principal: request.actor.principal_id.clone(),
        actor_id: request.actor.actor_id.clone(),
        actor_type: request.actor.actor_type.clone(),
        idempotency_key: request.idempotency_key.clone().unwrap_or_default(),
        capability: request.needs.capability.clone(),
        risk_tags: request.needs.risk_tags.clone(),
        requires: request.needs.requires.clone(),
        pack_id: request.needs.pack_id.clone(),
        safety_decision: said(|verdict| verdict.decision.as_str()),
        safety_reason: said(|verdict| &verdict.reason),
        safety_rule_id: said(|verdict| &verdict.rule_id),
        safety_snapshot: said(|verdict| &verdict.snapshot),
        deadline_unix: job.deadline().map_or(0, reveille_core::time::Millis::micros),
        failure_reason: job.ending().map(|ending| ending.words.clone()).unwrap_or_default(),
    }
}

pub fn job_detail(job: &Job, trace: &TraceContext, context: &BlobRead, result: &BlobRead) -> JobDetail {
    let ending = job.ending();
    let result_held = *result == BlobRead::Held;
    let told = job.attempt().and_then(|attempt| attempt.progress.as_ref());
    let failed = ending.filter(|ending| ending.reason.is_some() || !ending.error_code.is_empty());
    JobDetail {
        traceparent: trace.parent.to_string(),
        context_ptr: job.request.context_ptr.clone(),
        context: inline(context).into(),
        context_availability: context.as_str().to_owned(),
        result_ptr: ending
            .filter(|_| !result_held)
            .map(|ending| ending.result_ptr.clone())
            .unwrap_or_default(),
        result: inline(result).into(),
        result_availability: result.as_str().to_owned(),
        result_held,
        output_safety: job.output.as_deref().map(output_safety),
        labels: job.request.labels.clone(),
        workflow_id: job.request.place.workflow_id.clone(),
        step_index: job.request.place.step_index,
        parent_job_id: job.request.place.parent_job_id.clone(),
        error_code: ending.map(|ending| ending.error_code.clone()).unwrap_or_default(),
        error_message: failed.map(|ending| ending.words.clone()).unwrap_or_default(),
        reason_code: ending.and_then(|ending| ending.reason).map_or("", |reason| reason.code()).to_owned(),
        execution_ms: ending.map_or(0, |ending| ending.execution_ms),
        progress: told.map(|told| Progress { percent: told.percent, message: told.message.clone() }),
        timeline: job.marks.iter().map(timeline_entry).collect(),
        decisions: job.verdicts.iter().map(decision).collect(),
        record: job_record(job),
    }
}

fn timeline_entry(mark: &Mark) -> TimelineEntry {
    TimelineEntry {
        at: mark.at.micros(),
        event: mark.event.to_string(),
        state: mark.state.to_string(),
        worker_id: mark.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
        note: mark.note.clone(),
    }
}

fn decision(recorded: &RecordedVerdict) -> Decision {
    let verdict = &recorded.verdict;
    Decision {
        decision: verdict.decision.as_str().to_owned(),
        reason: verdict.reason.clone(),
        rule_id: verdict.rule_id.clone(),
        policy_snapshot: verdict.snapshot.clone(),
        checked_at: recorded.checked_at.micros(),
    }
}

pub fn explained(job: &Job, explanation: Explanation) -> Explained {
    Explained {
        job_id: job.id().to_string(),
        state: job.state().to_string(),
        code: explanation.code.to_owned(),
        explanation: explanation.words,
        since: explanation.since.rfc3339(),
        unblock: explanation.unblock,
    }
}
