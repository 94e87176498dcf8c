//! What policy is asked and what it says: the reference's names, in its protojson spelling.

use super::json;
use crate::ApiError;
use reveille_api_types::policy::{
    DecisionRecord, Facts, PolicyAnswer, PolicyCheck, ReplayDifference, ReplayReply, TraceLine,
};
use reveille_core::approval::job_hash;
use reveille_core::id::{JobId, TenantId, Topic};
use reveille_core::job::Job;
use reveille_core::policy::{Decision, Line, RecordedVerdict, Trace, Verdict};
use reveille_core::request::{Priority, Request};
use reveille_engine::{Difference, Replay};

/// The tenant that is named, if one is.
pub fn named_tenant(check: &PolicyCheck) -> Option<&str> {
    [&check.tenant, &check.org_id, &check.meta.tenant_id]
        .into_iter()
        .map(String::as_str)
        .find(|name| !name.is_empty())
}

/// The request that policy is to judge.
pub fn policy_request(check: PolicyCheck, tenant: TenantId) -> Result<Request, ApiError> {
    let id = if check.job_id.is_empty() { "what-if" } else { check.job_id.as_str() };
    let id = JobId::parse(id)?;
    let mut request = Request::plain(id.as_str(), "job.default");
    request.tenant = tenant;
    request.topic = Topic::parse(&check.topic)?;
    if !check.priority.is_empty() {
        let word = check.priority.strip_prefix("JOB_PRIORITY_").unwrap_or(&check.priority);
        request.priority = Priority::parse(word).ok_or_else(|| {
            ApiError::field("priority", format!("{word:?} is none of batch, interactive, critical"))
        })?;
    }
    request.labels = check.meta.labels;
    request.labels.extend(check.labels);
    request.actor.principal_id = check.principal_id;
    request.actor.actor_id = check.meta.actor_id;
    request.actor.actor_type = check.meta.actor_type;
    request.actor.team = check.team_id;
    request.needs.capability = check.meta.capability;
    request.needs.risk_tags = check.meta.risk_tags;
    request.needs.requires = check.meta.requires;
    request.needs.pack_id = check.meta.pack_id;
    request.budget.max_input_tokens = check.budget.max_input_tokens;
    request.budget.max_output_tokens = check.budget.max_output_tokens;
    request.budget.max_total_tokens = check.budget.max_total_tokens;
    request.budget.deadline_ms = check.budget.deadline_ms;
    request.place.workflow_id = check.workflow_id;
    request.place.memory_id = check.memory_id;
    request.check()?;
    Ok(request)
}

pub fn policy_answer(verdict: Verdict, trace: Trace) -> PolicyAnswer {
    let line = |line: Line| TraceLine {
        rule_id: line.rule_id,
        tier: line.tier.to_owned(),
        decision: line.decision.to_owned(),
        matched: line.matched,
        why: line.why,
    };
    let approval_required = verdict.decision == Decision::RequireApproval;
    PolicyAnswer {
        decision: decision_type(verdict.decision).to_owned(),
        reason: verdict.reason,
        policy_snapshot: verdict.snapshot,
        rule_id: verdict.rule_id,
        constraints: verdict.constraints.as_ref().map(json),
        approval_required,
        approval_ref: String::new(),
        remediations: verdict.remediations.iter().map(json).collect(),
        trace: trace.lines.into_iter().map(line).collect(),
    }
}

fn decision_type(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "DECISION_TYPE_ALLOW",
        Decision::Deny => "DECISION_TYPE_DENY",
        Decision::RequireApproval => "DECISION_TYPE_REQUIRE_HUMAN",
        Decision::Throttle => "DECISION_TYPE_THROTTLE",
        Decision::AllowWithConstraints => "DECISION_TYPE_ALLOW_WITH_CONSTRAINTS",
    }
}

pub fn decision_record(job: &Job, recorded: &RecordedVerdict) -> DecisionRecord {
    let verdict = &recorded.verdict;
    let approval_required = verdict.decision == Decision::RequireApproval;
    let approval_ref = if approval_required { job.id().to_string() } else { String::new() };
    DecisionRecord {
        decision: verdict.decision.as_str().to_owned(),
        reason: verdict.reason.clone(),
        rule_id: verdict.rule_id.clone(),
        policy_snapshot: verdict.snapshot.clone(),
        constraints: verdict.constraints.as_ref().map(json),
        approval_required,
        approval_ref,
        remediations: verdict.remediations.iter().map(json).collect(),
        checked_at: recorded.checked_at.micros(),
        checked_at_text: recorded.checked_at.rfc3339(),
        approved_by: job.approved_by().map(str::to_owned),
        job_hash: job_hash(&job.request),
        facts: facts(&job.request),
    }
}

fn facts(request: &Request) -> Facts {
    let (needs, actor) = (&request.needs, &request.actor);
    Facts {
        tenant: request.tenant.to_string(),
        topic: request.topic.to_string(),
        priority: request.priority.as_str().to_owned(),
        labels: request.labels.clone(),
        capability: needs.capability.clone(),
        risk_tags: needs.risk_tags.clone(),
        requires: needs.requires.clone(),
        pack_id: needs.pack_id.clone(),
        principal_id: actor.principal_id.clone(),
        actor_id: actor.actor_id.clone(),
        actor_type: actor.actor_type.clone(),
        team: actor.team.clone(),
        workflow_id: request.place.workflow_id.clone(),
        deadline_ms: request.budget.deadline_ms,
    }
}

pub fn replay_reply(replay: Replay) -> ReplayReply {
    let difference = |found: Difference| ReplayDifference {
        job_id: found.job.to_string(),
        tenant: found.tenant.to_string(),
        topic: found.topic.to_string(),
        was: found.was.decision.as_str().to_owned(),
        was_rule: found.was.rule_id,
        would_be: found.would_be.decision.as_str().to_owned(),
        would_be_rule: found.would_be.rule_id,
        reason: found.would_be.reason,
    };
    ReplayReply {
        snapshot: replay.snapshot,
        examined: replay.examined,
        changed: replay.changed,
        partial: replay.is_partial,
        differences: replay.differences.into_iter().map(difference).collect(),
    }
}
