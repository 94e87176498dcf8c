//! Every run as it was committed, and what must hold at every commit: revisions count by one, what is over stays as it
//! is, a step is sent off once for each attempt, and a timer fires once and not early.

use crate::invariants::InvariantResult;
use crate::situations::{Situation, Situations};
use reveille_core::flow::{Node, NodeDue, NodeKey, Run, RunOrigin, RunState, StepState};
use reveille_core::id::{JobId, RunId};
use reveille_core::job::{Job, State};
use reveille_core::reason::Reason;
use reveille_core::request::Role;
use reveille_core::time::Millis;
use reveille_store::workflows::RunStep;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct FlowHistory {
    pub runs: BTreeMap<RunId, Run>,
    /// The runs that were started under a key, and those that a client was told of.
    keys: BTreeMap<String, RunId>,
    told: BTreeMap<String, RunId>,
    pub cancels_asked: BTreeSet<RunId>,
    /// The life of the server in which a step began to wait for its time.
    waits_since: BTreeMap<(RunId, NodeKey), u64>,
    fired: BTreeSet<(RunId, NodeKey, u32)>,
    begun_in: BTreeMap<RunId, u64>,
    /// Jobs that undo something and are under way.
    undoing: BTreeMap<RunId, JobId>,
    /// Those that have succeeded, in that order.
    pub undone: BTreeMap<RunId, Vec<JobId>>,
    /// Runs whose job was given up, or timed out, while servers were away: how they end nobody can foresee.
    pub given_up: BTreeSet<RunId>,
}

impl FlowHistory {
    pub fn is_settled(&self) -> bool {
        self.runs.values().all(|run| !run.is_live())
    }

    /// A client was answered. However often it asks, it is the same run.
    pub fn told(&mut self, key: &str, run: &RunId) -> InvariantResult {
        let before = self.told.entry(key.to_owned()).or_insert_with(|| run.clone());
        if before != run {
            return Err(format!("the start {key} was answered with {before} and with {run}"));
        }
        if self.runs.contains_key(run) {
            Ok(())
        } else {
            Err(format!("{run} was acknowledged and is nowhere"))
        }
    }

    /// A commit became durable in the life with this number, when the server's clock showed `now`.
    pub fn committed(
        &mut self,
        step: &RunStep,
        life: u64,
        now: Millis,
        situations: &Situations,
    ) -> InvariantResult {
        let head = &step.change.head;
        let id = head.id.clone();
        let before = self.runs.get(&id);
        let mut after = match (before, &step.begins_with) {
            (Some(before), None) => before.clone(),
            (None, Some(begins_with)) => (**begins_with).clone(),
            (Some(_), Some(_)) => return Err(format!("{id} began twice")),
            (None, None) => return Err(format!("{id} changed and was never begun")),
        };
        if head.revision != after.head.revision + 1 {
            return Err(format!("{id} went to revision {}, not {}", head.revision, after.head.revision + 1));
        }
        let was = after.head.state;
        if was.is_terminal() && head.state != was {
            return Err(format!("{id} had ended as {was} and became {}", head.state));
        }
        for (key, node) in &step.change.nodes {
            follows(&id, key, after.nodes.get(key), node)?;
            self.timed(&id, key, after.nodes.get(key), node, life, now, situations)?;
        }
        after.apply((*step.change).clone());
        one_undoing(&after)?;
        if step.begins_with.is_some() {
            self.begun(&after, life, situations)?;
        }
        self.seen(was, &after, life, situations);
        self.runs.insert(id, after);
        Ok(())
    }

    fn begun(&mut self, run: &Run, life: u64, situations: &Situations) -> InvariantResult {
        let id = &run.head.id;
        self.begun_in.insert(id.clone(), life);
        match &run.head.origin {
            RunOrigin::Step { .. } => situations.record(Situation::RunInRun),
            RunOrigin::Rollback { .. } => situations.record(Situation::RolledBack),
            _ => {}
        }
        let Some(key) = &run.head.idempotency_key else { return Ok(()) };
        match self.keys.insert(key.clone(), id.clone()) {
            Some(other) => Err(format!("the key {key} started both {other} and {id}")),
            None => Ok(()),
        }
    }

    fn seen(&self, was: RunState, run: &Run, life: u64, situations: &Situations) {
        let is_over = run.head.state.is_terminal() && !was.is_terminal();
        if is_over && self.begun_in.get(&run.head.id) != Some(&life) {
            let is_rollback = matches!(run.head.origin, RunOrigin::Rollback { .. });
            situations.record(if is_rollback { Situation::RollbackOutlived } else { Situation::RunOutlived });
        }
        if is_over {
            match run.head.state {
                RunState::Denied => situations.record(Situation::RunDenied),
                RunState::Cancelled => situations.record(Situation::RunCancelled),
                RunState::Failed => situations.record(Situation::RunFailed),
                _ => {}
            }
        }
    }

    /// A step that waited for its time goes on: not before, and once.
    #[expect(clippy::too_many_arguments, reason = "each is another thing, and nobody else asks")]
    fn timed(
        &mut self,
        run: &RunId,
        key: &NodeKey,
        before: Option<&Node>,
        node: &Node,
        life: u64,
        now: Millis,
        situations: &Situations,
    ) -> InvariantResult {
        let at = (run.clone(), key.clone());
        let due = before.and_then(|before| before.due);
        let is_due = |due: &NodeDue| !matches!(due, NodeDue::TimeOut(_));
        if let Some(due) =
            due.filter(is_due).filter(|_| node.due.is_none() && node.state != StepState::Cancelled)
        {
            if now < due.at() {
                return Err(format!("{key} of {run} went on {} ms early", due.at().since(now)));
            }
            if !self.fired.insert((run.clone(), key.clone(), before.map_or(0, |before| before.attempt))) {
                return Err(format!("the timer of {key} of {run} fired twice"));
            }
            if self.waits_since.get(&at) != Some(&life) {
                situations.record(Situation::TimerOutlived);
            }
            if matches!(due, NodeDue::Retry(_)) {
                situations.record(Situation::StepAgain);
            }
        }
        if node.due.is_some() && due != node.due {
            self.waits_since.insert(at, life);
        }
        if node.owes_cancel && !before.is_some_and(|before| before.owes_cancel) {
            situations.record(Situation::CalledBack);
        }
        Ok(())
    }

    /// A job was committed. What undoes a run is done one after the other.
    pub fn job_committed(&mut self, job: &Job) -> InvariantResult {
        let Some(of) = job.request.place.of_run.as_ref() else { return Ok(()) };
        let id = job.id();
        let Some(run) = self.runs.get(&of.run) else {
            return Err(format!("{id} is a job of {}, which is no run", of.run));
        };
        if run.nodes.get(&of.node).is_none_or(|node| node.attempt < of.attempt) {
            return Err(format!("{id} is a job that its run never sent off"));
        }
        if is_given_up(job) {
            self.given_up.insert(of.run.clone());
        }
        if of.role != Role::Compensation {
            return Ok(());
        }
        let other = self.undoing.get(&of.run).filter(|other| *other != id);
        if !job.state().is_terminal() {
            if let Some(other) = other {
                return Err(format!("{id} undoes something beside {other}"));
            }
            self.undoing.insert(of.run.clone(), id.clone());
            return Ok(());
        }
        // What an ended job still owes is committed later.
        if other.is_none() {
            self.undoing.remove(&of.run);
        }
        let undone = self.undone.entry(of.run.clone()).or_default();
        if job.state() == State::Succeeded && !undone.contains(id) {
            undone.push(id.clone());
        }
        Ok(())
    }
}

/// Whether the job ended by no word of its worker, nor of policy, a person or its own deadline.
fn is_given_up(job: &Job) -> bool {
    job.ending().is_some_and(|ending| match ending.state {
        State::Timeout => job.request.budget.deadline_ms == 0,
        State::Failed => ending.reason != Some(Reason::JobFailed),
        _ => false,
    })
}

/// How one step may follow from what it was.
fn follows(run: &RunId, key: &NodeKey, before: Option<&Node>, node: &Node) -> InvariantResult {
    let Some(before) = before else { return Ok(()) };
    let (was, is) = (before.state, node.state);
    if was != is && !was.may_become(is) {
        return Err(format!("{key} of {run} was {was} and became {is}"));
    }
    if was.is_settled() && (before.output != node.output || before.attempt != node.attempt) {
        return Err(format!("{key} of {run} was {was} and changed"));
    }
    let sends = node.attempt != before.attempt;
    if sends && (node.attempt != before.attempt + 1 || before.sent.is_some()) {
        return Err(format!(
            "{key} of {run} was sent off again as {} while {} is under way",
            node.attempt, before.attempt
        ));
    }
    Ok(())
}

/// A rollback has one thing under way at a time.
fn one_undoing(run: &Run) -> InvariantResult {
    let rounds = run.live().filter(|(key, node)| key.round.is_some() && !node.state.is_settled()).count();
    if matches!(run.head.origin, RunOrigin::Rollback { .. }) && rounds > 1 {
        return Err(format!("{} undoes {rounds} things at once", run.head.id));
    }
    Ok(())
}
