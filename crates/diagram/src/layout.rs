//! The layout of a workflow: the layer of each step, its position there, and where the lines between steps
//! go. The same layout is drawn as text and as SVG, and handed out as data.
//!
//! A step's layer is one below the lowest that it waits for. Lines of one kind that leave one step are one line
//! until they part, so that a step that everything waits for is one line down the page and not a hundred.

mod columns;
mod order;

use order::Slots;
use reveille_core::flow::{Flow, Owner, Step, StepKind};
use reveille_core::id::StepId;
use std::collections::BTreeMap;
use std::fmt;

/// How wide a step is; everything else is measured by that.
pub const STEP_WIDTH: i64 = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Layer by layer, left to right.
    pub nodes: Vec<PlacedStep>,
    pub edges: Vec<Edge>,
    pub passing: Vec<PassingLine>,
    pub layers: u32,
    /// From the left of the first step to the right of the last.
    pub width: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedStep {
    pub step: StepId,
    pub layer: u32,
    /// Counts the steps of its layer, from the left.
    pub position: u32,
    /// Where its middle is.
    pub x: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    pub from: StepId,
    pub to: StepId,
    pub kind: EdgeKind,
    /// The cases of a switch; nothing for the others.
    pub label: String,
}

/// What the lower step has to do with the upper one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// Depends on it.
    After,
    /// Is chosen by it, a switch.
    Case,
    /// Begins with it, a parallel step.
    Branch,
    /// Is repeated by it, a loop.
    Body,
    /// Handles its failure.
    Error,
    /// Depends on the parallel step or loop that this one belongs to.
    Through,
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::After => "after",
            Self::Case => "case",
            Self::Branch => "branch",
            Self::Body => "body",
            Self::Error => "error",
            Self::Through => "through",
        })
    }
}

/// A line past other layers: those between a step and the lowest that its lines of this kind lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassingLine {
    pub from: StepId,
    pub kind: EdgeKind,
    /// Where it is in each of them, from the layer below the step on.
    pub x: Vec<i64>,
}

impl Layout {
    pub fn of(flow: &Flow) -> Self {
        let layers = layers(flow);
        let edges = edges(flow);
        let mut slots = Slots::new(flow, &layers, &edges);
        slots.order();
        let x = columns::columns(&slots);
        let left = slots.steps().map(|(slot, _)| x[slot]).min().unwrap_or_default() - STEP_WIDTH / 2;
        let right = slots.steps().map(|(slot, _)| x[slot]).max().unwrap_or_default() + STEP_WIDTH / 2;
        let mut nodes = Vec::new();
        for (layer, row) in slots.rows.iter().enumerate() {
            let steps = row.iter().filter_map(|slot| Some((*slot, slots.step(*slot)?)));
            nodes.extend(steps.enumerate().map(|(position, (slot, step))| PlacedStep {
                step: step.clone(),
                layer: layer as u32,
                position: position as u32,
                x: x[slot] - left,
            }));
        }
        let line = |((from, kind), of): (&(StepId, EdgeKind), &Vec<usize>)| PassingLine {
            from: from.clone(),
            kind: *kind,
            x: of.iter().map(|slot| x[*slot] - left).collect(),
        };
        let passing = slots.passing.iter().filter(|(_, slots)| !slots.is_empty()).map(line).collect();
        Self { nodes, edges, passing, layers: slots.rows.len() as u32, width: right - left }
    }
}

/// A step's layer: one below the lowest of those that are over before it begins.
fn layers(flow: &Flow) -> BTreeMap<StepId, usize> {
    let mut layers = BTreeMap::new();
    for step in flow.in_order() {
        let over = step.depends_on.iter().chain(&step.handles);
        let over = over.map(|before| lowest(flow, before, &layers));
        let owner = step.owner.iter().map(|owner| match owner {
            Owner::Switch(owner) => lowest(flow, owner, &layers),
            Owner::Parallel(owner) | Owner::Loop(owner) => layers[owner],
        });
        let layer = over.chain(owner).map(|above| above + 1).max().unwrap_or(0);
        layers.insert(step.id.clone(), layer);
    }
    layers
}

/// The lowest layer of a step and what belongs to it: a parallel step is over after its branches.
fn lowest(flow: &Flow, step: &StepId, layers: &BTreeMap<StepId, usize>) -> usize {
    let inner = within(flow.step(step)).into_iter().map(|inner| lowest(flow, &inner, layers)).max();
    layers[step].max(inner.unwrap_or(0))
}

/// The steps that are over before this one is.
fn within(step: &Step) -> Vec<StepId> {
    match &step.kind {
        StepKind::Parallel(_) | StepKind::Loop(_) => step.kind.owned(),
        _ => Vec::new(),
    }
}

/// Between two steps there is one line at most; the first that is found here says the most.
fn edges(flow: &Flow) -> Vec<Edge> {
    let mut edges: BTreeMap<(StepId, StepId), Edge> = BTreeMap::new();
    let mut add = |from: &StepId, to: &StepId, kind, label: String| {
        let edge = Edge { from: from.clone(), to: to.clone(), kind, label };
        edges.entry((from.clone(), to.clone())).or_insert(edge);
    };
    for step in flow.in_order() {
        for failed in &step.handles {
            add(failed, &step.id, EdgeKind::Error, String::new());
        }
        match &step.owner {
            Some(Owner::Switch(owner)) => {
                add(owner, &step.id, EdgeKind::Case, cases(flow.step(owner), &step.id));
            }
            Some(Owner::Parallel(owner)) => add(owner, &step.id, EdgeKind::Branch, String::new()),
            Some(Owner::Loop(owner)) => add(owner, &step.id, EdgeKind::Body, String::new()),
            None => {}
        }
        for on in step.depends_on.iter().filter(|on| within(flow.step(on)).is_empty()) {
            add(on, &step.id, EdgeKind::After, String::new());
        }
        for on in &step.depends_on {
            for last in last_within(flow, on) {
                add(&last, &step.id, EdgeKind::Through, String::new());
            }
        }
    }
    edges.into_values().collect()
}

/// The branches and bodies, and theirs in turn, that a step is over with.
fn last_within(flow: &Flow, step: &StepId) -> Vec<StepId> {
    let last = |inner: StepId| match last_within(flow, &inner) {
        deeper if deeper.is_empty() => vec![inner],
        deeper => deeper,
    };
    within(flow.step(step)).into_iter().flat_map(last).collect()
}

/// What a switch compares with to choose `step`.
pub fn cases(switch: &Step, step: &StepId) -> String {
    let StepKind::Switch(switch) = &switch.kind else { return String::new() };
    let cases = switch.cases.iter().filter(|(_, next)| next == step);
    let mut cases: Vec<String> =
        cases.map(|(when, _)| when.as_str().map_or_else(|| when.to_string(), str::to_owned)).collect();
    if switch.default.as_ref() == Some(step) {
        cases.push("otherwise".to_owned());
    }
    cases.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::flow::WorkflowDocument;
    use reveille_core::time::Millis;
    use serde_json::{Value as Json, json};

    fn layout(steps: Json) -> Layout {
        let mut document = json!({"id": "w", "name": "a workflow"});
        document["steps"] = steps;
        let document: WorkflowDocument = serde_json::from_value(document).unwrap();
        Layout::of(&Flow::check(&document, 1, Millis(0)).unwrap_or_else(|problem| panic!("{problem}")))
    }

    /// Layer by layer, each from left to right.
    fn rows(layout: &Layout) -> String {
        let mut rows = vec![Vec::new(); layout.layers as usize];
        for node in &layout.nodes {
            assert_eq!(node.position as usize, rows[node.layer as usize].len(), "{node:?}");
            rows[node.layer as usize].push(node.step.as_str());
        }
        rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>().join(" | ")
    }

    fn after(before: &[&str]) -> Json {
        json!({"topic": "job.x", "depends_on": before})
    }

    #[test]
    fn a_step_is_one_layer_below_the_lowest_that_it_waits_for() {
        let steps = json!({"a": after(&[]), "b": after(&["a"]), "c": after(&["a", "b"]), "d": after(&[])});
        assert_eq!(rows(&layout(steps)), "a d | b | c");
        let steps = json!({
            "fan": {"type": "parallel", "input": {"steps": ["x", "y"]}},
            "x": after(&[]), "y": after(&[]),
            "then": after(&["fan"]),
        });
        let drawn = layout(steps);
        assert_eq!(rows(&drawn), "fan | x y | then", "what follows a parallel step is below its branches");
        let edges = drawn.edges.iter().map(|edge| format!("{}-{}-{}", edge.from, edge.kind, edge.to));
        let edges: Vec<_> = edges.collect();
        assert_eq!(edges, ["fan-branch-x", "fan-branch-y", "x-through-then", "y-through-then"]);
    }

    #[test]
    fn lines_that_need_not_cross_do_not() {
        // In the order of their names, both pairs would cross.
        let steps = json!({"a": after(&[]), "b": after(&[]), "y": after(&["b"]), "z": after(&["a"])});
        assert_eq!(rows(&layout(steps)), "a b | z y");
        let steps = json!({
            "a": after(&[]), "b": after(&[]), "c": after(&[]),
            "p": after(&["c"]), "q": after(&["b"]), "r": after(&["a"]),
            "t": after(&["p"]), "u": after(&["q", "r"]),
        });
        assert_eq!(rows(&layout(steps)), "a b c | r q p | u t");
    }

    #[test]
    fn no_two_steps_overlap_and_a_chain_is_a_straight_line() {
        let drawn = layout(json!({"a": after(&[]), "b": after(&["a"]), "c": after(&["b"])}));
        assert!(drawn.nodes.iter().all(|node| node.x == STEP_WIDTH / 2), "{:?}", drawn.nodes);
        assert_eq!(drawn.width, STEP_WIDTH);
        let mut wide = json!({"a": after(&[]), "end": after(&[])});
        for n in 0..40 {
            wide[format!("s{n}")] = after(if n % 3 == 0 { &[] } else { &["a"] });
            wide[format!("t{n}")] = after(&[&format!("s{n}"), "a"]);
        }
        wide["end"] = after(&["t1", "t7", "a", "s3"]);
        let drawn = layout(wide);
        for pair in drawn.nodes.windows(2).filter(|pair| pair[0].layer == pair[1].layer) {
            assert!(pair[1].x - pair[0].x >= STEP_WIDTH, "{pair:?}");
        }
        assert!(
            drawn.nodes.iter().all(|node| (STEP_WIDTH / 2..=drawn.width - STEP_WIDTH / 2).contains(&node.x))
        );
        let line = drawn.passing.iter().find(|line| line.from.as_str() == "a").expect("a goes past a layer");
        assert_eq!(line.x.len(), 2, "a's lines go past the layers between it and `end`: {line:?}");
    }

    #[test]
    fn the_largest_graph_is_laid_out() {
        let mut steps = json!({});
        for n in 0..500 {
            let before: Vec<String> = (n.max(12) - 12..n).map(|before| format!("s{before}")).collect();
            steps[format!("s{n}")] = after(&before.iter().map(String::as_str).collect::<Vec<_>>());
        }
        let drawn = layout(steps);
        assert_eq!((drawn.layers, drawn.nodes.len(), drawn.edges.len()), (500, 500, 500 * 12 - 12 * 13 / 2));
    }
}
