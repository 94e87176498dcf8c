//! A workflow as a picture, in numbers: for whoever draws it themselves.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphWay {
    pub from: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub x: Vec<i64>,
}
