//! What policy would say of the jobs of a run that is not run.

use super::{DryStep, Judged, Left, Workflows};
use crate::workflows::rollback::{self, rollback_id};
use crate::workflows::send;
use bytes::Bytes;
use reveille_core::flow::{
    Compensation, Fate, Flow, Forecast, Foreseen, Node, NodeKey, RunHead, Step, StepKind, StepState,
    UNDO_STEP, Undoing, job_id,
};
use reveille_core::id::StepId;
use reveille_core::policy::Decision;
use reveille_core::request::Request;
use reveille_kernel::Purpose;
use reveille_kernel::convert::SentInput;
use serde_json::{Value as Json, json};
use std::sync::Arc;

impl Workflows {
    /// What policy would say of a step's job; of several rounds, the strictest answer is the step's.
    pub(super) async fn would_be_judged(
        &self,
        head: &RunHead,
        step: &Step,
        foreseen: &Foreseen,
        left: &mut Left,
    ) -> Option<Judged> {
        if !matches!(step.kind, StepKind::Worker(_) | StepKind::Approval) {
            return None;
        }
        let request = |round: Option<u32>, _: &Forecast<Json>| {
            let key = NodeKey { step: step.id.clone(), round };
            let node = Node { attempt: 1, ..Node::new(StepState::Pending, self.runtime.now()) };
            Some(send::request(head, step, &key, &node, &job_id(&head.id, &key, 1)))
        };
        self.strictest(foreseen, &foreseen.inputs, left, request).await
    }

    /// The same of the job that undoes it.
    pub(super) async fn undo_would_be_judged(
        &self,
        head: &RunHead,
        flow: &Flow,
        foreseen: &Foreseen,
        left: &mut Left,
    ) -> Option<Judged> {
        if matches!(foreseen.fate, Fate::Fails(_)) {
            return None;
        }
        let rollback = rollback::head(rollback_id(&head.id), head, flow.version, self.runtime.now());
        let key = NodeKey::round(&StepId::known(UNDO_STEP), 0);
        let id = job_id(&rollback.id, &key, 1);
        let request = |round: Option<u32>, input: &Forecast<Json>| {
            let node = NodeKey { step: foreseen.step.clone(), round };
            let input = if let Forecast::Yes(input) = input { input.clone() } else { Json::Null };
            let undo = Compensation { node, job: None, input, problem: String::new(), client: None };
            let entry = Arc::new(json!(Undoing::of(flow, &undo)?));
            let node =
                Node { attempt: 1, input: Some(entry), ..Node::new(StepState::Pending, self.runtime.now()) };
            rollback::request(&rollback, &head.id, &key, &node, &id).ok().map(|(request, _)| request)
        };
        self.strictest(foreseen, &foreseen.undo_inputs, left, request).await
    }

    async fn strictest(
        &self,
        foreseen: &Foreseen,
        inputs: &[Forecast<Json>],
        left: &mut Left,
        request: impl Fn(Option<u32>, &Forecast<Json>) -> Option<Request>,
    ) -> Option<Judged> {
        let has_rounds = matches!(foreseen.rounds, Some(Forecast::Yes(_)));
        let mut strictest: Option<Judged> = None;
        for (input, round) in inputs.iter().zip(0u32..) {
            let Some(fewer) = left.asked.checked_sub(1) else { break };
            left.asked = fewer;
            let round = has_rounds.then_some(round);
            let judged = self.would_say_of(&request(round, input)?, round, input).await;
            if strictest.as_ref().is_none_or(|before| rank(&judged) > rank(before)) {
                strictest = Some(judged);
            }
        }
        strictest
    }

    async fn would_say_of(&self, request: &Request, round: Option<u32>, input: &Forecast<Json>) -> Judged {
        if let Err(bad) = request.check() {
            return Judged { verdict: Err(format!("its job would be refused: {bad}")), round, unread: false };
        }
        let (said, unread) = if let Forecast::Yes(input) = input {
            let content = Bytes::from(input.to_string());
            let len = content.len() as i64;
            let said = self
                .jobs
                .policy()
                .check_for_others(request, SentInput { content, len }, Purpose::Simulate)
                .await;
            (said.map(|(verdict, _)| verdict), false)
        } else {
            let unread = self.runtime.rules().policy.reads_input(request);
            (self.jobs.policy().evaluate(request, Purpose::Simulate).await, unread)
        };
        let verdict = said.map_err(|problem| format!("policy could not be asked: {problem}"));
        Judged { verdict, round, unread }
    }
}

/// How much stands in the way.
fn rank(judged: &Judged) -> u8 {
    match &judged.verdict {
        Ok(verdict) => match verdict.decision {
            Decision::Allow => 0,
            Decision::AllowWithConstraints => 1,
            Decision::Throttle => 2,
            Decision::RequireApproval => 3,
            Decision::Deny => 5,
        },
        Err(_) => 4,
    }
}

/// What whoever starts the run should know of a step, in words.
pub(super) fn warnings(step: &DryStep) -> Vec<String> {
    let mut words = Vec::new();
    if let Fate::Fails(problem) = &step.foreseen.fate {
        words.push(format!("it would fail: {problem}"));
    }
    words.extend(step.judged.iter().flat_map(|judged| of_policy(judged, "it", "its input")));
    let undo = step.undo.iter().flat_map(|judged| of_policy(judged, "what undoes it", "what undoes it"));
    words.extend(undo);
    let inner = step.run.iter().flat_map(|run| run.warnings.iter().map(|words| (&run.flow.id, words)));
    words.extend(inner.map(|(id, words)| format!("in {id}: {words}")));
    words.into_iter().map(|words| format!("step {}: {words}", step.foreseen.step)).collect()
}

fn of_policy(judged: &Judged, what: &str, read: &str) -> Vec<String> {
    let mut words = Vec::new();
    let round = judged.round.map_or_else(String::new, |round| format!("round {round}: "));
    match &judged.verdict {
        Ok(verdict) if verdict.decision == Decision::Deny => {
            words.push(format!("{round}policy would deny {what}: {}", verdict.reason));
        }
        Ok(_) => {}
        Err(problem) => words.push(format!("{round}{problem}")),
    }
    if judged.unread {
        words.push(format!("policy will read {read}, which is not known yet"));
    }
    words
}
