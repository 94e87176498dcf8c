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
pub mod layout;
mod node;
mod parts;
pub mod picture;
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

pub use definition::{CompensateOn, Flow, ForEach, Owner, Problem, Retry, RunWhen, Step, Undo, UndoJob};
pub use document::{CompensationDocument, Document, Meta, RetryDocument, RollbackDocument, StepDocument};
pub use dry_run::{Fate, Foreseen, Known, dry_run};
pub use interpret::{Asked, interpret};
pub use node::{Due, Fan, Node, NodeKey, Sent};
pub use parts::Part;
pub use rollback::{UNDO_AT_ONCE, UNDO_IN_ORDER, UNDO_STEP, Undoing, UndoneBy, rollback_flow};
pub use run::{Compensation, Head, Origin, Run, WaitsFor};
pub use saga::{ClientUndo, Failed, STACK_MAX, Stack, stack, stack_flow, stack_id};
pub use schema::Schema;
pub use steps::{DEPTH_MAX, GATE_TOPIC, ITEMS_MAX, Kind, Level, Notify, Subworkflow, Worker};
pub use table::{RunState, StepState};
pub use template::Template;
pub use timeline::{LINES_MAX, Line, LineKind};

use crate::digest;
use crate::id::{JobId, RunId, StepId};
use crate::time::Millis;
use draft::Draft;
use serde_json::Value as Json;
use std::sync::Arc;

/// What a step may give and a run may take, in bytes of JSON.
pub const OUTPUT_LEN_MAX: usize = 256 * 1024;

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// What a step had sent off is over.
    Over {
        node: NodeKey,
        attempt: u32,
        outcome: Outcome,
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
        failed: Failed,
        words: String,
    },
}

/// How a job or another run ended, for the step that had sent it off.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Succeeded(Option<Json>),
    Failed { words: String, is_worth_another_try: bool },
    Denied(String),
    TimedOut(String),
}

/// What changes; the rest stays as it is. The revision of `head` is the one after the change.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub head: Head,
    pub nodes: Vec<(NodeKey, Node)>,
    pub context: Vec<(String, Option<Arc<Json>>)>,
    pub items: Vec<(StepId, Arc<Vec<Json>>)>,
    pub compensations: Vec<Arc<Compensation>>,
    pub timeline: Vec<Line>,
    pub output: Option<Arc<Json>>,
}

/// Why nothing changes. None of these is an error: messages come twice, and late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
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
pub fn start(run: &Run, flow: &Flow, now: Millis) -> Change {
    let mut draft = Draft::new(flow, run, now);
    draft.head.deadline = flow.timeout_ms.map(|ms| now + ms);
    let settled = |step: &Step| run.state_of(&step.id).is_settled();
    draft.head.open = flow.steps.values().filter(|step| !settled(step)).count() as u32;
    for step in flow.in_order() {
        draft.try_begin(&step.id);
        draft.follow_up();
    }
    draft.finish()
}

/// What follows from an event.
pub fn advance(run: &Run, flow: &Flow, event: &Event, now: Millis) -> Result<Change, Refusal> {
    let mut draft = Draft::new(flow, run, now);
    let state = run.head.state;
    match event {
        Event::Over { node, attempt, outcome } => {
            over(&mut draft, node, *attempt, outcome)?;
        }
        Event::RollbackMade { upto } => saga::rollback_made(&mut draft, *upto)?,
        Event::Record(undo) => saga::record(&mut draft, undo)?,
        Event::Fail { failed, words } => saga::fail(&mut draft, failed, words)?,
        _ if state.is_terminal() => return Err(Refusal::Over(state)),
        // Its moments are brought into our time first; what is due then comes next.
        Event::Time if run.head.is_ahead(now) => {}
        Event::Time if run.head.deadline.is_some_and(|deadline| deadline <= now) => {
            draft.end(RunState::TimedOut, "the run took too long");
        }
        Event::Time => {
            let due: Vec<_> = run.dues().iter().take_while(|(at, _)| *at <= now).collect();
            if due.is_empty() {
                return Err(Refusal::TooEarly);
            }
            for (_, key) in due {
                if let Some(due) = run.nodes.get(key).and_then(|node| node.due) {
                    draft.pass(key, due);
                }
            }
        }
        Event::Cancel { by, reason } => {
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

fn over(draft: &mut Draft<'_>, key: &NodeKey, attempt: u32, outcome: &Outcome) -> Result<(), Refusal> {
    let mut node = draft.get(key).cloned().ok_or(Refusal::Stale)?;
    if node.attempt != attempt || node.sent.is_none() {
        return Err(Refusal::Stale);
    }
    if node.owes_cancel {
        node.owes_cancel = false;
        draft.put(key, node);
        return Ok(());
    }
    if node.state.is_settled() {
        return Err(Refusal::Stale);
    }
    let retry = draft.retry_of(key);
    match outcome {
        Outcome::Succeeded(output) => draft.succeed(key, output.clone()),
        Outcome::Failed { words, is_worth_another_try: true } | Outcome::TimedOut(words)
            if node.attempt <= retry.retries_max =>
        {
            draft.retry(key, retry, words);
        }
        Outcome::Failed { words, .. } => draft.end_badly(key, StepState::Failed, words),
        Outcome::TimedOut(words) => draft.end_badly(key, StepState::TimedOut, words),
        Outcome::Denied(words) => draft.end_badly(key, StepState::Denied, words),
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

#[cfg(test)]
mod tests;
