//! What follows when a step is over, to the end of the run.

use super::{DraftWork, RunDraft};
use crate::flow::definition::Owner;
use crate::flow::node::{Fan, Node, NodeDue, NodeKey};
use crate::flow::steps::{self, StepKind};
use crate::flow::table::{RunState, StepState};
use crate::flow::timeline::{TimelineEntry, TimelineKind};
use crate::flow::{RunChange, scope};
use crate::id::StepId;
use crate::time::Millis;
use std::sync::Arc;

impl RunDraft<'_> {
    /// Does everything that follows from what was put down.
    pub fn follow_up(&mut self) {
        while let Some(work) = self.work.pop_front() {
            if self.head.state.is_terminal() {
                break;
            }
            match work {
                DraftWork::Settled(step) => self.settled(&step),
                DraftWork::Rounds(step) => {
                    if let Some(for_each) = &self.flow.step(&step).for_each {
                        steps::feed_rounds(self, &step, for_each);
                    }
                }
                DraftWork::Loop(step) => {
                    if let StepKind::Loop(looping) = &self.flow.step(&step).kind {
                        steps::feed_loop(self, &step, looping);
                    }
                }
            }
        }
    }

    /// Says where the run stands when everything that follows is done.
    pub fn finish(mut self) -> RunChange {
        self.follow_up();
        if !self.head.state.is_terminal() {
            if self.head.open == 0 {
                self.end(RunState::Succeeded, "");
            } else {
                let state = if self.head.running > 0 { RunState::Running } else { RunState::Waiting };
                self.become_(state);
            }
        }
        self.head.due = self.next_due();
        self.head.updated_at = self.now;
        self.head.revision += 1;
        self.head.lines += self.timeline.len() as u64;
        RunChange {
            head: self.head,
            nodes: self.nodes.into_iter().collect(),
            context: self.context.into_iter().collect(),
            items: self.items.into_iter().collect(),
            compensations: self.compensations,
            timeline: self.timeline,
            output: self.output,
        }
    }

    /// A step is over: whoever waited for it is looked at.
    fn settled(&mut self, id: &StepId) {
        let step = self.flow.step(id);
        let node = self.node(&NodeKey::of(id));
        let is_branch = matches!(step.owner, Some(Owner::Parallel(_)));
        if node.state.is_failure() && step.on_error.is_none() && !is_branch {
            let state = if node.state == StepState::Denied { RunState::Denied } else { RunState::Failed };
            return self.end(state, &format!("step {id}: {}", node.words));
        }
        if let Some(Owner::Parallel(owner)) = &step.owner
            && let StepKind::Parallel(parallel) = &self.flow.step(owner).kind
        {
            steps::feed_branches(self, owner, parallel);
        }
        match &step.kind {
            StepKind::Parallel(parallel) => {
                for branch in &parallel.steps {
                    let key = NodeKey::of(branch);
                    match self.get(&key) {
                        None => self.skip(branch, "its parallel step is over"),
                        Some(branch_node) if !branch_node.state.is_settled() => {
                            self.cancel_rounds(branch, None);
                            self.cancel(&key, "its parallel step is over");
                            self.work(DraftWork::Settled(branch.clone()));
                        }
                        Some(_) => {}
                    }
                }
            }
            StepKind::Loop(looping) => self.close_body(&looping.body, &node),
            kind => {
                for owned in kind.owned() {
                    self.try_begin(&owned);
                }
            }
        }
        for next in step.on_error.iter().chain(&step.dependents) {
            self.try_begin(next);
        }
    }

    /// The body of a loop is over with its loop, as the last round left it.
    fn close_body(&mut self, body: &StepId, of: &Node) {
        let last = of.fan.filter(|fan| fan.begun > 0).map(|fan| NodeKey::round(body, fan.begun - 1));
        let last = last.and_then(|key| self.get(&key).cloned());
        let mut node = self.node(&NodeKey::of(body));
        node.state = last.as_ref().map_or(StepState::Skipped, |last| last.state);
        node.output = last.and_then(|last| last.output);
        node.fan = Some(Fan::default());
        self.put(&NodeKey::of(body), node);
    }

    /// The run is over. What is under way is called back, and what was done is to be undone if that was asked.
    pub fn end(&mut self, state: RunState, error: &str) {
        let live: Vec<NodeKey> =
            self.run.live().map(|(key, _)| key).chain(self.nodes.keys()).cloned().collect();
        for key in live {
            if self.get(&key).is_some_and(|node| !node.state.is_settled()) {
                self.cancel(&key, "the run is over");
            }
        }
        let mut state = state;
        let mut error = error.to_owned();
        if state == RunState::Succeeded {
            match scope::output(self) {
                Ok(output) => self.output = output.map(Arc::new),
                Err(problem) => (state, error) = (RunState::Failed, format!("output: {problem}")),
            }
        }
        self.head.error = error;
        self.head.ended_at = Some(self.now);
        self.head.owes_rollback = self.head.compensations > 0 && self.flow.undoes(state);
        self.become_(state);
    }

    fn become_(&mut self, state: RunState) {
        if self.head.state != state {
            assert!(
                self.head.state.may_become(state),
                "a run that is {} does not become {state}",
                self.head.state
            );
            self.head.state = state;
            self.timeline.push(TimelineEntry::of_run(
                self.now,
                TimelineKind::RunStatus,
                state,
                &self.head.error,
            ));
        }
    }

    fn next_due(&self) -> Option<Millis> {
        if self.head.state.is_terminal() {
            return None;
        }
        let old = self.run.dues().iter().find(|(_, key)| !self.nodes.contains_key(key)).map(|(at, _)| *at);
        let new = self.nodes.values().filter_map(|node| node.due).map(NodeDue::at).min();
        [old, new, self.head.deadline].into_iter().flatten().min()
    }
}
