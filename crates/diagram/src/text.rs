//! A workflow in a terminal: a line per step, layer by layer, with the lines between them on the left. A step
//! that others wait for holds a lane down to the last of them.

use crate::clip;
use crate::describe::describe;
use crate::layout::Layout;
use reveille_core::flow::Flow;
use reveille_core::id::StepId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// With more lanes there is no room for words beside them; then the words stand alone.
const LANES_MAX: usize = 12;
const ID_LEN_MAX: usize = 24;

/// Lines of at most `width` characters.
pub fn draw_text(flow: &Flow, layout: &Layout, width: usize) -> String {
    let rows = rows(layout);
    let lanes = rows.iter().map(|row| row.lanes.chars().count()).max().unwrap_or(0);
    let lanes = if lanes < 2 * LANES_MAX { lanes } else { 0 };
    let digits = layout.layers.to_string().len();
    let id_len = layout.nodes.iter().map(|node| node.step.as_str().len()).max().unwrap_or(0).min(ID_LEN_MAX);

    let mut drawing = head(flow, layout, width);
    let mut line = |layer: &str, row: &str, words: &str| {
        let row = if lanes == 0 { "" } else { row };
        let line = format!("{layer:>digits$} {row:lanes$} {words}");
        let _ = writeln!(drawing, "{}", clip(line.trim_end(), width));
    };
    let mut layer = None;
    for row in &rows {
        let Some(node) = row.node.map(|node| &layout.nodes[node]) else {
            if lanes > 0 {
                line("", &row.lanes, "");
            }
            continue;
        };
        let step = flow.step(&node.step);
        let described = describe(flow, step);
        let mark = if step.compensation.is_some() { " ↺" } else { "" };
        let id = format!("{}{mark}", clip(step.id.as_str(), ID_LEN_MAX));
        let words = format!("{id:<len$}  {} {}", described.kind, described.about, len = id_len + 2);
        let number = (node.layer + 1).to_string();
        let is_first = layer.replace(node.layer) != Some(node.layer);
        line(if is_first { &number } else { "" }, &row.lanes, &words);
        for note in &described.notes {
            line("", &row.below, &format!("{:len$}  {note}", "", len = id_len + 2));
        }
    }
    drawing
}

fn head(flow: &Flow, layout: &Layout, width: usize) -> String {
    let name = if flow.name.is_empty() { flow.id.to_string() } else { format!("{}: {}", flow.id, flow.name) };
    let is_undone = flow.steps.values().any(|step| step.compensation.is_some());
    let mark = if is_undone { "; ↺ can be undone" } else { "" };
    format!("{}\n{} steps in {} layers{mark}\n\n", clip(&name, width), flow.steps.len(), layout.layers)
}

struct Row {
    lanes: String,
    /// The lanes as they are after this row.
    below: String,
    /// Which step stands here, if it is no row of lines alone.
    node: Option<usize>,
}

fn rows(layout: &Layout) -> Vec<Row> {
    let mut waiting: BTreeMap<&StepId, BTreeSet<&StepId>> = BTreeMap::new();
    for edge in &layout.edges {
        waiting.entry(&edge.from).or_default().insert(&edge.to);
    }
    let mut rows = Vec::new();
    // Who holds each lane; nothing, if it is free.
    let mut lanes: Vec<Option<&StepId>> = Vec::new();
    for (number, node) in layout.nodes.iter().enumerate() {
        let mut incoming = Vec::new();
        for (lane, from) in lanes.iter().enumerate() {
            let Some(waiting) = from.and_then(|from| waiting.get_mut(from)) else { continue };
            if waiting.remove(&node.step) {
                incoming.push(InincomingLane { lane, ends: waiting.is_empty() });
            }
        }
        let own = own_lane(&lanes, &incoming);
        if own == lanes.len() {
            lanes.push(None);
        }
        let is_straight = matches!(incoming.as_slice(), [only] if only.ends && only.lane == own);
        if !is_straight && !incoming.is_empty() {
            rows.push(Row { lanes: draw_join(&lanes, &incoming, own), below: String::new(), node: None });
        }
        for over in incoming.iter().filter(|incoming| incoming.ends) {
            lanes[over.lane] = None;
        }
        let marked = draw_lanes(&lanes, Some(own));
        lanes[own] = waiting.get(&node.step).map(|_| &node.step);
        while lanes.last().is_some_and(Option::is_none) {
            lanes.pop();
        }
        rows.push(Row { lanes: marked, below: draw_lanes(&lanes, None), node: Some(number) });
    }
    rows
}

/// A lane that a step is joined with; it may end here, or go on to others.
struct InincomingLane {
    lane: usize,
    ends: bool,
}

/// A step takes over a lane that ends in it, or the next that is free to the right of where it comes from.
fn own_lane(lanes: &[Option<&StepId>], incoming: &[InincomingLane]) -> usize {
    if let Some(over) = incoming.iter().find(|incoming| incoming.ends) {
        return over.lane;
    }
    let first = incoming.first().map_or(0, |incoming| incoming.lane);
    (first..lanes.len()).find(|lane| lanes[*lane].is_none()).unwrap_or(lanes.len())
}

fn draw_lanes(lanes: &[Option<&StepId>], step: Option<usize>) -> String {
    let lane = |lane: usize| match lanes[lane] {
        _ if step == Some(lane) => "● ",
        Some(_) => "│ ",
        None => "  ",
    };
    (0..lanes.len()).map(lane).collect::<String>().trim_end().to_owned()
}

/// The row above a step, in which its lines come together. A lane that has nothing to do with it passes over.
fn draw_join(lanes: &[Option<&StepId>], incoming: &[InincomingLane], own: usize) -> String {
    let ends = incoming.iter().map(|incoming| incoming.lane).chain([own]);
    let (left, right) = ends.fold((own, own), |(left, right), lane| (left.min(lane), right.max(lane)));
    let mut row = String::new();
    for (lane, holder) in lanes.iter().enumerate() {
        let of = incoming.iter().find(|incoming| incoming.lane == lane);
        let above = of.is_some();
        let below = lane == own || of.is_some_and(|of| !of.ends);
        let sign = match (above, below, lane == left, lane == right) {
            (true, true, true, true) => '│',
            (true, true, true, _) => '├',
            (true, true, _, true) => '┤',
            (true, true, _, _) => '┼',
            (true, _, true, _) => '╰',
            (true, _, _, true) => '╯',
            (true, ..) => '┴',
            (_, true, true, _) => '╭',
            (_, true, _, true) => '╮',
            (_, true, ..) => '┬',
            _ if holder.is_some() => '│',
            _ if (left..right).contains(&lane) => '─',
            _ => ' ',
        };
        row.push(sign);
        row.push(if (left..right).contains(&lane) { '─' } else { ' ' });
    }
    row.trim_end().to_owned()
}
