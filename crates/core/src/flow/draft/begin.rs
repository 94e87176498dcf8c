//! How steps begin, and when their time comes.

use super::RunDraft;
use crate::flow::definition::{Owner, Retry, RunWhen, Step};
use crate::flow::node::{NodeDue, NodeKey, SubmittedWork};
use crate::flow::rollback;
use crate::flow::steps::{self, Delay};
use crate::flow::table::StepState;
use crate::id::StepId;
use serde_json::Value as Json;

impl RunDraft<'_> {
    /// Begins a step whose time has come, or skips it if that will never be.
    pub fn try_begin(&mut self, id: &StepId) {
        if self.head.state.is_terminal() || self.get(&NodeKey::of(id)).is_some() {
            return;
        }
        let step = self.flow.step(id);
        match self.gate(step) {
            BeginGate::Closed => return,
            BeginGate::Never(words) => return self.skip(id, words),
            BeginGate::Open => {}
        }
        let unmet = step.depends_on.iter().find(|on| !self.state(on).is_settled());
        if unmet.is_some() {
            return;
        }
        if step.run_when == RunWhen::Succeeded
            && let Some(on) = step.depends_on.iter().find(|on| self.state(on) != StepState::Succeeded)
        {
            let words = format!("{on} is {}", self.state(on));
            return self.skip(id, &words);
        }
        self.begin(step);
    }

    fn gate(&self, step: &Step) -> BeginGate {
        match &step.owner {
            Some(Owner::Switch(owner)) => match self.get(&NodeKey::of(owner)) {
                Some(node) if !node.state.is_settled() => BeginGate::Closed,
                None => BeginGate::Closed,
                Some(node) => match node.output.as_deref() {
                    Some(Json::String(chosen)) if chosen == step.id.as_str() => BeginGate::Open,
                    _ => BeginGate::Never("switch_branch_not_taken"),
                },
            },
            Some(Owner::Parallel(owner)) => match self.state(owner) {
                StepState::Running => BeginGate::Open,
                state if state.is_settled() => BeginGate::Never("its parallel step is over"),
                _ => BeginGate::Closed,
            },
            Some(Owner::Loop(_)) => BeginGate::Closed,
            None if step.handles.is_empty() => BeginGate::Open,
            None => {
                let states = step.handles.iter().map(|of| self.state(of)).collect::<Vec<_>>();
                if states.iter().any(|state| state.is_failure()) {
                    BeginGate::Open
                } else if states.iter().all(|state| state.is_settled()) {
                    BeginGate::Never("nothing failed")
                } else {
                    BeginGate::Closed
                }
            }
        }
    }

    fn begin(&mut self, step: &Step) {
        let key = NodeKey::of(&step.id);
        if let Some(condition) = &step.condition {
            match self.holds(&key, condition) {
                Ok(true) => {}
                Ok(false) => return self.skip(&step.id, "its condition is false"),
                Err(problem) => return self.fail(&key, &format!("condition: {problem}")),
            }
        }
        self.delay_or_go(&key);
    }

    /// Begins one round of a step.
    pub fn begin_now(&mut self, round: &NodeKey) {
        match &self.flow.step(&round.step).owner {
            Some(Owner::Loop(_)) => self.delay_or_go(round),
            _ => self.go(round),
        }
    }

    fn delay_or_go(&mut self, key: &NodeKey) {
        let at = match &self.flow.step(&key.step).delay {
            None => None,
            Some(Delay::For(ms)) => Some(Ok(self.now + *ms)),
            Some(Delay::Until(until)) => Some(self.fill(key, until).and_then(|until| steps::moment(&until))),
        };
        match at {
            Some(Err(problem)) => self.fail(key, &format!("delay_until: {problem}")),
            Some(Ok(at)) if at > self.now => {
                let mut node = self.node(key);
                node.state = StepState::Waiting;
                node.due = Some(NodeDue::Begin(at));
                "its delay is not over".clone_into(&mut node.words);
                self.put(key, node);
            }
            _ => self.go(key),
        }
    }

    /// The step begins: nothing is in its way any more.
    fn go(&mut self, key: &NodeKey) {
        let step = self.flow.step(&key.step);
        match &step.for_each {
            Some(for_each) if key.round.is_none() => steps::begin_rounds(self, &step.id, for_each),
            _ => step.kind.begin(self, key),
        }
    }

    /// The time of a step has come.
    pub fn pass(&mut self, key: &NodeKey, due: NodeDue) {
        let mut node = self.node(key);
        node.due = None;
        node.words.clear();
        match due {
            NodeDue::Begin(_) | NodeDue::Retry(_) => {
                self.nodes.insert(key.clone(), node);
                self.go(key);
            }
            NodeDue::TimeOut(_) => {
                node.owes_cancel = matches!(node.sent, Some(SubmittedWork::Job(_) | SubmittedWork::Run(_)));
                self.nodes.insert(key.clone(), node.clone());
                self.head.cancels += u32::from(node.owes_cancel);
                self.end_badly(key, StepState::TimedOut, "took too long");
            }
        }
    }

    /// How often and when a step is tried again. What undoes something says so itself.
    pub fn retry_of(&self, key: &NodeKey) -> Retry {
        let step = self.flow.step(&key.step);
        let is_rollback = step.for_each.as_ref().is_some_and(|for_each| for_each.is_tolerant);
        let entry = key.round.filter(|_| is_rollback).and_then(|round| self.item(&key.step, round));
        entry.and_then(rollback::retry_of).unwrap_or(step.retry)
    }

    pub fn retry(&mut self, key: &NodeKey, retry: Retry, words: &str) {
        let mut node = self.node(key);
        node.state = StepState::Waiting;
        node.due = Some(NodeDue::Retry(self.now + retry.delay_ms(node.attempt)));
        (node.sent, node.input) = (None, None);
        words.clone_into(&mut node.words);
        self.put(key, node);
    }
}

enum BeginGate {
    Open,
    /// Not yet.
    Closed,
    Never(&'static str),
}
