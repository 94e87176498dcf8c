//! A run that is not run: what would become of each step, as far as that can be known, and what policy says of
//! the job it would be. Nothing is stored, sent, counted or written down.

use super::send::request;
use super::{Asked, StartRunError};
use crate::Engine;
use bytes::Bytes;
use reveille_core::flow::{
    Document, Fate, Flow, Foreseen, Head, Kind, Known, Node, NodeKey, Origin, Step, StepState, dry_run,
    job_id,
};
use reveille_core::id::RunId;
use reveille_core::policy::{Decision, Verdict};
use reveille_kernel::Purpose;
use reveille_kernel::convert::Sent;
use serde_json::Value as Json;
use std::sync::Arc;

/// How often policy is asked; a list that has more rounds than that is not looked at to its end.
const ASKED_MAX: usize = 1000;

pub struct DryRun {
    pub flow: Arc<Flow>,
    pub steps: Vec<DryStep>,
    /// What whoever starts such a run should know, in words.
    pub warnings: Vec<String>,
    /// What the delays that are known add up to.
    pub least_ms: i64,
}

pub struct DryStep {
    pub foreseen: Foreseen,
    /// What policy would say of its job; nothing, if it would be none.
    pub judged: Option<Judged>,
}

pub struct Judged {
    /// Of several rounds, the strictest; or why nobody would say anything.
    pub verdict: Result<Verdict, String>,
    pub round: Option<u32>,
    /// Rules that read the input could not, since it is not known yet.
    pub unread: bool,
}

impl Engine {
    /// Goes through a workflow with an input: the document that is given, or else the last version saved.
    pub async fn dry_run(&self, asked: &Asked, document: Option<Document>) -> Result<DryRun, StartRunError> {
        let flow = if let Some(document) = document {
            let bad = |problem: String| StartRunError::Bad { field: "workflow", problem };
            Arc::new(Flow::check(&document, 0, self.now()).map_err(|problem| bad(problem.to_string()))?)
        } else {
            let flow = self.flow(&asked.tenant, &asked.workflow, None).await?;
            flow.ok_or_else(|| StartRunError::UnknownWorkflow(asked.workflow.clone()))?
        };
        let head = self.new_run(RunId::known(self.new_uuid()), asked, &flow, Origin::Started)?.head;
        let (foreseen, least_ms) = dry_run(&flow, &asked.input, self.now());
        let mut dry = DryRun { flow, steps: Vec::new(), warnings: Vec::new(), least_ms };
        let mut left = ASKED_MAX;
        for foreseen in foreseen {
            let step = dry.flow.step(&foreseen.step);
            let judged = self.would_be_judged(&head, step, &foreseen, &mut left).await;
            let warnings = warnings(step, &foreseen, judged.as_ref());
            let called = self.of_called(asked, step, &foreseen).await?;
            dry.warnings.extend(warnings.into_iter().chain(called));
            dry.steps.push(DryStep { foreseen, judged });
        }
        if left == 0 {
            dry.warnings.push(format!("policy was asked {ASKED_MAX} times; there are more rounds than that"));
        }
        Ok(dry)
    }

    /// Asks about each round of a step until one is refused: the strictest answer is the step's.
    async fn would_be_judged(
        &self,
        head: &Head,
        step: &Step,
        foreseen: &Foreseen,
        left: &mut usize,
    ) -> Option<Judged> {
        if !matches!(step.kind, Kind::Worker(_) | Kind::Approval) {
            return None;
        }
        let has_rounds = matches!(foreseen.rounds, Some(Known::Yes(_)));
        let mut strictest: Option<Judged> = None;
        for (input, round) in foreseen.inputs.iter().zip(0u32..) {
            let Some(fewer) = left.checked_sub(1) else { break };
            *left = fewer;
            let round = has_rounds.then_some(round);
            let judged = self.would_say_of(head, step, round, input).await;
            if strictest.as_ref().is_none_or(|before| rank(&judged) > rank(before)) {
                strictest = Some(judged);
            }
        }
        strictest
    }

    async fn would_say_of(
        &self,
        head: &Head,
        step: &Step,
        round: Option<u32>,
        input: &Known<Json>,
    ) -> Judged {
        let key = NodeKey { step: step.id.clone(), round };
        let node = Node { attempt: 1, ..Node::new(StepState::Pending, self.now()) };
        let request = request(head, step, &key, &node, &job_id(&head.id, &key, 1));
        if let Err(bad) = request.check() {
            return Judged { verdict: Err(format!("its job would be refused: {bad}")), round, unread: false };
        }
        let (said, unread) = if let Known::Yes(input) = input {
            let content = Bytes::from(input.to_string());
            let len = content.len() as i64;
            let said = self.say_for_others(&request, Sent { content, len }, Purpose::Simulate).await;
            (said.map(|(verdict, _)| verdict), false)
        } else {
            let unread = self.rules().policy.reads_input(&request);
            (self.would_say(&request, Purpose::Simulate).await, unread)
        };
        let verdict = said.map_err(|problem| format!("policy could not be asked: {problem}"));
        Judged { verdict, round, unread }
    }

    /// Of a step that is another run: whether there is such a workflow, and whether it takes what it would be given.
    async fn of_called(
        &self,
        asked: &Asked,
        step: &Step,
        foreseen: &Foreseen,
    ) -> Result<Option<String>, StartRunError> {
        let Kind::Subworkflow(sub) = &step.kind else { return Ok(None) };
        let Some(called) = self.flow(&asked.tenant, &sub.workflow, None).await? else {
            return Ok(Some(format!("step {}: there is no workflow {}", step.id, sub.workflow)));
        };
        let known = foreseen.inputs.iter().filter_map(|input| match input {
            Known::Yes(input) => Some(input),
            _ => None,
        });
        let problem = called
            .input_schema
            .as_ref()
            .and_then(|schema| known.map(|input| schema.check(input)).find_map(Result::err));
        Ok(problem.map(|problem| format!("step {}: input of {}: {problem}", step.id, sub.workflow)))
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

fn warnings(step: &Step, foreseen: &Foreseen, judged: Option<&Judged>) -> Vec<String> {
    let mut words = Vec::new();
    if let Fate::Fails(problem) = &foreseen.fate {
        words.push(format!("it would fail: {problem}"));
    }
    if let Some(judged) = judged {
        let round = judged.round.map_or_else(String::new, |round| format!("round {round}: "));
        match &judged.verdict {
            Ok(verdict) if verdict.decision == Decision::Deny => {
                words.push(format!("{round}policy would deny it: {}", verdict.reason));
            }
            Ok(_) => {}
            Err(problem) => words.push(format!("{round}{problem}")),
        }
        if judged.unread {
            words.push("policy will read its input, which is not known yet".to_owned());
        }
    }
    words.into_iter().map(|words| format!("step {}: {words}", step.id)).collect()
}
