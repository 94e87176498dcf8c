//! A parallel step lets its branches begin, and is over when enough of them have succeeded, or too few can.

use super::super::definition::FlowProblem;
use super::super::document::StepDocument;
use super::super::draft::RunDraft;
use super::super::node::{Fan, NodeKey};
use super::super::table::StepState;
use crate::id::StepId;
use crate::words::words;
use serde_json::{Value as Json, json};

words! {
    Strategy {
        All = "all",
        Any = "any",
        NOfM = "n_of_m",
    }
}

#[derive(Debug, Clone)]
pub struct ParallelStep {
    pub steps: Vec<StepId>,
    pub strategy: Strategy,
    /// How many branches have to succeed.
    pub required: u32,
}

impl ParallelStep {
    pub(super) fn read(document: &StepDocument) -> Result<Self, FlowProblem> {
        super::only(document, &["steps", "strategy", "required"])?;
        let steps = super::part(document, &["steps"]).and_then(Json::as_array);
        let steps = steps.filter(|steps| !steps.is_empty());
        let steps =
            steps.ok_or_else(|| FlowProblem::new("input", "steps: a parallel step names its branches"))?;
        let steps = steps.iter().map(|step| super::step_id("input", step)).collect::<Result<Vec<_>, _>>()?;
        let strategy = match super::part(document, &["strategy"]) {
            None => Strategy::All,
            Some(word) => word.as_str().and_then(Strategy::parse).ok_or_else(|| {
                FlowProblem::new("input", format!("strategy: {word} is none of all, any and n_of_m"))
            })?,
        };
        let count = steps.len() as u32;
        let required = match strategy {
            Strategy::All => count,
            Strategy::Any => 1,
            Strategy::NOfM => {
                let required = super::part(document, &["required"]).and_then(Json::as_u64);
                let required = required.and_then(|required| u32::try_from(required).ok());
                required.filter(|required| (1..=count).contains(required)).ok_or_else(|| {
                    FlowProblem::new("input", format!("required: n_of_m needs a number from 1 to {count}"))
                })?
            }
        };
        Ok(Self { steps, strategy, required })
    }

    pub(super) fn begin(&self, draft: &mut RunDraft<'_>, key: &NodeKey) {
        let mut node = draft.node(key);
        node.state = StepState::Running;
        node.started_at = Some(draft.now);
        node.fan = Some(Fan { count: self.steps.len() as u32, ..Fan::default() });
        draft.put(key, node);
        for step in &self.steps {
            draft.try_begin(step);
        }
    }
}

/// A branch is over.
pub(in super::super) fn feed(draft: &mut RunDraft<'_>, id: &StepId, parallel: &ParallelStep) {
    let key = NodeKey::of(id);
    let mut node = draft.node(&key);
    if node.state != StepState::Running {
        return;
    }
    let states = parallel.steps.iter().map(|step| draft.state(step)).collect::<Vec<_>>();
    let succeeded = states.iter().filter(|state| **state == StepState::Succeeded).count() as u32;
    let open = states.iter().filter(|state| !state.is_settled()).count() as u32;
    let failed = states.len() as u32 - succeeded - open;
    node.fan =
        Some(Fan { count: states.len() as u32, begun: states.len() as u32, live: open, succeeded, failed });
    draft.put(&key, node);
    if succeeded >= parallel.required {
        draft.succeed(&key, Some(json!({"succeeded": succeeded, "failed": failed})));
    } else if succeeded + open < parallel.required {
        draft.fail(
            &key,
            &format!("{succeeded} of {} branches succeeded, {} had to", states.len(), parallel.required),
        );
    }
}
