//! SVG that needs nothing else: no script, no font, nothing fetched, light and dark. Every text from the
//! document is escaped; what is cut off is complete in the tooltip of its step.

use crate::clip;
use crate::describe::describe;
use crate::layout::{Edge, EdgeKind, Layout, PlacedStep, STEP_WIDTH};
use reveille_core::flow::{Flow, Step};
use reveille_core::id::StepId;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Pixels of one unit of the layout.
const UNIT: i64 = 22;
const BOX_WIDTH: i64 = STEP_WIDTH * UNIT;
const BOX_HEIGHT: i64 = 62;
const LAYER_GAP: i64 = 58;
const MARGIN: i64 = 24;
/// Characters that fit into a box.
const ID_LEN_MAX: usize = 24;
const LINE_LEN_MAX: usize = 30;
const LABEL_LEN_MAX: usize = 20;

const STYLE: &str = "
svg { color-scheme: light dark; font: 11px ui-monospace, 'SF Mono', Menlo, Consolas, monospace; }
.page { fill: #ffffff; } .box { fill: #f6f8fa; stroke: #57606a; } .box.server { fill: #ffffff; stroke-dasharray: 4 3; }
.box.approval { fill: #fff8e1; stroke: #9a6700; } .id { fill: #1f2328; font-size: 13px; font-weight: bold; }
.line { fill: #424a53; } .note { fill: #656d76; } .undo { fill: #9a6700; font-size: 13px; font-weight: bold; }
.edge { fill: none; stroke: #57606a; stroke-width: 1.4; } .head { fill: #57606a; } .label { fill: #0550ae; }
.edge.error { stroke: #cf222e; stroke-dasharray: 5 4; } .head.error { fill: #cf222e; }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117; } .box { fill: #161b22; stroke: #8b949e; } .box.server { fill: #0d1117; }
.box.approval { fill: #272115; stroke: #d29922; } .id { fill: #e6edf3; } .line { fill: #c9d1d9; } .note { fill: #9198a1; }
.undo { fill: #d29922; } .edge { stroke: #8b949e; } .head { fill: #8b949e; } .label { fill: #79c0ff; }
.edge.error { stroke: #ff7b72; } .head.error { fill: #ff7b72; }
}
";

/// The status of a step, for a diagram of a run.
#[derive(Debug, Clone, Default)]
pub struct StepStatus {
    /// Its state, as a CSS class of the page.
    pub class: String,
    /// What is in its box instead of a note.
    pub text: String,
}

/// A diagram that needs nothing else.
pub fn draw_svg(flow: &Flow, layout: &Layout) -> String {
    draw(flow, layout, None)
}

/// The diagram of a run, for a page that has the style.
pub fn draw_run_svg(flow: &Flow, layout: &Layout, steps: &BTreeMap<StepId, StepStatus>) -> String {
    draw(flow, layout, Some(steps))
}

fn draw(flow: &Flow, layout: &Layout, run: Option<&BTreeMap<StepId, StepStatus>>) -> String {
    let width = layout.width * UNIT + 2 * MARGIN;
    // Lines may go past to the left or right of all steps.
    let passing = layout.passing.iter().flat_map(|line| line.x.iter().map(|x| x * UNIT));
    let (least, most) = passing.fold((0, width - 2 * MARGIN), |(least, most), x| (least.min(x), most.max(x)));
    let (left, width) = (least, most - least + 2 * MARGIN);
    let height = i64::from(layout.layers) * (BOX_HEIGHT + LAYER_GAP) - LAYER_GAP + 2 * MARGIN;
    let title =
        if flow.name.is_empty() { flow.id.to_string() } else { format!("{}: {}", flow.id, flow.name) };
    let title = escaped(&title);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flow\" width=\"{width}\" height=\"{height}\" viewBox=\"{} {} {width} {height}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n",
        left - MARGIN,
        -MARGIN,
    );
    if run.is_none() {
        let (x, y) = (left - MARGIN, -MARGIN);
        let _ = writeln!(
            out,
            "<style>{STYLE}</style>\n<rect class=\"page\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }
    lines(&mut out, layout);
    for node in &layout.nodes {
        let status = run.and_then(|steps| steps.get(&node.step));
        step(&mut out, flow, flow.step(&node.step), node, status);
    }
    out.push_str("</svg>\n");
    out
}

fn top(layer: u32) -> i64 {
    i64::from(layer) * (BOX_HEIGHT + LAYER_GAP)
}

fn step(out: &mut String, flow: &Flow, step: &Step, node: &PlacedStep, status: Option<&StepStatus>) {
    let described = describe(flow, step);
    let class = match described.kind {
        "worker" | "subworkflow" => "box",
        "approval" => "box approval",
        // What the server does itself.
        _ => "box server",
    };
    let class = status.map_or(class.to_owned(), |status| format!("{class} {}", escaped(&status.class)));
    let (left, top) = (node.x * UNIT - BOX_WIDTH / 2, top(node.layer));
    let all = [format!("{}: {} {}", step.id, described.kind, described.about)];
    let all = all
        .iter()
        .chain(&described.notes)
        .map(|line| escaped(line.trim_end()))
        .collect::<Vec<_>>()
        .join("\n");
    let _ = writeln!(out, "<g>\n<title>{all}</title>");
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{left}\" y=\"{top}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"6\"/>"
    );
    let mut text = |class: &str, x: i64, y: i64, text: &str| {
        let _ = writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(text));
    };
    text("id", left + 10, top + 20, &clip(step.id.as_str(), ID_LEN_MAX));
    if step.compensation.is_some() {
        text("undo", left + BOX_WIDTH - 22, top + 20, "↺");
    }
    text(
        "line",
        left + 10,
        top + 37,
        &clip(format!("{} {}", described.kind, described.about).trim_end(), LINE_LEN_MAX),
    );
    // The lines of the diagram say what it waits for; the first note that they do not say is in the box.
    let is_undrawn = |note: &&String| {
        !["after ", "with ", "chosen ", "undone "].iter().any(|by_lines| note.starts_with(by_lines))
    };
    if let Some(note) = status.map(|status| &status.text).or_else(|| described.notes.iter().find(is_undrawn))
    {
        text("note", left + 10, top + 53, &clip(note, LINE_LEN_MAX));
    }
    out.push_str("</g>\n");
}

/// Lines that leave one step together are drawn together as far as they go together.
fn lines(out: &mut String, layout: &Layout) {
    let places: BTreeMap<&StepId, &PlacedStep> = layout.nodes.iter().map(|node| (&node.step, node)).collect();
    let passing: BTreeMap<(&StepId, EdgeKind), &[i64]> =
        layout.passing.iter().map(|line| ((&line.from, line.kind), line.x.as_slice())).collect();
    for line in &layout.passing {
        let from = places[&line.from];
        let mut path = format!("M{} {}", from.x * UNIT, top(from.layer) + BOX_HEIGHT);
        let mut before = from.x * UNIT;
        for (x, layer) in line.x.iter().map(|x| x * UNIT).zip(from.layer + 1..) {
            bend(&mut path, before, x, layer);
            let _ = write!(path, " V{}", top(layer) + BOX_HEIGHT);
            before = x;
        }
        let _ = writeln!(out, "<path class=\"edge {}\" d=\"{path}\"/>", line.kind);
    }
    for edge in &layout.edges {
        let (from, to) = (places[&edge.from], places[&edge.to]);
        let between = (to.layer - from.layer) as usize - 1;
        let line = passing.get(&(&edge.from, edge.kind)).copied().unwrap_or_default();
        let x = between.checked_sub(1).and_then(|last| line.get(last)).unwrap_or(&from.x) * UNIT;
        last_bend(out, edge, x, to);
    }
}

/// From one layer to the next.
fn bend(path: &mut String, from: i64, to: i64, layer: u32) {
    let (above, below) = (top(layer) - LAYER_GAP, top(layer));
    let middle = i64::midpoint(above, below);
    let _ = write!(path, " C{from} {middle} {to} {middle} {to} {below}");
}

fn last_bend(out: &mut String, edge: &Edge, from: i64, to: &PlacedStep) {
    let (x, below) = (to.x * UNIT, top(to.layer));
    let mut path = format!("M{from} {}", below - LAYER_GAP);
    bend(&mut path, from, x, to.layer);
    let _ = writeln!(out, "<path class=\"edge {}\" d=\"{path}\"/>", edge.kind);
    let _ = writeln!(out, "<path class=\"head {}\" d=\"M{x} {below} l-4 -8 h8 z\"/>", edge.kind);
    if !edge.label.is_empty() {
        let label = escaped(&clip(&edge.label, LABEL_LEN_MAX));
        // On the side that its own line does not come from.
        let (x, anchor) = if from > x { (x - 8, "end") } else { (x + 8, "start") };
        let y = below - 6;
        let _ = writeln!(
            out,
            "<text class=\"label\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{label}</text>"
        );
    }
}

/// Text as it may stand in XML. What XML cannot hold at all is left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
