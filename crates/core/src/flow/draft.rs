//! A run while it is being decided about: what it is, and what would change. Only what changes is written.

mod begin;
mod follow;

use super::definition::{Flow, Owner, Step};
use super::node::{Node, NodeKey, SubmittedWork};
use super::run::{Compensation, Run, RunHead};
use super::steps::{self, StepKind};
use super::table::StepState;
use super::template::Template;
use super::timeline::TimelineEntry;
use super::{OUTPUT_LEN_MAX, clock, scope};
use crate::cost::Meter;
use crate::expression::{Expression, from_json, to_json};
use crate::id::StepId;
use crate::time::Millis;
use serde_json::Value as Json;
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Values of a run's context together, in bytes of JSON.
const CONTEXT_LEN_MAX: usize = 1024 * 1024;

pub(super) struct RunDraft<'a> {
    pub flow: &'a Flow,
    pub run: &'a Run,
    pub now: Millis,
    pub head: RunHead,
    /// Charged for everything that is worked out.
    pub meter: &'a Meter,
    /// The run's input as expressions see it: many of them ask for it, and it can be large.
    input_seen: OnceCell<cel::Value>,
    nodes: BTreeMap<NodeKey, Node>,
    context: BTreeMap<String, Option<Arc<Json>>>,
    items: BTreeMap<StepId, Arc<Vec<Json>>>,
    compensations: Vec<Arc<Compensation>>,
    timeline: Vec<TimelineEntry>,
    output: Option<Arc<Json>>,
    work: VecDeque<DraftWork>,
}

/// What follows from something that was just put down. It is done one after the other, so that a list of a
/// thousand items that are worked out on the spot is not a thousand calls deep.
pub(super) enum DraftWork {
    Settled(StepId),
    Rounds(StepId),
    Loop(StepId),
}

impl<'a> RunDraft<'a> {
    pub fn new(flow: &'a Flow, run: &'a Run, now: Millis, meter: &'a Meter) -> Self {
        let (head, nodes) = if run.head.is_ahead(now) {
            clock::set_back(run, flow, now)
        } else {
            (run.head.clone(), BTreeMap::new())
        };
        Self {
            flow,
            run,
            now,
            head,
            meter,
            input_seen: OnceCell::new(),
            nodes,
            context: BTreeMap::new(),
            items: BTreeMap::new(),
            compensations: Vec::new(),
            timeline: Vec::new(),
            output: None,
            work: VecDeque::new(),
        }
    }

    // What is known.

    pub fn get(&self, key: &NodeKey) -> Option<&Node> {
        self.nodes.get(key).or_else(|| self.run.nodes.get(key))
    }

    /// The step as it stands; one that nothing has happened to is pending.
    pub fn node(&self, key: &NodeKey) -> Node {
        self.get(key).cloned().unwrap_or_else(|| Node::new(StepState::Pending, self.now))
    }

    pub fn state(&self, step: &StepId) -> StepState {
        self.get(&NodeKey::of(step)).map_or(StepState::Pending, |node| node.state)
    }

    pub fn context(&self, name: &str) -> Option<Arc<Json>> {
        match self.context.get(name) {
            Some(changed) => changed.clone(),
            None => self.run.context.get(name).cloned(),
        }
    }

    pub fn context_names(&self) -> impl Iterator<Item = &String> {
        self.run.context.keys().chain(self.context.keys())
    }

    pub fn item(&self, step: &StepId, round: u32) -> Option<&Json> {
        let items = self.items.get(step).or_else(|| self.run.items.get(step))?;
        items.get(round as usize)
    }

    pub fn input_seen(&self) -> cel::Value {
        self.input_seen.get_or_init(|| from_json(&self.run.input, self.meter)).clone()
    }

    // Expressions, as this step sees the run.

    pub fn value(&self, key: &NodeKey, expression: &Expression) -> Result<Json, String> {
        to_json(&expression.value(&scope::of(self, key, &[expression]))?, self.meter)
    }

    pub fn holds(&self, key: &NodeKey, expression: &Expression) -> Result<bool, String> {
        expression.holds(&scope::of(self, key, &[expression]))
    }

    pub fn fill(&self, key: &NodeKey, template: &Template) -> Result<Json, String> {
        template.fill(&scope::of(self, key, &template.expressions()))
    }

    /// What the step is given, if that fits its schema.
    pub fn input(&self, key: &NodeKey) -> Result<Json, String> {
        let step = self.flow.step(&key.step);
        let input = self.fill(key, &step.input)?;
        if let Some(schema) = &step.input_schema {
            schema.check(&input, self.meter).map_err(|problem| format!("input: {problem}"))?;
        }
        Ok(input)
    }

    // What changes.

    pub fn work(&mut self, work: DraftWork) {
        self.work.push_back(work);
    }

    pub fn set_items(&mut self, step: &StepId, items: Vec<Json>) {
        self.items.insert(step.clone(), Arc::new(items));
    }

    pub fn set_context(&mut self, name: &str, value: Option<Json>) {
        self.context.insert(name.to_owned(), value.map(Arc::new));
    }

    /// Keeps a value in the context, if there is room.
    pub fn keep(&mut self, name: &str, value: Json) -> Result<(), String> {
        let others =
            self.context_names().filter(|other| *other != name).collect::<std::collections::BTreeSet<_>>();
        let others: usize =
            others.into_iter().filter_map(|name| self.context(name)).map(|value| len(&value)).sum();
        if others + len(&value) > CONTEXT_LEN_MAX {
            return Err(format!("ctx would be larger than {CONTEXT_LEN_MAX} bytes"));
        }
        self.set_context(name, Some(value));
        Ok(())
    }

    /// Puts a step down as it is now, counts it, and notes what became of it.
    pub fn put(&mut self, key: &NodeKey, mut node: Node) {
        let before = self.get(key);
        let was = before.map_or(StepState::Pending, |before| before.state);
        let was_sent = before.is_some_and(|before| before.attempt < node.attempt);
        let owed = before.is_some_and(|before| before.owes_cancel);
        let had_fan = before.is_some_and(|before| before.fan.is_some());
        if was != node.state {
            assert!(was.may_become(node.state), "a step that is {was} does not become {}", node.state);
            node.since = self.now;
        }
        let mut count = |state, is_leaf: bool, by: i64| {
            let counted = match state {
                StepState::Running if is_leaf => &mut self.head.running,
                StepState::Waiting if is_leaf => &mut self.head.waiting,
                _ => return,
            };
            *counted = u32::try_from(i64::from(*counted) + by).unwrap_or_default();
        };
        count(was, !had_fan, -1);
        count(node.state, node.fan.is_none(), 1);
        if key.round.is_none() && node.state.is_settled() && !was.is_settled() {
            self.head.open = self.head.open.saturating_sub(1);
        }
        match (owed, node.owes_cancel) {
            (false, true) => self.head.cancels += 1,
            (true, false) => self.head.cancels = self.head.cancels.saturating_sub(1),
            _ => {}
        }
        if was != node.state || was_sent {
            self.timeline.push(TimelineEntry::of_step(self.now, key, &node));
        }
        self.nodes.insert(key.clone(), node);
    }

    /// The step is over.
    fn settle(&mut self, key: &NodeKey, state: StepState, output: Option<Json>, words: &str) {
        let mut node = self.node(key);
        (node.state, node.due, node.input) = (state, None, None);
        node.output = output.map(Arc::new);
        words.clone_into(&mut node.words);
        self.put(key, node);
        if state != StepState::Succeeded {
            self.cancel_rounds(&key.step, key.round);
        }
        let step = self.flow.step(&key.step);
        match (key.round, &step.owner) {
            (None, _) => self.work(DraftWork::Settled(key.step.clone())),
            (Some(_), Some(Owner::Loop(owner))) => {
                steps::round_over(self, owner, state);
                self.work(DraftWork::Loop(owner.clone()));
            }
            (Some(_), _) => {
                steps::round_over(self, &key.step, state);
                self.work(DraftWork::Rounds(key.step.clone()));
            }
        }
    }

    /// The step has succeeded with this output, if the output is as it should be.
    pub fn succeed(&mut self, key: &NodeKey, output: Option<Json>) {
        let step = self.flow.step(&key.step);
        match self.accept(step, output) {
            Ok(output) => {
                self.settle(key, StepState::Succeeded, output, "");
                self.record_undo(key, step);
            }
            Err(problem) => self.fail(key, &problem),
        }
    }

    fn accept(&mut self, step: &Step, output: Option<Json>) -> Result<Option<Json>, String> {
        let Some(mut output) = output else { return Ok(None) };
        for name in &step.result_data_path {
            let part = output.get_mut(name).map(Json::take);
            output = part.ok_or_else(|| format!("result_data_path: the result has no {name}"))?;
        }
        if let StepKind::Subworkflow(sub) = &step.kind {
            output = sub.mapped(output)?;
        }
        if len(&output) > OUTPUT_LEN_MAX {
            return Err(format!("output: is larger than {OUTPUT_LEN_MAX} bytes"));
        }
        if let Some(schema) = &step.output_schema {
            schema.check(&output, self.meter).map_err(|problem| format!("output: {problem}"))?;
        }
        if let Some(name) = &step.output_path {
            self.keep(name, output.clone())?;
        }
        Ok(Some(output))
    }

    /// Remembers how to undo what has just been done.
    fn record_undo(&mut self, key: &NodeKey, step: &Step) {
        // A step that is gone through in rounds is undone round by round.
        let Some(undo) =
            step.compensation.as_ref().filter(|_| key.round.is_some() || step.for_each.is_none())
        else {
            return;
        };
        let (input, problem) = match self.fill(key, &undo.input) {
            Ok(input) => (input, String::new()),
            Err(problem) => (Json::Null, problem),
        };
        let job = self.get(key).and_then(Node::job).cloned();
        let undo = Compensation { node: key.clone(), job, input, problem, client: None };
        self.record(Arc::new(undo));
    }

    pub fn record(&mut self, undo: Arc<Compensation>) {
        self.compensations.push(undo);
        self.head.compensations += 1;
    }

    pub fn note(&mut self, line: TimelineEntry) {
        self.timeline.push(line);
    }

    pub fn fail(&mut self, key: &NodeKey, words: &str) {
        self.end_badly(key, StepState::Failed, words);
    }

    pub fn end_badly(&mut self, key: &NodeKey, state: StepState, words: &str) {
        self.settle(key, state, None, words);
    }

    fn skip(&mut self, step: &StepId, words: &str) {
        self.settle(&NodeKey::of(step), StepState::Skipped, None, words);
    }

    /// It is not wanted any more. What it has sent off is called back.
    fn cancel(&mut self, key: &NodeKey, words: &str) {
        let mut node = self.node(key);
        node.state = StepState::Cancelled;
        node.owes_cancel = matches!(node.sent, Some(SubmittedWork::Job(_) | SubmittedWork::Run(_)));
        (node.due, node.input) = (None, None);
        words.clone_into(&mut node.words);
        self.put(key, node);
    }

    /// Calls back every round of a step but the one that is over.
    fn cancel_rounds(&mut self, step: &StepId, but: Option<u32>) {
        if but.is_some() {
            return;
        }
        let body = match &self.flow.step(step).kind {
            StepKind::Loop(looping) => &looping.body,
            _ => step,
        };
        for key in self.live_rounds(body) {
            self.cancel(&key, "is not wanted any more");
        }
    }

    fn live_rounds(&self, step: &StepId) -> Vec<NodeKey> {
        let range = NodeKey::round(step, 0)..=NodeKey::round(step, u32::MAX);
        let mut keys: Vec<NodeKey> = self
            .run
            .live_in(range.clone())
            .chain(self.nodes.range(range).map(|(key, _)| key))
            .cloned()
            .collect();
        keys.sort();
        keys.dedup();
        keys.retain(|key| self.get(key).is_some_and(|node| !node.state.is_settled()));
        keys
    }
}

fn len(json: &Json) -> usize {
    json.to_string().len()
}
