//! From the core to packets.

use super::SENDER;
use crate::cap::{self, BusPacket, bus_packet::Payload};
use crate::packet::envelope;
use prost::Message;
use reveille_core::flow::{Level, NodeKey, RunHead};
use reveille_core::job::{Job, State};
use reveille_core::policy::Constraints;
use reveille_core::request::{Budget, Priority, Request};
use reveille_core::time::Millis;

/// The packet that dispatches a job to a worker; nothing unless the job is at an attempt.
pub fn dispatch_packet(job: &Job, now: Millis) -> Option<BusPacket> {
    let attempt = job.attempt()?;
    let request = &*job.request;
    let constraints = job.last_verdict().and_then(|recorded| recorded.verdict.constraints.as_deref());
    let mut env = request.env.clone();
    let mut deadline_ms = request.budget.deadline_ms;
    if let Some(constraints) = constraints {
        env.extend(constraint_env(constraints));
        let allowed = constraints.budgets.max_runtime_ms;
        if allowed > 0 {
            deadline_ms = if deadline_ms > 0 { deadline_ms.min(allowed) } else { allowed };
        }
    }
    let packet = cap::JobRequest {
        job_id: request.id.to_string(),
        topic: request.topic.to_string(),
        priority: priority(request.priority),
        context_ptr: request.context_ptr.clone(),
        adapter_id: request.place.adapter_id.clone(),
        env,
        parent_job_id: request.place.parent_job_id.clone(),
        workflow_id: request.place.workflow_id.clone(),
        step_index: request.place.step_index,
        memory_id: request.place.memory_id.clone(),
        context_hints: Some(cap::ContextHints {
            max_input_tokens: request.hints.max_input_tokens,
            allow_summarization: request.hints.allow_summarization,
            allow_retrieval: request.hints.allow_retrieval,
            tags: request.hints.tags.clone(),
        }),
        budget: Some(budget(&Budget { deadline_ms, ..request.budget })),
        tenant_id: request.tenant.to_string(),
        principal_id: request.actor.principal_id.clone(),
        labels: request.labels.clone(),
        meta: Some(metadata(request)),
        compensation: cap::Compensation::decode(request.compensation.clone())
            .ok()
            .filter(|_| !request.compensation.is_empty()),
        identity: None,
        dispatch: Some(cap::DispatchIdentity {
            dispatch_id: format!("{}:{}", request.id, attempt.number),
            attempt: u64::from(attempt.number),
            assigned_worker_id: attempt.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
        }),
        context_ref: None,
    };
    Some(envelope(SENDER, &request.trace_id, now, Payload::JobRequest(packet)))
}

pub fn priority(priority: Priority) -> i32 {
    match priority {
        Priority::Critical => cap::JobPriority::Critical as i32,
        Priority::Interactive => cap::JobPriority::Interactive as i32,
        Priority::Batch => cap::JobPriority::Batch as i32,
    }
}

pub fn budget(budget: &Budget) -> cap::Budget {
    cap::Budget {
        max_input_tokens: budget.max_input_tokens,
        max_output_tokens: budget.max_output_tokens,
        max_total_tokens: budget.max_total_tokens,
        deadline_ms: budget.deadline_ms,
    }
}

pub fn metadata(request: &Request) -> cap::JobMetadata {
    cap::JobMetadata {
        tenant_id: request.tenant.to_string(),
        actor_id: request.actor.actor_id.clone(),
        actor_type: match request.actor.actor_type.as_str() {
            "human" => cap::ActorType::Human as i32,
            "service" => cap::ActorType::Service as i32,
            _ => 0,
        },
        idempotency_key: request.idempotency_key.clone().unwrap_or_default(),
        capability: request.needs.capability.clone(),
        risk_tags: request.needs.risk_tags.clone(),
        requires: request.needs.requires.clone(),
        pack_id: request.needs.pack_id.clone(),
        labels: request.labels.clone(),
    }
}

/// Tells workers to stop.
pub fn cancel_packet(job: &Job, now: Millis) -> BusPacket {
    let reason = job.ending().map(|ending| ending.words.clone()).unwrap_or_default();
    let cancel = cap::JobCancel {
        job_id: job.id().to_string(),
        reason,
        requested_by: SENDER.to_owned(),
        dispatch: None,
        identity: None,
    };
    envelope(SENDER, &job.request.trace_id, now, Payload::JobCancel(cancel))
}

/// The dead-letter notice.
pub fn dead_letter_packet(job: &Job, now: Millis) -> BusPacket {
    let ending = job.ending();
    let result = cap::JobResult {
        job_id: job.id().to_string(),
        status: match job.state() {
            State::Denied => cap::JobStatus::Denied as i32,
            State::Timeout => cap::JobStatus::Timeout as i32,
            _ => cap::JobStatus::Failed as i32,
        },
        error_code: ending.and_then(|ending| ending.reason).map_or("", |reason| reason.code()).to_owned(),
        error_message: ending.map(|ending| ending.words.clone()).unwrap_or_default(),
        // The protocol wants a worker here, equal to the sender.
        worker_id: SENDER.to_owned(),
        ..cap::JobResult::default()
    };
    envelope(SENDER, &job.request.trace_id, now, Payload::JobResult(result))
}

/// A run's notification to its subscribers. It reports no failure, so it has no error code, which the newer form of
/// an alert would require.
#[expect(deprecated, reason = "the older form is still valid")]
pub fn alert_packet(head: &RunHead, node: &NodeKey, level: Level, message: &str, now: Millis) -> BusPacket {
    let details = [
        ("tenant_id", head.tenant.to_string()),
        ("workflow_id", head.workflow.to_string()),
        ("run_id", head.id.to_string()),
        ("step_id", node.to_string()),
    ];
    let alert = cap::SystemAlert {
        level: level.to_string(),
        message: message.to_owned(),
        component: SENDER.to_owned(),
        code: "workflow.notify".to_owned(),
        details: details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        trace_id: head.id.to_string(),
        ..cap::SystemAlert::default()
    };
    envelope(SENDER, head.id.as_str(), now, Payload::Alert(alert))
}

/// What policy requires of the worker, under the names that the reference's workers read.
fn constraint_env(constraints: &Constraints) -> Vec<(String, String)> {
    let mut env = vec![(
        "CORDUM_POLICY_CONSTRAINTS".to_owned(),
        serde_json::to_string(constraints).unwrap_or_default(),
    )];
    let mut add = |name: &str, value: String| env.push((name.to_owned(), value));
    if !constraints.redaction_level.is_empty() {
        add("CORDUM_REDACTION_LEVEL", constraints.redaction_level.clone());
    }
    let budgets = &constraints.budgets;
    for (name, value) in [
        ("CORDUM_MAX_ARTIFACT_BYTES", budgets.max_artifact_bytes),
        ("CORDUM_MAX_CONCURRENT_JOBS", i64::from(budgets.max_concurrent_jobs)),
        ("CORDUM_MAX_RETRIES", i64::from(budgets.max_retries)),
    ] {
        if value > 0 {
            add(name, value.to_string());
        }
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{decode, encode};
    use reveille_core::id::WorkerId;
    use reveille_core::life::{self, Destination};
    use reveille_core::policy::{Policy, RecordedVerdict};
    use reveille_core::request::Request;

    fn dispatched() -> Job {
        let now = Millis(1);
        let request = Request::plain("j", "job.echo");
        let mut verdict = Policy::builtin().evaluate(&request);
        let mut constraints = Constraints::default();
        constraints.budgets.max_runtime_ms = 500;
        constraints.budgets.max_retries = 2;
        verdict.constraints = Some(Box::new(constraints));
        let job = life::judge(&life::submit(request, now), RecordedVerdict { verdict, checked_at: now }, now)
            .unwrap();
        life::assign(&job, &Destination { worker: Some(WorkerId::known("w")), pool: None }, now).unwrap()
    }

    #[test]
    fn a_dispatch_is_a_valid_packet_that_names_its_attempt_and_its_constraints() {
        let packet = decode(&encode(&dispatch_packet(&dispatched(), Millis(5)).unwrap())).unwrap();
        let Some(Payload::JobRequest(job)) = packet.payload else { panic!("{packet:?}") };
        assert_eq!(job.dispatch.unwrap().attempt, 1);
        assert_eq!(job.budget.unwrap().deadline_ms, 500);
        assert_eq!(job.env["CORDUM_MAX_RETRIES"], "2");
        assert!(job.env["CORDUM_POLICY_CONSTRAINTS"].contains("max_runtime_ms"));
    }

    #[test]
    fn notices_are_valid_packets() {
        let job = life::cancel(&dispatched(), "ann", "", Millis(2)).unwrap();
        assert!(decode(&encode(&cancel_packet(&job, Millis(3)))).is_ok());
        assert!(decode(&encode(&dead_letter_packet(&job, Millis(3)))).is_ok());
    }
}
