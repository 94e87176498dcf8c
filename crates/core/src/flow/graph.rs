//! What comes before what. Every step has a beginning and an end of its own here: a parallel step begins
//! before its branches and ends after them.

use super::definition::{FlowProblem, Owner, Step};
use crate::id::StepId;
use std::collections::{BTreeMap, BTreeSet};

/// A step's beginning (even) or end (odd).
type Point = usize;

pub struct Graph {
    ids: Vec<StepId>,
    places: BTreeMap<StepId, usize>,
    before: Vec<Vec<Point>>,
    /// The steps in an order in which they could run.
    order: Vec<usize>,
}

impl Graph {
    pub fn of(steps: &BTreeMap<StepId, Step>) -> Result<Self, FlowProblem> {
        let ids: Vec<StepId> = steps.keys().cloned().collect();
        let places: BTreeMap<StepId, usize> = ids.iter().cloned().zip(0..).collect();
        let mut before = vec![Vec::new(); 2 * ids.len()];
        let (begin, end) = (|id: &StepId| 2 * places[id], |id: &StepId| 2 * places[id] + 1);
        for step in steps.values() {
            before[end(&step.id)].push(begin(&step.id));
            for dependency in step.depends_on.iter().chain(&step.handles) {
                before[begin(&step.id)].push(end(dependency));
            }
            match &step.owner {
                Some(Owner::Switch(owner)) => before[begin(&step.id)].push(end(owner)),
                Some(Owner::Parallel(owner) | Owner::Loop(owner)) => {
                    before[begin(&step.id)].push(begin(owner));
                    before[end(owner)].push(end(&step.id));
                }
                None => {}
            }
        }
        let mut graph = Self { ids, places, before, order: Vec::new() };
        graph.order = graph.sorted()?;
        Ok(graph)
    }

    /// Where a step stands in the order.
    pub fn index(&self, step: &StepId) -> u32 {
        let place = self.places[step];
        self.order.iter().position(|other| *other == place).unwrap_or_default() as u32
    }

    /// The steps that are over before `step` begins, and those that are over before it ends: branches and
    /// the body of a loop.
    pub fn over_before(&self, step: &StepId) -> (BTreeSet<StepId>, BTreeSet<StepId>) {
        let place = self.places[step];
        let begun = self.reach(2 * place);
        let ended = self.reach(2 * place + 1);
        let ends = |points: &BTreeSet<Point>| {
            let ends = points.iter().filter(|point| **point % 2 == 1 && **point / 2 != place);
            ends.map(|point| self.ids[point / 2].clone()).collect()
        };
        (ends(&begun), ends(&ended))
    }

    fn reach(&self, from: Point) -> BTreeSet<Point> {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(point) = open.pop() {
            for before in &self.before[point] {
                if found.insert(*before) {
                    open.push(*before);
                }
            }
        }
        found
    }

    fn sorted(&self) -> Result<Vec<usize>, FlowProblem> {
        let mut left: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut after = vec![Vec::new(); self.before.len()];
        for (point, before) in self.before.iter().enumerate() {
            for earlier in before {
                after[*earlier].push(point);
            }
        }
        let mut ready: BTreeSet<Point> = (0..left.len()).filter(|point| left[*point] == 0).collect();
        let mut order = Vec::new();
        let mut placed = 0;
        while let Some(point) = ready.pop_first() {
            placed += 1;
            if point % 2 == 0 {
                order.push(point / 2);
            }
            for next in &after[point] {
                left[*next] -= 1;
                if left[*next] == 0 {
                    ready.insert(*next);
                }
            }
        }
        if placed == left.len() {
            return Ok(order);
        }
        let stuck = (0..left.len()).filter(|point| left[*point] > 0 && self.reach(*point).contains(point));
        let stuck: BTreeSet<&str> = stuck.map(|point| self.ids[point / 2].as_str()).collect();
        let names = stuck.iter().copied().collect::<Vec<_>>().join(", ");
        let first = stuck.first().copied().unwrap_or_default();
        Err(FlowProblem::new("depends_on", format!("these wait for each other: {names}")).of_step(first))
    }
}
