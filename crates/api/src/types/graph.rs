//! A workflow as a picture, in numbers: for whoever draws it themselves.

use reveille_core::flow::Flow;
use reveille_diagram::{Edge, Layout, PassingLine, PlacedStep, STEP_WIDTH, describe};
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
pub struct GraphDetail {
    pub workflow_id: String,
    pub version: u32,
    pub layers: u32,
    /// From the left of the first step to the right of the last.
    pub width: i64,
    /// How wide a step is, in the same unit.
    pub step_width: i64,
    /// Layer by layer, from the left.
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
    pub ways: Vec<GraphWay>,
}

#[derive(Serialize, ToSchema)]
pub struct GraphNode {
    pub step_id: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Its topic, what it asks, or what it runs.
    pub about: String,
    /// What it waits for, under which conditions it begins, what undoes it.
    pub notes: Vec<String>,
    pub is_compensated: bool,
    pub layer: u32,
    /// Counts the steps of its layer, from the left.
    pub position: u32,
    /// Where its middle is.
    pub x: i64,
}

#[derive(Serialize, ToSchema)]
pub struct GraphEdge {
    pub from: String,
    pub to: String,
    /// `after`, `case`, `branch`, `body`, `error`, or `through` (it depends on the parallel step or loop that `from`
    /// belongs to).
    #[serde(rename = "type")]
    pub kind: String,
    /// The cases of a switch.
    pub label: String,
}

/// Lines of one type that leave one step are one line until they part: where it is in the layers that it goes past,
/// from the one below the step on.
#[derive(Serialize, ToSchema)]
pub struct GraphWay {
    pub from: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub x: Vec<i64>,
}

impl GraphDetail {
    pub fn of(flow: &Flow, layout: &Layout) -> Self {
        Self {
            workflow_id: flow.id.to_string(),
            version: flow.version,
            layers: layout.layers,
            width: layout.width,
            step_width: STEP_WIDTH,
            nodes: layout.nodes.iter().map(|node| GraphNode::of(flow, node)).collect(),
            edges: layout.edges.iter().map(GraphEdge::of).collect(),
            ways: layout.passing.iter().map(GraphWay::of).collect(),
        }
    }
}

impl GraphNode {
    fn of(flow: &Flow, node: &PlacedStep) -> Self {
        let step = flow.step(&node.step);
        let described = describe(flow, step);
        Self {
            step_id: node.step.to_string(),
            name: step.name.clone(),
            kind: described.kind.to_owned(),
            about: described.about,
            notes: described.notes,
            is_compensated: step.compensation.is_some(),
            layer: node.layer,
            position: node.position,
            x: node.x,
        }
    }
}

impl GraphEdge {
    fn of(edge: &Edge) -> Self {
        let (from, to) = (edge.from.to_string(), edge.to.to_string());
        Self { from, to, kind: edge.kind.to_string(), label: edge.label.clone() }
    }
}

impl GraphWay {
    fn of(line: &PassingLine) -> Self {
        Self { from: line.from.to_string(), kind: line.kind.to_string(), x: line.x.clone() }
    }
}
