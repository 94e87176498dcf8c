//! A run that is not run, over HTTP: the reference's names, and beside them what policy says of each step.

use reveille_core::flow::{Fate, Flow, Forecast, Foreseen, WorkflowDocument};
use reveille_core::policy::{Constraints, Decision, Remediation, Verdict};
use reveille_engine::{DryRun, DryStep, Judged};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use utoipa::ToSchema;

#[derive(Deserialize, Default, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DryRunBody {
    #[schema(value_type = Value)]
    pub input: Option<Json>,
    /// Understood by the reference and of no effect here: policy does not look at it.
    #[schema(value_type = Object)]
    pub environment: Option<Json>,
    /// Ours: a document to go through instead of the one that is saved under this id. It is not saved.
    #[schema(value_type = Object)]
    pub workflow: Option<WorkflowDocument>,
}

#[derive(Serialize, ToSchema)]
pub struct DryRunReply {
    pub workflow_id: String,
    /// Nothing for a document that is not saved.
    pub version: Option<u32>,
    /// In an order in which they could run.
    pub steps: Vec<DryStepRecord>,
    pub warnings: Vec<String>,
    /// What the delays that are known add up to; how long workers take is not known.
    pub estimated_duration_sec: f64,
}

#[derive(Serialize, ToSchema)]
pub struct DryStepRecord {
    pub step_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it would come to stand: `running`, `waiting` (for a person or a rate), `denied`, `failed`, `skipped`, or `pending`
    /// if it is not known whether it begins.
    pub status: &'static str,
    /// Why it would be skipped or fail.
    pub error: String,
    /// What it rests on whether it begins.
    pub begins_on: Vec<String>,
    /// What its condition says, if that is known.
    pub condition: Option<bool>,
    /// How many rounds a `for_each` would have, if that is known.
    pub rounds: Option<usize>,
    /// What it would be given (in its first round), if that is known.
    #[schema(value_type = Value)]
    pub input: Option<Json>,
    /// What its input rests on, if it is not known.
    pub input_on: Vec<String>,
    /// What it would give, if that needs no worker.
    #[schema(value_type = Value)]
    pub output: Option<Json>,
    /// Nothing for a step that is no job, or that would be skipped.
    pub policy: Option<DryPolicy>,
    /// What policy would say of the job that undoes it, if it had to be undone.
    pub compensation_policy: Option<DryPolicy>,
    /// Of a step that is another run: how that would go. Of several rounds, the first whose input is known.
    #[schema(no_recursion)]
    pub run: Option<Box<DryRunReply>>,
}

/// What policy would say now; of several rounds, the strictest.
#[derive(Serialize, ToSchema)]
pub struct DryPolicy {
    pub decision: &'static str,
    pub reason: String,
    pub rule_id: String,
    pub policy_snapshot: String,
    #[schema(value_type = Option<Object>)]
    pub constraints: Option<Box<Constraints>>,
    pub approval_required: bool,
    #[schema(value_type = Vec<Object>)]
    pub remediations: Vec<Remediation>,
    /// Of which round.
    pub round: Option<u32>,
    /// Rules will read the input, and it is not known yet.
    pub is_unread: bool,
}

impl DryRunReply {
    pub fn of(dry: DryRun) -> Self {
        let flow = dry.flow;
        Self {
            workflow_id: flow.id.to_string(),
            version: (flow.version > 0).then_some(flow.version),
            steps: dry.steps.into_iter().map(|step| DryStepRecord::of(&flow, step)).collect(),
            warnings: dry.warnings,
            estimated_duration_sec: dry.least_ms as f64 / 1000.0,
        }
    }
}

impl DryStepRecord {
    fn of(flow: &Flow, step: DryStep) -> Self {
        let DryStep { foreseen, judged, undo, run } = step;
        let kind = flow.step(&foreseen.step).kind.as_str();
        let status = status(kind, &foreseen, judged.as_ref());
        let refused = judged.as_ref().and_then(|judged| judged.verdict.as_ref().err()).cloned();
        let Foreseen { step, fate, condition, inputs, rounds, output, .. } = foreseen;
        let (error, begins_on) = match fate {
            Fate::Begins => (refused.unwrap_or_default(), Vec::new()),
            Fate::Depends(on) => (refused.unwrap_or_default(), list(on)),
            Fate::Skipped(words) | Fate::Fails(words) => (words, Vec::new()),
        };
        let (input, input_on) = match inputs.into_iter().next() {
            Some(Forecast::Yes(input)) => (Some(input), Vec::new()),
            Some(Forecast::Depends(on)) => (None, list(on)),
            Some(Forecast::Fails(_)) | None => (None, Vec::new()),
        };
        Self {
            step_id: step.to_string(),
            kind: kind.to_owned(),
            status,
            error,
            begins_on,
            condition: condition.and_then(known),
            rounds: rounds.and_then(known),
            input,
            input_on,
            output,
            policy: judged.and_then(DryPolicy::of),
            compensation_policy: undo.and_then(DryPolicy::of),
            run: run.map(|run| Box::new(DryRunReply::of(*run))),
        }
    }
}

impl DryPolicy {
    fn of(judged: Judged) -> Option<Self> {
        let Judged { verdict, round, unread } = judged;
        let Verdict { decision, reason, rule_id, snapshot, constraints, remediations } = verdict.ok()?;
        Some(Self {
            decision: decision.as_str(),
            reason,
            rule_id,
            policy_snapshot: snapshot,
            constraints,
            approval_required: decision == Decision::RequireApproval,
            remediations,
            round,
            is_unread: unread,
        })
    }
}

fn status(kind: &str, foreseen: &Foreseen, judged: Option<&Judged>) -> &'static str {
    match &foreseen.fate {
        Fate::Skipped(_) => return "skipped",
        Fate::Fails(_) => return "failed",
        Fate::Begins | Fate::Depends(_) => {}
    }
    match judged.map(|judged| &judged.verdict) {
        Some(Err(_)) => "failed",
        Some(Ok(verdict)) if verdict.decision == Decision::Deny => "denied",
        _ if matches!(foreseen.fate, Fate::Depends(_)) => "pending",
        Some(Ok(verdict)) if !verdict.decision.lets_run() => "waiting",
        _ if kind == "approval" => "waiting",
        _ => "running",
    }
}

fn list(on: BTreeSet<String>) -> Vec<String> {
    on.into_iter().collect()
}

fn known<T>(known: Forecast<T>) -> Option<T> {
    match known {
        Forecast::Yes(value) => Some(value),
        Forecast::Depends(_) | Forecast::Fails(_) => None,
    }
}
