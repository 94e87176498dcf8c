//! The kinds of steps, one file each: what a document may say of it, and what happens when it begins.

mod approval;
mod condition;
mod delay;
mod for_each;
mod looping;
mod notify;
mod parallel;
mod storage;
mod subworkflow;
mod switch;
mod transform;
mod worker;

pub use approval::GATE_TOPIC;
pub use condition::ConditionStep;
pub use delay::{DELAY_MS_MAX, Delay};
pub use for_each::ITEMS_MAX;
pub use looping::LoopStep;
pub use notify::{Level, NotifyStep};
pub use parallel::ParallelStep;
pub use storage::StorageStep;
pub use subworkflow::{DEPTH_MAX, SubworkflowStep};
pub use switch::SwitchStep;
pub use worker::WorkerStep;

pub(super) use delay::moment;
pub(super) use for_each::{begin as begin_rounds, feed as feed_rounds, read as read_for_each, round_over};
pub(super) use looping::feed as feed_loop;
pub(super) use parallel::feed as feed_branches;
pub(super) use storage::context_key;

use super::definition::{FlowProblem, Owner};
use super::document::StepDocument;
use super::draft::RunDraft;
use super::node::NodeKey;
use crate::expression::{Expression, Names};
use crate::id::StepId;
use serde_json::Value as Json;

#[derive(Debug, Clone)]
pub enum StepKind {
    Worker(WorkerStep),
    Approval,
    Condition(ConditionStep),
    Switch(SwitchStep),
    Parallel(ParallelStep),
    Loop(LoopStep),
    /// Waits, and that is all.
    Delay,
    Notify(NotifyStep),
    /// Its output is its input, worked out.
    Transform,
    Storage(StorageStep),
    Subworkflow(SubworkflowStep),
}

impl StepKind {
    /// `names` are those that expressions of this step may use when it begins, `inner` those that it may
    /// use while branches or rounds of its own come and go.
    pub(super) fn read(
        document: &StepDocument,
        names: Names<'_>,
        inner: Names<'_>,
    ) -> Result<Self, FlowProblem> {
        Ok(match document.kind.as_str() {
            "" | "worker" | "llm" | "http" | "container" | "script" | "input" => {
                Self::Worker(WorkerStep::read(document)?)
            }
            "approval" => Self::Approval,
            "condition" => Self::Condition(ConditionStep::read(document, names)?),
            "switch" => Self::Switch(SwitchStep::read(document, names)?),
            "parallel" => Self::Parallel(ParallelStep::read(document)?),
            "loop" => Self::Loop(LoopStep::read(document, inner)?),
            "delay" => delay::read_kind(document)?,
            "notify" => Self::Notify(NotifyStep::read(document, names)?),
            "transform" => Self::Transform,
            "storage" => Self::Storage(StorageStep::read(document, names)?),
            "subworkflow" => Self::Subworkflow(SubworkflowStep::read(document, names)?),
            other => {
                return Err(FlowProblem::new(
                    "type",
                    format!("there is no step type {other:?}; there are {KINDS}"),
                ));
            }
        })
    }

    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Worker(_) => "worker",
            Self::Approval => "approval",
            Self::Condition(_) => "condition",
            Self::Switch(_) => "switch",
            Self::Parallel(_) => "parallel",
            Self::Loop(_) => "loop",
            Self::Delay => "delay",
            Self::Notify(_) => "notify",
            Self::Transform => "transform",
            Self::Storage(_) => "storage",
            Self::Subworkflow(_) => "subworkflow",
        }
    }

    /// Whether it lets other steps of the workflow begin.
    pub fn is_composite(&self) -> bool {
        matches!(self, Self::Switch(_) | Self::Parallel(_) | Self::Loop(_))
    }

    /// Whether its `input` says how the step works, and is no template.
    pub(super) fn has_own_input(&self) -> bool {
        self.is_composite() || matches!(self, Self::Storage(_) | Self::Subworkflow(_))
    }

    /// The steps that begin only if this one lets them.
    pub fn owned(&self) -> Vec<StepId> {
        match self {
            Self::Switch(switch) => switch.targets(),
            Self::Parallel(parallel) => parallel.steps.clone(),
            Self::Loop(looping) => vec![looping.body.clone()],
            _ => Vec::new(),
        }
    }

    pub(super) fn owner(&self, id: &StepId) -> Owner {
        match self {
            Self::Parallel(_) => Owner::Parallel(id.clone()),
            Self::Loop(_) => Owner::Loop(id.clone()),
            _ => Owner::Switch(id.clone()),
        }
    }

    /// The expressions that only a step of this kind has.
    pub(super) fn expressions(&self) -> Vec<&Expression> {
        match self {
            Self::Condition(condition) => vec![&condition.asks],
            Self::Switch(switch) => vec![&switch.on],
            Self::Loop(looping) => looping.as_long_as.iter().chain(&looping.until).collect(),
            Self::Storage(storage) => storage.value.expressions(),
            Self::Subworkflow(sub) => sub.input.expressions(),
            _ => Vec::new(),
        }
    }

    /// The step begins: its conditions hold, and its delay is over.
    pub(super) fn begin(&self, draft: &mut RunDraft<'_>, key: &NodeKey) {
        match self {
            Self::Worker(_) => worker::begin(draft, key),
            Self::Approval => approval::begin(draft, key),
            Self::Condition(condition) => condition.begin(draft, key),
            Self::Switch(switch) => switch.begin(draft, key),
            Self::Parallel(parallel) => parallel.begin(draft, key),
            Self::Loop(_) => looping::begin(draft, key),
            Self::Delay => draft.succeed(key, None),
            Self::Notify(_) => notify::begin(draft, key),
            Self::Transform => transform::begin(draft, key),
            Self::Storage(storage) => storage.begin(draft, key),
            Self::Subworkflow(sub) => sub.begin(draft, key),
        }
    }
}

const KINDS: &str =
    "worker, approval, condition, switch, parallel, loop, delay, notify, transform, storage, subworkflow";

/// A field of a step as an expression, which may stand in `${…}`.
pub(super) fn expression(field: &str, source: &str, names: Names<'_>) -> Result<Expression, FlowProblem> {
    let source = source.trim();
    let inside = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(source);
    super::template::expression(inside, names).map_err(|problem| FlowProblem::new(field, problem))
}

/// A field of a step's `input` under any of its names.
fn part<'a>(document: &'a StepDocument, names: &[&str]) -> Option<&'a Json> {
    let input = document.input.as_ref()?;
    names.iter().find_map(|name| input.get(name))
}

/// Only these may be in a step's `input`, because they say how it works.
fn only(document: &StepDocument, known: &[&str]) -> Result<(), FlowProblem> {
    let Some(input) = &document.input else { return Ok(()) };
    let Some(parts) = input.as_object() else { return Err(FlowProblem::new("input", "is no object")) };
    match parts.keys().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(FlowProblem::new(
            "input",
            format!("{unknown} means nothing here; there are {}", known.join(", ")),
        )),
        None => Ok(()),
    }
}

/// The name of a step, where one belongs.
fn step_id(field: &str, json: &Json) -> Result<StepId, FlowProblem> {
    let id = json.as_str().and_then(|id| StepId::parse(id).ok());
    id.ok_or_else(|| FlowProblem::new(field, format!("{json} names no step")))
}
