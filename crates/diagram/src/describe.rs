//! A step in words: its kind, what it is about, and notes.

use crate::layout;
use reveille_core::flow::{Delay, Flow, Owner, Piece, RunWhen, Step, StepKind, Template};
use reveille_core::id::StepId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDescription {
    pub kind: &'static str,
    /// What it is about: its topic, what it asks, what it runs.
    pub about: String,
    /// Under which conditions it begins, how often, and what follows if it fails.
    pub notes: Vec<String>,
}

pub fn describe(flow: &Flow, step: &Step) -> StepDescription {
    StepDescription { kind: step.kind.as_str(), about: about(step), notes: notes(flow, step) }
}

fn about(step: &Step) -> String {
    match &step.kind {
        StepKind::Worker(worker) => match &worker.worker {
            Some(only) => format!("{} at {only}", worker.topic),
            None => worker.topic.to_string(),
        },
        StepKind::Condition(condition) => condition.asks.source().to_owned(),
        StepKind::Switch(switch) => format!("on {}", switch.on.source()),
        StepKind::Parallel(parallel) => format!("{} of {}", parallel.required, parallel.steps.len()),
        StepKind::Loop(looping) => {
            let asks = [("while", &looping.as_long_as), ("until", &looping.until)];
            let asks = asks.iter().filter_map(|(word, asks)| Some((word, asks.as_ref()?)));
            let asks = asks.map(|(word, asks)| format!("{word} {}", asks.source()));
            let most = format!("at most {} times", looping.iterations_max);
            asks.chain([most]).collect::<Vec<_>>().join(", ")
        }
        StepKind::Notify(notify) => notify.level.to_string(),
        StepKind::Storage(storage) => format!("{} {}", storage.op, storage.key),
        StepKind::Subworkflow(sub) => sub.workflow.to_string(),
        StepKind::Approval | StepKind::Delay | StepKind::Transform => String::new(),
    }
}

fn notes(flow: &Flow, step: &Step) -> Vec<String> {
    let mut notes = Vec::new();
    let list = |steps: &[StepId]| steps.iter().map(StepId::as_str).collect::<Vec<_>>().join(", ");
    if !step.depends_on.is_empty() {
        let however = match (step.run_when, step.depends_on.len()) {
            (RunWhen::Succeeded, _) => "",
            (RunWhen::Settled, 1) => ", however it ends",
            (RunWhen::Settled, _) => ", however they end",
        };
        notes.push(format!("after {}{however}", list(&step.depends_on)));
    }
    match &step.owner {
        Some(Owner::Switch(owner)) => {
            notes.push(format!("chosen by {owner}: {}", layout::cases(flow.step(owner), &step.id)));
        }
        Some(Owner::Parallel(owner)) => notes.push(format!("with {owner}")),
        Some(Owner::Loop(owner)) => notes.push(format!("in every round of {owner}")),
        None => {}
    }
    if !step.handles.is_empty() {
        notes.push(format!("if {} fails", list(&step.handles)));
    }
    if let Some(condition) = &step.condition {
        notes.push(format!("if {}", condition.source()));
    }
    if let Some(for_each) = &step.for_each {
        notes.push(format!("for each of {}, {} at once", source(&for_each.items), for_each.parallel_max));
    }
    match &step.delay {
        Some(Delay::For(ms)) => notes.push(format!("waits {} s", *ms as f64 / 1000.0)),
        Some(Delay::Until(at)) => notes.push(format!("waits until {}", source(at))),
        None => {}
    }
    match step.retry.retries_max {
        0 => {}
        1 => notes.push("tried once more".to_owned()),
        more => notes.push(format!("tried {more} times more")),
    }
    if let Some(undo) = &step.compensation {
        notes.push(format!("undone by {}", undo.job.topic));
    }
    notes
}

/// A template nearly as it was written.
fn source(template: &Template) -> String {
    match template {
        Template::Fixed(serde_json::Value::Array(items)) => format!("{} items", items.len()),
        Template::Fixed(json) => json.as_str().map_or_else(|| json.to_string(), str::to_owned),
        Template::Value(expression) => expression.source().to_owned(),
        Template::Text(pieces) => pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Value(expression) => format!("${{{}}}", expression.source()),
            })
            .collect(),
        Template::List(items) => format!("{} items", items.len()),
        Template::Object(parts) => format!("{} parts", parts.len()),
    }
}
