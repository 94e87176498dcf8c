//! A run that is not run: what would become of each step, as far as that can be known, and what policy says of
//! the job it would be, and of the job that would undo it. Nothing is stored, sent, counted or written down.

mod verdicts;

use super::send::{depth_below, too_deep};
use super::{RunRequest, SaveError, StartRunError, Workflows};
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::flow::{
    DEPTH_MAX, Fate, Flow, Forecast, Foreseen, NodeKey, RunHead, RunOrigin, Step, StepKind, SubworkflowStep,
    WorkflowDocument, child_id, dry_run,
};
use reveille_core::id::RunId;
use reveille_core::policy::Verdict;
use serde_json::Value as Json;
use std::sync::Arc;
use verdicts::warnings;

/// How often policy is asked; a list that has more rounds than that is not looked at to its end.
const ASKED_MAX: usize = 1000;
/// Runs within runs that are looked into, all together.
const CALLED_MAX: usize = 100;

pub struct DryRunReport {
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
    /// What policy would say of the job that undoes it, if it had to be undone.
    pub undo: Option<Judged>,
    /// Of a step that is another run: how that would go. Of several rounds, the first whose input is known.
    pub run: Option<Box<DryRunReport>>,
}

pub struct Judged {
    /// Of several rounds, the strictest; or why nobody would say anything.
    pub verdict: Result<Verdict, String>,
    pub round: Option<u32>,
    /// Rules that read the input could not, since it is not known yet.
    pub unread: bool,
}

/// How much may still be looked at.
struct Left {
    asked: usize,
    called: usize,
    cost: CostLimit,
}

impl Workflows {
    /// Goes through a workflow with an input: the document that is given, or else the last version saved.
    pub async fn dry_run(
        &self,
        asked: &RunRequest,
        document: Option<WorkflowDocument>,
    ) -> Result<DryRunReport, StartRunError> {
        let _question = self.runtime.evaluations().question(&asked.tenant)?;
        let flow = if let Some(document) = document {
            Arc::new(self.saveable(asked, document).await?)
        } else {
            let flow = self.flow(&asked.tenant, &asked.workflow, None).await?;
            flow.ok_or_else(|| StartRunError::UnknownWorkflow(asked.workflow.clone()))?
        };
        let head =
            self.new_run(RunId::known(self.runtime.new_uuid()), asked, &flow, RunOrigin::Started).await?.head;
        let mut left = Left { asked: ASKED_MAX, called: CALLED_MAX, cost: CostLimit::RUN_EVENT };
        let mut dry = self.foresee(&head, flow, Some(&asked.input), &mut left).await?;
        if left.asked == 0 {
            dry.warnings.push(format!("policy was asked {ASKED_MAX} times; there are more rounds than that"));
        }
        if left.called == 0 {
            dry.warnings.push(format!("{CALLED_MAX} runs within runs were looked into; there may be more"));
        }
        Ok(dry)
    }

    /// A document that could be saved as it is: nothing is wrong with it, and it does not run itself.
    async fn saveable(&self, asked: &RunRequest, document: WorkflowDocument) -> Result<Flow, StartRunError> {
        let bad = |problem: String| StartRunError::Bad { field: "workflow", problem };
        let flow = self.checked(document, 0).await.map_err(|problem| bad(problem.to_string()))?;
        match self.check_calls(&asked.tenant, &flow).await {
            Ok(()) => Ok(flow),
            Err(SaveError::Store(error)) => Err(error.into()),
            Err(error) => Err(bad(error.to_string())),
        }
    }

    async fn foresee(
        &self,
        head: &RunHead,
        flow: Arc<Flow>,
        input: Option<&Json>,
        left: &mut Left,
    ) -> Result<DryRunReport, StartRunError> {
        let (ahead, given, now) = (flow.clone(), input.cloned(), self.runtime.now());
        let foresee = move |meter: &Meter| (dry_run(&ahead, given.as_ref(), now, meter), meter.left());
        let ((foreseen, least_ms), cost) = self.runtime.evaluations().run(left.cost, foresee).await;
        left.cost = cost;
        let mut dry = DryRunReport { flow: flow.clone(), steps: Vec::new(), warnings: Vec::new(), least_ms };
        for foreseen in foreseen {
            let step = flow.step(&foreseen.step);
            let (judged, run) = match &step.kind {
                StepKind::Subworkflow(sub) => {
                    Box::pin(self.of_called(head, step, sub, &foreseen, left)).await?
                }
                _ => (self.would_be_judged(head, step, &foreseen, left).await, None),
            };
            let undo = self.undo_would_be_judged(head, &flow, &foreseen, left).await;
            let step = DryStep { foreseen, judged, undo, run: run.map(Box::new) };
            dry.warnings.extend(warnings(&step));
            dry.steps.push(step);
        }
        Ok(dry)
    }

    /// Of a step that is another run: why it would not begin, or else how it would go.
    async fn of_called(
        &self,
        head: &RunHead,
        step: &Step,
        sub: &SubworkflowStep,
        foreseen: &Foreseen,
        left: &mut Left,
    ) -> Result<(Option<Judged>, Option<DryRunReport>), StartRunError> {
        if matches!(foreseen.fate, Fate::Skipped(_) | Fate::Fails(_)) {
            return Ok((None, None));
        }
        let fails = |words, round| (Some(Judged { verdict: Err(words), round, unread: false }), None);
        let depth = depth_below(head);
        if depth > DEPTH_MAX {
            return Ok(fails(too_deep(), None));
        }
        let Some(called) = self.flow(&head.tenant, &sub.workflow, None).await? else {
            return Ok(fails(format!("there is no workflow {}", sub.workflow), None));
        };
        let has_rounds = matches!(foreseen.rounds, Some(Forecast::Yes(_)));
        let known = foreseen.inputs.iter().zip(0u32..).filter_map(|(input, round)| match input {
            Forecast::Yes(input) => Some((input, has_rounds.then_some(round))),
            _ => None,
        });
        let known: Vec<_> = known.collect();
        for (input, round) in &known {
            let Some(schema) = &called.input_schema else { break };
            if let Err(problem) = self.check_schema(schema, input).await {
                return Ok(fails(format!("input of {}: {problem}", sub.workflow), *round));
            }
        }
        let Some(fewer) = left.called.checked_sub(1) else { return Ok((None, None)) };
        left.called = fewer;
        let (input, round) = known.first().map_or((None, None), |(input, round)| (Some(*input), *round));
        let node = NodeKey { step: step.id.clone(), round };
        let id = child_id(&head.id, &node, 1);
        let child = RunHead {
            origin: RunOrigin::Step { run: head.id.clone(), node, attempt: 1, depth },
            started_by: head.started_by.clone(),
            actor: head.actor.clone(),
            ..RunHead::new(id, head.tenant.clone(), sub.workflow.clone(), called.version, self.runtime.now())
        };
        Ok((None, Some(self.foresee(&child, called, input, left).await?)))
    }
}
