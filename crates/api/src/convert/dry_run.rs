//! A run that is not run: what would become of each step, and what policy says of it.

use super::json;
use reveille_api_types::dry_run::{DryPolicy, DryRunReply, DryStepRecord};
use reveille_core::flow::{Fate, Flow, Forecast, Foreseen};
use reveille_core::policy::{Decision, Verdict};
use reveille_engine::{DryRunReport, DryStep, Judged};
use std::collections::BTreeSet;

pub fn dry_run_reply(dry: DryRunReport) -> DryRunReply {
    let flow = dry.flow;
    DryRunReply {
        workflow_id: flow.id.to_string(),
        version: (flow.version > 0).then_some(flow.version),
        steps: dry.steps.into_iter().map(|foreseen| step(&flow, foreseen)).collect(),
        warnings: dry.warnings,
        estimated_duration_sec: dry.least_ms as f64 / 1000.0,
    }
}

fn step(flow: &Flow, step: DryStep) -> DryStepRecord {
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
    DryStepRecord {
        step_id: step.to_string(),
        kind: kind.to_owned(),
        status: status.to_owned(),
        error,
        begins_on,
        condition: condition.and_then(known),
        rounds: rounds.and_then(known),
        input,
        input_on,
        output,
        policy: judged.and_then(policy),
        compensation_policy: undo.and_then(policy),
        run: run.map(|run| Box::new(dry_run_reply(*run))),
    }
}

fn policy(judged: Judged) -> Option<DryPolicy> {
    let Judged { verdict, round, unread } = judged;
    let Verdict { decision, reason, rule_id, snapshot, constraints, remediations } = verdict.ok()?;
    Some(DryPolicy {
        decision: decision.as_str().to_owned(),
        reason,
        rule_id,
        policy_snapshot: snapshot,
        constraints: constraints.as_ref().map(json),
        approval_required: decision == Decision::RequireApproval,
        remediations: remediations.iter().map(json).collect(),
        round,
        is_unread: unread,
    })
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
