//! A workflow as a picture, in numbers.

use reveille_api_types::graph::{GraphDetail, GraphEdge, GraphNode, GraphWay};
use reveille_core::flow::Flow;
use reveille_diagram::{Edge, Layout, PassingLine, PlacedStep, STEP_WIDTH, describe};

pub fn graph_detail(flow: &Flow, layout: &Layout) -> GraphDetail {
    GraphDetail {
        workflow_id: flow.id.to_string(),
        version: flow.version,
        layers: layout.layers,
        width: layout.width,
        step_width: STEP_WIDTH,
        nodes: layout.nodes.iter().map(|placed| node(flow, placed)).collect(),
        edges: layout.edges.iter().map(edge).collect(),
        ways: layout.passing.iter().map(way).collect(),
    }
}

fn node(flow: &Flow, node: &PlacedStep) -> GraphNode {
    let step = flow.step(&node.step);
    let described = describe(flow, step);
    GraphNode {
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

fn edge(edge: &Edge) -> GraphEdge {
    let (from, to) = (edge.from.to_string(), edge.to.to_string());
    GraphEdge { from, to, kind: edge.kind.to_string(), label: edge.label.clone() }
}

fn way(way: &PassingLine) -> GraphWay {
    GraphWay { from: way.from.to_string(), kind: way.kind.to_string(), x: way.x.clone() }
}
