//! The order within layers: every slot goes where those that it is joined with are in the middle of, layer by
//! layer, down and up again, and the order with the fewest crossings is kept.

use super::{Edge, EdgeKind};
use reveille_core::flow::Flow;
use reveille_core::id::StepId;
use std::collections::BTreeMap;

/// How often the layers are gone through, down and up.
const SWEEPS: usize = 8;
/// A graph with more places than this is drawn as it comes: nobody sees its crossings.
const SWEPT_MAX: usize = 5_000;

/// Everything that has a place in a layer: steps, and lines on their way past.
pub struct Slots {
    steps: Vec<Option<StepId>>,
    /// The slots of every layer, from the left.
    pub rows: Vec<Vec<usize>>,
    /// What each is joined with in the layer above, and below.
    pub above: Vec<Vec<usize>>,
    pub below: Vec<Vec<usize>>,
    /// The slots of every line that goes past layers, from the top.
    pub passing: BTreeMap<(StepId, EdgeKind), Vec<usize>>,
}

impl Slots {
    pub fn new(flow: &Flow, layers: &BTreeMap<StepId, usize>, edges: &[Edge]) -> Self {
        let count = layers.values().max().map_or(0, |lowest| lowest + 1);
        let mut slots = Self {
            steps: Vec::new(),
            rows: vec![Vec::new(); count],
            above: Vec::new(),
            below: Vec::new(),
            passing: BTreeMap::new(),
        };
        let mut of_step = BTreeMap::new();
        for step in flow.in_order() {
            let slot = slots.add(layers[&step.id], Some(step.id.clone()));
            of_step.insert(&step.id, slot);
        }
        let mut bundles: BTreeMap<(&StepId, EdgeKind), Vec<&StepId>> = BTreeMap::new();
        for edge in edges {
            bundles.entry((&edge.from, edge.kind)).or_default().push(&edge.to);
        }
        for ((from, kind), targets) in bundles {
            let first = layers[from] + 1;
            let lowest = targets.iter().map(|to| layers[*to]).max().unwrap_or(first);
            let mut line = Vec::new();
            for layer in first..lowest {
                let slot = slots.add(layer, None);
                slots.join(line.last().copied().unwrap_or(of_step[from]), slot);
                line.push(slot);
            }
            for to in targets {
                let last = (layers[to] - first).checked_sub(1).map(|between| line[between]);
                slots.join(last.unwrap_or(of_step[from]), of_step[to]);
            }
            slots.passing.insert((from.clone(), kind), line);
        }
        slots
    }

    fn add(&mut self, layer: usize, step: Option<StepId>) -> usize {
        self.steps.push(step);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        let slot = self.steps.len() - 1;
        self.rows[layer].push(slot);
        slot
    }

    fn join(&mut self, upper: usize, lower: usize) {
        self.below[upper].push(lower);
        self.above[lower].push(upper);
    }

    pub fn step(&self, slot: usize) -> Option<&StepId> {
        self.steps[slot].as_ref()
    }

    pub fn steps(&self) -> impl Iterator<Item = (usize, &StepId)> {
        self.steps.iter().enumerate().filter_map(|(slot, step)| Some((slot, step.as_ref()?)))
    }

    /// Puts every layer in order.
    pub fn order(&mut self) {
        if self.steps.len() > SWEPT_MAX {
            return;
        }
        let mut best = (self.crossings(), self.rows.clone());
        for _ in 0..SWEEPS {
            for layer in 1..self.rows.len() {
                self.sort_by_above(layer);
            }
            for layer in (0..self.rows.len() - 1).rev() {
                self.sort_by_below(layer);
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.rows.clone());
            }
        }
        self.rows = best.1;
    }

    fn sort_by_above(&mut self, layer: usize) {
        self.rows[layer] = sorted(&self.rows[layer], &self.above, &self.places(layer - 1));
    }

    fn sort_by_below(&mut self, layer: usize) {
        self.rows[layer] = sorted(&self.rows[layer], &self.below, &self.places(layer + 1));
    }

    fn places(&self, layer: usize) -> BTreeMap<usize, usize> {
        self.rows[layer].iter().enumerate().map(|(place, slot)| (*slot, place)).collect()
    }

    fn crossings(&self) -> usize {
        (1..self.rows.len()).map(|layer| self.crossings_above(layer)).sum()
    }

    /// Two lines cross if they leave in one order and arrive in the other.
    fn crossings_above(&self, layer: usize) -> usize {
        let places = self.places(layer);
        let mut arrived = vec![0usize; self.rows[layer].len() + 1];
        let (mut crossings, mut count) = (0, 0);
        for upper in &self.rows[layer - 1] {
            let mut targets: Vec<usize> = self.below[*upper].iter().map(|lower| places[lower]).collect();
            targets.sort_unstable();
            // Those of one slot do not cross each other, so they count only once all of them were asked.
            crossings += targets.iter().map(|place| count - sum_up_to(&arrived, *place)).sum::<usize>();
            for place in targets {
                add_at(&mut arrived, place);
                count += 1;
            }
        }
        crossings
    }
}

/// A layer by where those that it is joined with stand in the one beside it.
fn sorted(row: &[usize], joined: &[Vec<usize>], places: &BTreeMap<usize, usize>) -> Vec<usize> {
    let middle = |(place, slot): (usize, &usize)| {
        let joined = &joined[*slot];
        let sum: usize = joined.iter().map(|other| places[other]).sum();
        let middle = if joined.is_empty() { place as f64 } else { sum as f64 / joined.len() as f64 };
        (middle, *slot)
    };
    let mut sorted: Vec<(f64, usize)> = row.iter().enumerate().map(middle).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    sorted.into_iter().map(|(_, slot)| slot).collect()
}

// Sums over a growing list, in the time of its logarithm (a Fenwick tree).

fn add_at(sums: &mut [usize], place: usize) {
    let mut at = place + 1;
    while at < sums.len() {
        sums[at] += 1;
        at += at & at.wrapping_neg();
    }
}

fn sum_up_to(sums: &[usize], place: usize) -> usize {
    let (mut at, mut sum) = (place + 1, 0);
    while at > 0 {
        sum += sums[at];
        at -= at & at.wrapping_neg();
    }
    sum
}
