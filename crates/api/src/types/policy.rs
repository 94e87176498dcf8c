//! Policy as it is asked and answered over HTTP: the reference's names, in its protojson spelling.

use crate::ApiError;
use reveille_core::approval::job_hash;
use reveille_core::id::{JobId, TenantId, Topic};
use reveille_core::job::Job;
use reveille_core::policy::{Constraints, Decision, Line, RecordedVerdict, Remediation, Trace, Verdict};
use reveille_core::request::{Priority, Request};
use reveille_engine::{Difference, Replay};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A job that might be asked for.
#[derive(Deserialize, ToSchema, Default)]
#[serde(default)]
pub struct PolicyCheck {
    pub job_id: String,
    /// `job.…`
    pub topic: String,
    /// If given, it must be one that the key may see.
    pub tenant: String,
    pub org_id: String,
    pub team_id: String,
    pub workflow_id: String,
    pub step_id: String,
    pub principal_id: String,
    pub priority: String,
    pub labels: BTreeMap<String, String>,
    pub memory_id: String,
    pub budget: CheckBudget,
    pub meta: CheckMeta,
    /// Understood by the reference and of no effect here.
    #[schema(value_type = Object)]
    pub effective_config: serde_json::Value,
    pub estimated_cost: f64,
    #[schema(value_type = Object)]
    pub action: serde_json::Value,
}

#[derive(Serialize, Deserialize, ToSchema, Default)]
#[serde(default)]
pub struct CheckBudget {
    pub max_input_tokens: i64,
    pub max_output_tokens: i64,
    pub max_total_tokens: i64,
    pub deadline_ms: i64,
}

#[derive(Serialize, Deserialize, ToSchema, Default)]
#[serde(default)]
pub struct CheckMeta {
    pub tenant_id: String,
    pub actor_id: String,
    pub actor_type: String,
    pub idempotency_key: String,
    pub capability: String,
    pub risk_tags: Vec<String>,
    pub requires: Vec<String>,
    pub pack_id: String,
    pub labels: BTreeMap<String, String>,
}

impl PolicyCheck {
    /// The tenant that is named, if one is.
    pub fn named_tenant(&self) -> Option<&str> {
        [&self.tenant, &self.org_id, &self.meta.tenant_id]
            .into_iter()
            .map(String::as_str)
            .find(|name| !name.is_empty())
    }

    /// The request that policy is to judge.
    pub fn into_request(self, tenant: TenantId) -> Result<Request, ApiError> {
        let id = if self.job_id.is_empty() { "what-if" } else { self.job_id.as_str() };
        let id = JobId::parse(id)?;
        let mut request = Request::plain(id.as_str(), "job.default");
        request.tenant = tenant;
        request.topic = Topic::parse(&self.topic)?;
        if !self.priority.is_empty() {
            let word = self.priority.strip_prefix("JOB_PRIORITY_").unwrap_or(&self.priority);
            request.priority = Priority::parse(word).ok_or_else(|| {
                ApiError::field("priority", format!("{word:?} is none of batch, interactive, critical"))
            })?;
        }
        request.labels = self.meta.labels;
        request.labels.extend(self.labels);
        request.actor.principal_id = self.principal_id;
        request.actor.actor_id = self.meta.actor_id;
        request.actor.actor_type = self.meta.actor_type;
        request.actor.team = self.team_id;
        request.needs.capability = self.meta.capability;
        request.needs.risk_tags = self.meta.risk_tags;
        request.needs.requires = self.meta.requires;
        request.needs.pack_id = self.meta.pack_id;
        request.budget.max_input_tokens = self.budget.max_input_tokens;
        request.budget.max_output_tokens = self.budget.max_output_tokens;
        request.budget.max_total_tokens = self.budget.max_total_tokens;
        request.budget.deadline_ms = self.budget.deadline_ms;
        request.place.workflow_id = self.workflow_id;
        request.place.memory_id = self.memory_id;
        request.check()?;
        Ok(request)
    }
}

/// What policy says, in the reference's protojson.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAnswer {
    /// `DECISION_TYPE_…`
    pub decision: &'static str,
    pub reason: String,
    pub policy_snapshot: String,
    pub rule_id: String,
    #[schema(value_type = Option<Object>)]
    pub constraints: Option<Box<Constraints>>,
    pub approval_required: bool,
    pub approval_ref: String,
    #[schema(value_type = Vec<Object>)]
    pub remediations: Vec<Remediation>,
    /// Of every rule, in the order of asking, why it matched or did not; only when that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<TraceLine>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceLine {
    pub rule_id: String,
    pub tier: &'static str,
    pub decision: &'static str,
    pub matched: bool,
    pub why: String,
}

impl PolicyAnswer {
    pub fn of(verdict: Verdict, trace: Trace) -> Self {
        let line = |line: Line| TraceLine {
            rule_id: line.rule_id,
            tier: line.tier,
            decision: line.decision,
            matched: line.matched,
            why: line.why,
        };
        let approval_required = verdict.decision == Decision::RequireApproval;
        Self {
            decision: decision_type(verdict.decision),
            reason: verdict.reason,
            policy_snapshot: verdict.snapshot,
            rule_id: verdict.rule_id,
            constraints: verdict.constraints,
            approval_required,
            approval_ref: String::new(),
            remediations: verdict.remediations,
            trace: trace.lines.into_iter().map(line).collect(),
        }
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

/// One decision about a job, with what it saw.
#[derive(Serialize, ToSchema)]
pub struct DecisionRecord {
    pub decision: &'static str,
    pub reason: String,
    pub rule_id: String,
    pub policy_snapshot: String,
    #[schema(value_type = Option<Object>)]
    pub constraints: Option<Box<Constraints>>,
    pub approval_required: bool,
    pub approval_ref: String,
    #[schema(value_type = Vec<Object>)]
    pub remediations: Vec<Remediation>,
    /// Microseconds.
    pub checked_at: i64,
    pub checked_at_text: String,
    /// Who allowed it, if a person did.
    pub approved_by: Option<String>,
    /// Names what was asked for.
    pub job_hash: String,
    pub facts: Facts,
}

/// What policy saw of the job: a request never changes, so these are the facts of every decision about it.
#[derive(Serialize, ToSchema)]
pub struct Facts {
    pub tenant: String,
    pub topic: String,
    pub priority: &'static str,
    pub labels: BTreeMap<String, String>,
    pub capability: String,
    pub risk_tags: Vec<String>,
    pub requires: Vec<String>,
    pub pack_id: String,
    pub principal_id: String,
    pub actor_id: String,
    pub actor_type: String,
    pub team: String,
    pub workflow_id: String,
    pub deadline_ms: i64,
}

impl DecisionRecord {
    pub fn of(job: &Job, recorded: &RecordedVerdict) -> Self {
        let verdict = &recorded.verdict;
        let approval_required = verdict.decision == Decision::RequireApproval;
        let approval_ref = if approval_required { job.id().to_string() } else { String::new() };
        Self {
            decision: verdict.decision.as_str(),
            reason: verdict.reason.clone(),
            rule_id: verdict.rule_id.clone(),
            policy_snapshot: verdict.snapshot.clone(),
            constraints: verdict.constraints.clone(),
            approval_required,
            approval_ref,
            remediations: verdict.remediations.clone(),
            checked_at: recorded.checked_at.micros(),
            checked_at_text: recorded.checked_at.rfc3339(),
            approved_by: job.approved_by().map(str::to_owned),
            job_hash: job_hash(&job.request),
            facts: Facts::of(&job.request),
        }
    }
}

impl Facts {
    fn of(request: &Request) -> Self {
        let (needs, actor) = (&request.needs, &request.actor);
        Self {
            tenant: request.tenant.to_string(),
            topic: request.topic.to_string(),
            priority: request.priority.as_str(),
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
}

/// Another policy, and since when jobs are to be judged by it.
#[derive(Deserialize, ToSchema)]
pub struct ReplayRequest {
    /// The text of a `safety.yaml`.
    pub policy: String,
    /// How far back, such as `24h`, or a time such as `2026-11-15T12:00:00Z`.
    pub since: String,
}

#[derive(Serialize, ToSchema)]
pub struct ReplayReply {
    pub snapshot: String,
    pub examined: usize,
    pub changed: usize,
    /// There were more jobs than are looked at.
    pub partial: bool,
    pub differences: Vec<ReplayDifference>,
}

#[derive(Serialize, ToSchema)]
pub struct ReplayDifference {
    pub job_id: String,
    pub tenant: String,
    pub topic: String,
    pub was: &'static str,
    pub was_rule: String,
    pub would_be: &'static str,
    pub would_be_rule: String,
    pub reason: String,
}

impl ReplayReply {
    pub fn of(snapshot: &str, replay: Replay) -> Self {
        let difference = |found: Difference| ReplayDifference {
            job_id: found.job.to_string(),
            tenant: found.tenant.to_string(),
            topic: found.topic.to_string(),
            was: found.was.decision.as_str(),
            was_rule: found.was.rule_id,
            would_be: found.would_be.decision.as_str(),
            would_be_rule: found.would_be.rule_id,
            reason: found.would_be.reason,
        };
        Self {
            snapshot: snapshot.to_owned(),
            examined: replay.examined,
            changed: replay.changed,
            partial: replay.is_partial,
            differences: replay.differences.into_iter().map(difference).collect(),
        }
    }
}
