//! Workflows: a definition, its runs, and what follows when something happens to one.
//!
//! A run is a value. [`start`] makes one and [`advance`] says what an event changes of it; both are pure, and
//! what they answer is only the difference, so that a step of a large run costs as much as one of a small
//! run. The shell commits the difference by compare-and-swap and then acts on it. What it has to do follows
//! from the run as it stands: a step that is running owes a job, whose id is made from run, step and attempt,
//! so that asking for it twice is asking once.

mod clock;
mod definition;
mod document;
mod draft;
mod dry_run;
mod graph;
mod interpret;
mod node;
mod parts;
mod read;
mod rollback;
mod run;
mod saga;
mod schema;
mod scope;
mod steps;
mod table;
mod template;
mod timeline;

pub use definition::{CompensateOn, Flow, FlowProblem, ForEach, Owner, Retry, RunWhen, Step, Undo, UndoJob};
pub use document::{
    CompensationDocument, Meta, RetryDocument, RollbackDocument, StepDocument, WorkflowDocument,
};
pub use dry_run::{Fate, Forecast, Foreseen, dry_run};
pub use interpret::{PendingWork, interpret};
pub use node::{Fan, Node, NodeDue, NodeKey, SubmittedWork};
pub use parts::RunPart;
pub use rollback::{UNDO_AT_ONCE, UNDO_IN_ORDER, UNDO_STEP, Undoing, UndoneBy, rollback_flow};
pub use run::{Compensation, Run, RunHead, RunOrigin, WaitsFor};
pub use saga::{ClientUndo, STACK_MAX, SagaFailure, Stack, stack, stack_flow, stack_id};
pub use schema::Schema;
pub use steps::{
    DEPTH_MAX, Delay, GATE_TOPIC, ITEMS_MAX, Level, NotifyStep, StepKind, SubworkflowStep, WorkerStep,
};
pub use table::{RunState, StepState};
pub use template::{Piece, Template};
pub use timeline::{LINES_MAX, TimelineEntry, TimelineKind};

use crate::cost::Meter;
use crate::digest;
use crate::id::{JobId, RunId, StepId};
use crate::time::Millis;
use draft::RunDraft;
use serde_json::Value as Json;
use std::sync::Arc;

/// What a step may give and a run may take, in bytes of JSON.
pub const OUTPUT_LEN_MAX: usize = 256 * 1024;

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// What a step had sent off is over.
    Over {
        node: NodeKey,
        attempt: u32,
        outcome: StepOutcome,
    },
    /// Time has passed.
    Time,
    Cancel {
        by: String,
        reason: String,
    },
    /// The run that undoes this one is there. It takes the compensations up to this one, not included.
    RollbackMade {
        upto: u32,
    },
    /// A client's job has succeeded; this undoes it.
    Record(Arc<Compensation>),
    /// A client's job has failed for good.
    Fail {
        failed: SagaFailure,
        words: String,
    },
}

/// How a job or another run ended, for the step that had sent it off.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    Succeeded(Option<Json>),
    Failed { words: String, is_worth_another_try: bool },
    Denied(String),
    TimedOut(String),
}

/// What changes; the rest stays as it is. The revision of `head` is the one after the change.
#[derive(Debug, Clone, PartialEq)]
pub struct RunChange {
    pub head: RunHead,
    pub nodes: Vec<(NodeKey, Node)>,
    pub context: Vec<(String, Option<Arc<Json>>)>,
    pub items: Vec<(StepId, Arc<Vec<Json>>)>,
    pub compensations: Vec<Arc<Compensation>>,
    pub timeline: Vec<TimelineEntry>,
    pub output: Option<Arc<Json>>,
}

/// Why nothing changes. None of these is an error: messages come twice, and late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RunRefusal {
    #[error("the run is over: it is {0}")]
    Over(RunState),
    #[error("the step does not wait for that any more")]
    Stale,
    #[error("there is nothing to do yet")]
    TooEarly,
    /// The job was asked for before its workflow failed: it is to be undone by itself.
    #[error("the workflow has failed meanwhile")]
    Failed,
    #[error("it holds {STACK_MAX} compensations, and takes no more")]
    Full,
}

/// Begins a run. `run` is new: it may bring steps that are settled already, from the run that it repeats.
pub fn start(run: &Run, flow: &Flow, now: Millis, meter: &Meter) -> RunChange {
    let mut draft = RunDraft::new(flow, run, now, meter);
    draft.head.deadline = flow.timeout_ms.map(|ms| now + ms);
    let settled = |step: &Step| run.state_of(&step.id).is_settled();
    draft.head.open = flow.steps.values().filter(|step| !settled(step)).count() as u32;
    for step in flow.in_order() {
        draft.try_begin(&step.id);
        draft.follow_up();
    }
    draft.finish()
}

/// What follows from an event. What it costs to work that out is charged to `meter`; a step that is too expensive
/// fails.
pub fn advance(
    run: &Run,
    flow: &Flow,
    event: &RunEvent,
    now: Millis,
    meter: &Meter,
) -> Result<RunChange, RunRefusal> {
    let mut draft = RunDraft::new(flow, run, now, meter);
    let state = run.head.state;
    match event {
        RunEvent::Over { node, attempt, outcome } => {
            over(&mut draft, node, *attempt, outcome)?;
        }
        RunEvent::RollbackMade { upto } => saga::rollback_made(&mut draft, *upto)?,
        RunEvent::Record(undo) => saga::record(&mut draft, undo)?,
        RunEvent::Fail { failed, words } => saga::fail(&mut draft, failed, words)?,
        _ if state.is_terminal() => return Err(RunRefusal::Over(state)),
        // Its moments are brought into our time first; what is due then comes next.
        RunEvent::Time if run.head.is_ahead(now) => {}
        RunEvent::Time if run.head.deadline.is_some_and(|deadline| deadline <= now) => {
            draft.end(RunState::TimedOut, "the run took too long");
        }
        RunEvent::Time => {
            let due: Vec<_> = run.dues().iter().take_while(|(at, _)| *at <= now).collect();
            if due.is_empty() {
                return Err(RunRefusal::TooEarly);
            }
            for (_, key) in due {
                if let Some(due) = run.nodes.get(key).and_then(|node| node.due) {
                    draft.pass(key, due);
                }
            }
        }
        RunEvent::Cancel { by, reason } => {
            let words = if reason.is_empty() {
                format!("cancelled by {by}")
            } else {
                format!("cancelled by {by}: {reason}")
            };
            draft.end(RunState::Cancelled, &words);
        }
    }
    Ok(draft.finish())
}

fn over(
    draft: &mut RunDraft<'_>,
    key: &NodeKey,
    attempt: u32,
    outcome: &StepOutcome,
) -> Result<(), RunRefusal> {
    let mut node = draft.get(key).cloned().ok_or(RunRefusal::Stale)?;
    if node.attempt != attempt || node.sent.is_none() {
        return Err(RunRefusal::Stale);
    }
    if node.owes_cancel {
        node.owes_cancel = false;
        draft.put(key, node);
        return Ok(());
    }
    if node.state.is_settled() {
        return Err(RunRefusal::Stale);
    }
    let retry = draft.retry_of(key);
    match outcome {
        StepOutcome::Succeeded(output) => draft.succeed(key, output.clone()),
        StepOutcome::Failed { words, is_worth_another_try: true } | StepOutcome::TimedOut(words)
            if node.attempt <= retry.retries_max =>
        {
            draft.retry(key, retry, words);
        }
        StepOutcome::Failed { words, .. } => draft.end_badly(key, StepState::Failed, words),
        StepOutcome::TimedOut(words) => draft.end_badly(key, StepState::TimedOut, words),
        StepOutcome::Denied(words) => draft.end_badly(key, StepState::Denied, words),
    }
    Ok(())
}

/// The job of one attempt of a step.
pub fn job_id(run: &RunId, key: &NodeKey, attempt: u32) -> JobId {
    JobId::known(format!("{run}:{key}@{attempt}"))
}

/// The run of one attempt of a subworkflow step.
pub fn child_id(run: &RunId, key: &NodeKey, attempt: u32) -> RunId {
    let digest = digest::sha256_hex(format!("{run}:{key}@{attempt}").as_bytes());
    RunId::known(&digest[..32])
}
