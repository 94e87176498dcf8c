//! Jobs over HTTP, in the reference's shapes.

pub use super::submit::{Remediate, SubmitReply, SubmitRequest};
pub use crate::types::quarantine::OutputSafety;

use reveille_core::job::{Job, Mark};
use reveille_core::policy::RecordedVerdict;
use reveille_core::trace::TraceContext;
use reveille_engine::Explanation;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
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

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct WaitQuery {
    /// How long to wait for the job to end: 30s, 500ms; at most five minutes.
    pub wait: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct JobPage {
    pub items: Vec<JobRecord>,
    /// Nothing on the last page. A page may be short, or empty, and not be the last: for each, 10,000 jobs at most are
    /// looked through.
    pub next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
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
    pub fn of(job: &Job) -> Self {
        let request = &job.request;
        let verdict = job.last_verdict().map(|recorded| &recorded.verdict);
        let said = |part: fn(&reveille_core::policy::Verdict) -> &str| {
            verdict.map(part).unwrap_or_default().to_owned()
        };
        Self {
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
}

#[derive(Serialize, ToSchema)]
pub struct JobDetail {
    #[serde(flatten)]
    pub record: JobRecord,
    /// Where the job stands in its trace (W3C Trace Context): the trace's id, and the job's span in it.
    pub traceparent: String,
    pub context_ptr: String,
    /// The input, up to 256 KiB.
    #[schema(value_type = Option<Value>)]
    pub context: Option<Box<RawValue>>,
    pub result_ptr: String,
    /// The output, up to 256 KiB.
    #[schema(value_type = Option<Value>)]
    pub result: Option<Box<RawValue>>,
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

#[derive(Serialize, ToSchema)]
pub struct Progress {
    pub percent: u8,
    pub message: String,
}

#[derive(Serialize, ToSchema)]
pub struct TimelineEntry {
    pub at: i64,
    pub event: String,
    pub state: String,
    pub worker_id: String,
    pub note: String,
}

#[derive(Serialize, ToSchema)]
pub struct Decision {
    pub decision: String,
    pub reason: String,
    pub rule_id: String,
    pub policy_snapshot: String,
    pub checked_at: i64,
}

impl JobDetail {
    pub fn of(
        job: &Job,
        trace: &TraceContext,
        context: Option<Box<RawValue>>,
        result: Option<Box<RawValue>>,
        result_held: bool,
    ) -> Self {
        let ending = job.ending();
        let told = job.attempt().and_then(|attempt| attempt.progress.as_ref());
        let failed = ending.filter(|ending| ending.reason.is_some() || !ending.error_code.is_empty());
        Self {
            traceparent: trace.parent.to_string(),
            context_ptr: job.request.context_ptr.clone(),
            context,
            result_ptr: ending
                .filter(|_| !result_held)
                .map(|ending| ending.result_ptr.clone())
                .unwrap_or_default(),
            result,
            result_held,
            output_safety: job.output.as_deref().map(OutputSafety::of),
            labels: job.request.labels.clone(),
            workflow_id: job.request.place.workflow_id.clone(),
            step_index: job.request.place.step_index,
            parent_job_id: job.request.place.parent_job_id.clone(),
            error_code: ending.map(|ending| ending.error_code.clone()).unwrap_or_default(),
            error_message: failed.map(|ending| ending.words.clone()).unwrap_or_default(),
            reason_code: ending
                .and_then(|ending| ending.reason)
                .map_or("", |reason| reason.code())
                .to_owned(),
            execution_ms: ending.map_or(0, |ending| ending.execution_ms),
            progress: told.map(|told| Progress { percent: told.percent, message: told.message.clone() }),
            timeline: job.marks.iter().map(TimelineEntry::of).collect(),
            decisions: job.verdicts.iter().map(Decision::of).collect(),
            record: JobRecord::of(job),
        }
    }
}

impl TimelineEntry {
    fn of(mark: &Mark) -> Self {
        Self {
            at: mark.at.micros(),
            event: mark.event.to_string(),
            state: mark.state.to_string(),
            worker_id: mark.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
            note: mark.note.clone(),
        }
    }
}

impl Decision {
    fn of(recorded: &RecordedVerdict) -> Self {
        let verdict = &recorded.verdict;
        Self {
            decision: verdict.decision.as_str().to_owned(),
            reason: verdict.reason.clone(),
            rule_id: verdict.rule_id.clone(),
            policy_snapshot: verdict.snapshot.clone(),
            checked_at: recorded.checked_at.micros(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Cancelled {
    pub id: String,
    pub state: String,
    /// Why nothing was cancelled, if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a job is where it is.
#[derive(Serialize, ToSchema)]
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

impl Explained {
    pub fn of(job: &Job, explanation: Explanation) -> Self {
        Self {
            job_id: job.id().to_string(),
            state: job.state().to_string(),
            code: explanation.code.to_owned(),
            explanation: explanation.words,
            since: explanation.since.rfc3339(),
            unblock: explanation.unblock,
        }
    }
}
