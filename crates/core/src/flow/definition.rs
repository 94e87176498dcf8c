//! A workflow that was found to be one: every name resolved, every expression read, no circle in it.

use super::document::{Meta, WorkflowDocument};
use super::graph::Graph;
use super::schema::Schema;
use super::steps::{self, StepKind};
use super::table::RunState;
use super::template::Template;
use crate::cost::CostLimit;
use crate::expression::Expression;
use crate::id::{StepId, Topic, WorkflowId};
use crate::time::Millis;
use crate::words::words;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub const STEPS_MAX: usize = 500;
pub const STEP_ID_LEN_MAX: usize = 64;
pub const NAME_LEN_MAX: usize = 256;
/// Bytes of a whole document.
pub const DOCUMENT_LEN_MAX: usize = 512 * 1024;
pub const TIMEOUT_SEC_MAX: u64 = 7 * 24 * 3600;
pub const RETRIES_MAX: u32 = 100;

/// What cannot be saved, with the step and the field that say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowProblem {
    pub step: Option<String>,
    pub field: String,
    pub problem: String,
}

impl fmt::Display for FlowProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = &self.step {
            write!(f, "step {step}: ")?;
        }
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl std::error::Error for FlowProblem {}

impl FlowProblem {
    pub fn new(field: &str, problem: impl Into<String>) -> Self {
        Self { step: None, field: field.to_owned(), problem: problem.into() }
    }

    pub fn of_step(self, step: &str) -> Self {
        Self { step: Some(step.to_owned()), ..self }
    }
}

words! {
    /// The ends after which what was done is undone.
    CompensateOn {
        Failed = "failed",
        Denied = "denied",
        Cancelled = "cancelled",
        TimedOut = "timed_out",
    }
}

#[derive(Debug, Clone)]
pub struct Flow {
    pub id: WorkflowId,
    pub version: u32,
    pub name: String,
    pub timeout_ms: Option<i64>,
    pub input_schema: Option<Schema>,
    pub parameters: BTreeMap<String, Json>,
    pub output: Option<Template>,
    pub compensate_on: BTreeSet<CompensateOn>,
    /// Whether what is undone is undone all at once, and not one after the other.
    pub undoes_at_once: bool,
    pub steps: BTreeMap<StepId, Step>,
}

#[derive(Debug, Clone)]
pub struct Step {
    pub id: StepId,
    pub name: String,
    /// Its place when all steps are put in an order in which they could run.
    pub index: u32,
    pub kind: StepKind,
    pub depends_on: Vec<StepId>,
    /// The steps that depend on it.
    pub dependents: Vec<StepId>,
    pub run_when: RunWhen,
    /// Who lets it begin, if not its dependencies alone.
    pub owner: Option<Owner>,
    /// The steps whose failure it is for.
    pub handles: Vec<StepId>,
    pub on_error: Option<StepId>,
    pub condition: Option<Expression>,
    pub for_each: Option<ForEach>,
    pub delay: Option<steps::Delay>,
    pub input: Template,
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
    pub output_path: Option<String>,
    pub result_data_path: Vec<String>,
    pub retry: Retry,
    pub timeout_ms: Option<i64>,
    pub meta: Meta,
    pub labels: BTreeMap<String, String>,
    pub compensation: Option<Undo>,
}

impl Step {
    /// Every expression in it.
    fn expressions(&self) -> Vec<&Expression> {
        let until = match &self.delay {
            Some(steps::Delay::Until(until)) => Some(until),
            _ => None,
        };
        let items = self.for_each.as_ref().map(|for_each| &for_each.items);
        let undo = self.compensation.as_ref().map(|undo| &undo.input);
        let templates = [Some(&self.input), until, items, undo].into_iter().flatten();
        let written = templates.flat_map(Template::expressions).chain(&self.condition);
        written.chain(self.kind.expressions()).collect()
    }
}

words! {
    /// What a step asks of its dependencies.
    RunWhen {
        Succeeded = "succeeded",
        Settled = "settled",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// Begins if the switch chooses it.
    Switch(StepId),
    /// Begins with the parallel step.
    Parallel(StepId),
    /// Is gone through by the loop.
    Loop(StepId),
}

impl Owner {
    pub fn step(&self) -> &StepId {
        match self {
            Self::Switch(step) | Self::Parallel(step) | Self::Loop(step) => step,
        }
    }
}

#[derive(Debug, Clone)]
pub struct ForEach {
    pub items: Template,
    /// Rounds under way at once.
    pub parallel_max: u32,
    /// Whether a round that fails lets the others go on.
    pub is_tolerant: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    pub retries_max: u32,
    pub initial_ms: i64,
    pub max_ms: i64,
    pub multiplier: f64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { retries_max: 0, initial_ms: 1000, max_ms: 60_000, multiplier: 2.0 }
    }
}

impl Retry {
    /// What undoes something is worth a few tries, unless its author said otherwise.
    pub fn of_undoing() -> Self {
        Self { retries_max: 3, ..Self::default() }
    }

    /// How long to wait after this many tries.
    pub fn delay_ms(&self, tries: u32) -> i64 {
        let factor = self.multiplier.powi(i32::try_from(tries.saturating_sub(1)).unwrap_or(i32::MAX));
        ((self.initial_ms as f64 * factor) as i64).clamp(0, self.max_ms)
    }
}

/// How a step that succeeded is undone.
#[derive(Debug, Clone)]
pub struct Undo {
    pub input: Template,
    pub job: UndoJob,
}

/// The job that undoes a step, all but its input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UndoJob {
    pub topic: Topic,
    #[serde(default)]
    pub meta: Meta,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub timeout_ms: Option<i64>,
    #[serde(default = "Retry::of_undoing")]
    pub retry: Retry,
}

impl Flow {
    /// Reads a document that was saved as `version`.
    pub fn read(document: &WorkflowDocument, version: u32) -> Result<Self, FlowProblem> {
        super::read::flow(document, version, Millis::ZERO)
    }

    /// The same of one that is about to be saved: a moment in it must not be over by `now`, and nothing in it may
    /// be bound to be too expensive. (In one that was saved before, a step that is fails.)
    pub fn check(document: &WorkflowDocument, version: u32, now: Millis) -> Result<Self, FlowProblem> {
        let flow = super::read::flow(document, version, now)?;
        for step in flow.steps.values() {
            for expression in step.expressions() {
                let affordable = expression.check_cost(CostLimit::RUN_EVENT);
                affordable
                    .map_err(|problem| FlowProblem::new("expression", problem).of_step(step.id.as_str()))?;
            }
        }
        for expression in flow.output.iter().flat_map(Template::expressions) {
            let affordable = expression.check_cost(CostLimit::RUN_EVENT);
            affordable.map_err(|problem| FlowProblem::new("output", problem))?;
        }
        Ok(flow)
    }

    /// Whether a run that ends so is undone.
    pub fn undoes(&self, end: RunState) -> bool {
        let end = match end {
            RunState::Failed => CompensateOn::Failed,
            RunState::Denied => CompensateOn::Denied,
            RunState::Cancelled => CompensateOn::Cancelled,
            RunState::TimedOut => CompensateOn::TimedOut,
            _ => return false,
        };
        self.compensate_on.contains(&end)
    }

    pub fn step(&self, id: &StepId) -> &Step {
        self.steps.get(id).unwrap_or_else(|| unreachable!("steps name only steps: {id}"))
    }

    /// The steps in an order in which they could run.
    pub fn in_order(&self) -> Vec<&Step> {
        let mut steps: Vec<&Step> = self.steps.values().collect();
        steps.sort_by_key(|step| step.index);
        steps
    }

    /// Everything that has to have succeeded before `step`, itself not included.
    pub fn before(&self, step: &StepId) -> BTreeSet<StepId> {
        let mut found = BTreeSet::new();
        let mut open = vec![step.clone()];
        while let Some(next) = open.pop() {
            let step = self.step(&next);
            let owner = step.owner.as_ref().map(Owner::step);
            for before in step.depends_on.iter().chain(owner).chain(&step.handles) {
                if found.insert(before.clone()) {
                    open.push(before.clone());
                }
            }
        }
        found
    }

    /// The workflows that it would run as steps.
    pub fn calls(&self) -> impl Iterator<Item = (&Step, &WorkflowId)> {
        self.steps.values().filter_map(|step| match &step.kind {
            StepKind::Subworkflow(sub) => Some((step, &sub.workflow)),
            _ => None,
        })
    }
}

/// Puts owners, handlers and dependents in place, and says where there is a circle.
pub(super) fn connect(steps: &mut BTreeMap<StepId, Step>) -> Result<Graph, FlowProblem> {
    let ids: Vec<StepId> = steps.keys().cloned().collect();
    for id in &ids {
        let step = &steps[id];
        let owned = step.kind.owned();
        let (dependencies, on_error) = (step.depends_on.clone(), step.on_error.clone());
        for (owned, owner) in owned.into_iter().map(|owned| (owned, step.kind.owner(id))).collect::<Vec<_>>()
        {
            let Some(step) = steps.get_mut(&owned) else {
                return Err(
                    FlowProblem::new("input", format!("there is no step {owned}")).of_step(id.as_str())
                );
            };
            match &step.owner {
                Some(other) if other != &owner => {
                    let problem = format!("{owned} belongs to {} already", other.step());
                    return Err(FlowProblem::new("input", problem).of_step(id.as_str()));
                }
                _ => step.owner = Some(owner),
            }
        }
        for dependency in dependencies {
            let Some(step) = steps.get_mut(&dependency) else {
                let problem = format!("there is no step {dependency}");
                return Err(FlowProblem::new("depends_on", problem).of_step(id.as_str()));
            };
            step.dependents.push(id.clone());
        }
        if let Some(handler) = on_error {
            let Some(step) = steps.get_mut(&handler) else {
                return Err(
                    FlowProblem::new("on_error", format!("there is no step {handler}")).of_step(id.as_str())
                );
            };
            step.handles.push(id.clone());
        }
    }
    for step in steps.values() {
        if step.owner.is_some() && !step.handles.is_empty() {
            let problem = "it cannot both handle errors and belong to another step";
            return Err(FlowProblem::new("on_error", problem).of_step(step.id.as_str()));
        }
        if let Some(Owner::Loop(of)) = &step.owner {
            if !step.dependents.is_empty() || !step.depends_on.is_empty() || step.on_error.is_some() {
                let problem = format!(
                    "the body of the loop {of} has no dependencies, dependents or handler of its own"
                );
                return Err(FlowProblem::new("depends_on", problem).of_step(step.id.as_str()));
            }
            if step.for_each.is_some() || step.condition.is_some() || step.kind.is_composite() {
                let problem =
                    format!("the body of the loop {of} is one plain step, without a condition of its own");
                return Err(FlowProblem::new("type", problem).of_step(step.id.as_str()));
            }
        }
    }
    let graph = Graph::of(steps)?;
    for step in steps.values_mut() {
        step.index = graph.index(&step.id);
    }
    Ok(graph)
}
