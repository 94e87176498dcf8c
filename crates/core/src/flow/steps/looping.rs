//! A loop goes through one other step, round after round, while a condition holds or until one does.

use super::super::definition::FlowProblem;
use super::super::document::StepDocument;
use super::super::draft::{DraftWork, RunDraft};
use super::super::node::{Fan, NodeKey};
use super::super::table::StepState;
use crate::expression::{Expression, Names};
use crate::id::StepId;
use serde_json::{Value as Json, json};

pub const ITERATIONS_MAX: u32 = 1000;
const ITERATIONS: u32 = 100;

#[derive(Debug, Clone)]
pub struct LoopStep {
    pub body: StepId,
    pub iterations_max: u32,
    /// Asked before every round.
    pub as_long_as: Option<Expression>,
    /// Asked after every round.
    pub until: Option<Expression>,
}

impl LoopStep {
    pub(super) fn read(document: &StepDocument, names: Names<'_>) -> Result<Self, FlowProblem> {
        super::only(document, &["body_step", "body", "max_iterations", "condition", "while", "until"])?;
        let body = super::part(document, &["body_step", "body"]);
        let body = body
            .ok_or_else(|| FlowProblem::new("input", "body_step: a loop names the step it goes through"))?;
        let iterations_max = match super::part(document, &["max_iterations"]) {
            None => ITERATIONS,
            Some(max) => max
                .as_u64()
                .and_then(|max| u32::try_from(max).ok())
                .filter(|max| (1..=ITERATIONS_MAX).contains(max))
                .ok_or_else(|| {
                    FlowProblem::new("input", format!("max_iterations: must be from 1 to {ITERATIONS_MAX}"))
                })?,
        };
        let expression = |names_of: &[&str]| match super::part(document, names_of).and_then(Json::as_str) {
            Some(source) => super::expression(names_of[0], source, names).map(Some),
            None => Ok(None),
        };
        Ok(Self {
            body: super::step_id("input", body)?,
            iterations_max,
            as_long_as: expression(&["condition", "while"])?,
            until: expression(&["until"])?,
        })
    }
}

pub(super) fn begin(draft: &mut RunDraft<'_>, key: &NodeKey) {
    let mut node = draft.node(key);
    node.state = StepState::Running;
    node.started_at = Some(draft.now);
    node.fan = Some(Fan::default());
    draft.put(key, node);
    draft.work(DraftWork::Loop(key.step.clone()));
}

/// Decides whether there is another round.
pub(in super::super) fn feed(draft: &mut RunDraft<'_>, id: &StepId, looping: &LoopStep) {
    let key = NodeKey::of(id);
    let node = draft.node(&key);
    let Some(fan) = node.fan.filter(|fan| node.state == StepState::Running && fan.live == 0) else { return };
    if fan.failed > 0 {
        return draft.fail(&key, &format!("round {} failed", fan.begun));
    }
    match is_over(draft, &key, looping, fan) {
        Ok(true) => draft.succeed(&key, Some(json!({"iterations": fan.begun}))),
        Ok(false) if fan.begun == looping.iterations_max => {
            draft.fail(&key, &format!("is not over after {} rounds", fan.begun));
        }
        Ok(false) => {
            let node =
                super::super::node::Node { fan: Some(Fan { begun: fan.begun + 1, live: 1, ..fan }), ..node };
            draft.put(&key, node);
            draft.begin_now(&NodeKey::round(&looping.body, fan.begun));
        }
        Err(problem) => draft.fail(&key, &problem),
    }
}

/// Without a condition it runs as often as it may.
fn is_over(draft: &RunDraft<'_>, key: &NodeKey, looping: &LoopStep, fan: Fan) -> Result<bool, String> {
    if let Some(until) = looping.until.as_ref().filter(|_| fan.begun > 0)
        && draft.holds(key, until)?
    {
        return Ok(true);
    }
    match &looping.as_long_as {
        Some(condition) => draft.holds(key, condition).map(|yes| !yes),
        None => Ok(looping.until.is_none() && fan.begun == looping.iterations_max),
    }
}
