//! What an expression of one step sees of its run: only what it asks for is put together.

use super::definition::{Owner, Step};
use super::draft::RunDraft;
use super::node::{Node, NodeKey};
use super::steps::StepKind;
use super::table::StepState;
use crate::expression::{Bindings, Expression, from_json};
use crate::id::StepId;
use cel::Value;
use cel::objects::{Key, Map};
use serde_json::Value as Json;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub(super) fn of<'d>(draft: &RunDraft<'d>, key: &NodeKey, expressions: &[&Expression]) -> Bindings<'d> {
    let asks = expressions.iter().flat_map(|expression| expression.asks()).collect::<BTreeSet<_>>();
    let parts_of = |name: &str| {
        let parts = asks.iter().filter(|asked| asked.name == name).map(|asked| asked.part.as_deref());
        parts.collect::<BTreeSet<Option<&str>>>()
    };
    let mut scope = Bindings::new(draft.meter);
    for name in asks.iter().map(|asked| asked.name.as_str()).collect::<BTreeSet<_>>() {
        let value = match name {
            "input" => draft.input_seen(),
            "ctx" => context(draft, &parts_of("ctx")),
            "steps" => {
                let steps = parts_of("steps").into_iter().flatten();
                map(steps.map(|step| (step.to_owned(), step_seen(draft, &StepId::known(step)))))
            }
            "item" => {
                let item = key.round.and_then(|round| draft.item(&key.step, round));
                item.map_or(Value::Null, |item| from_json(item, draft.meter))
            }
            "index" => Value::Int(i64::from(key.round.unwrap_or_else(|| rounds_begun(draft, key)))),
            _ => continue,
        };
        scope.set(name, value);
    }
    scope
}

/// What the run gives when it has succeeded: what its template says, or the outputs of its last steps.
pub(super) fn output(draft: &RunDraft<'_>) -> Result<Option<Json>, String> {
    if let Some(template) = &draft.flow.output {
        let scope = of(draft, &NodeKey::of(&StepId::known("output")), &template.expressions());
        return template.fill(&scope).map(Some);
    }
    let is_body = |step: &Step| matches!(step.owner, Some(Owner::Loop(_)));
    // A switch and a parallel step only say who comes next.
    let is_way = |step: &Step| matches!(step.kind, StepKind::Switch(_) | StepKind::Parallel(_));
    let last = draft
        .flow
        .steps
        .values()
        .filter(|step| step.dependents.is_empty() && !is_body(step) && !is_way(step));
    let outputs = last.filter_map(|step| {
        let output = output_of(draft, &step.id)?;
        (output != Json::Null).then(|| (step.id.to_string(), output))
    });
    let outputs: serde_json::Map<_, _> = outputs.collect();
    Ok((!outputs.is_empty()).then_some(Json::Object(outputs)))
}

/// In the conditions of a loop: how many rounds there were.
fn rounds_begun(draft: &RunDraft<'_>, key: &NodeKey) -> u32 {
    draft.get(key).and_then(|node| node.fan).map_or(0, |fan| fan.begun)
}

fn context(draft: &RunDraft<'_>, parts: &BTreeSet<Option<&str>>) -> Value {
    let all = draft.flow.parameters.keys().chain(draft.context_names());
    let names: BTreeSet<&str> = if parts.contains(&None) {
        all.map(String::as_str).collect()
    } else {
        parts.iter().flatten().copied().collect()
    };
    map(names.into_iter().filter_map(|name| {
        let value = draft.context(name);
        let value = value.as_deref().or_else(|| draft.flow.parameters.get(name))?;
        Some((name.to_owned(), from_json(value, draft.meter)))
    }))
}

fn step_seen(draft: &RunDraft<'_>, step: &StepId) -> Value {
    let node = node_seen(draft, step);
    let (state, words) = node.map_or((StepState::Pending, ""), |node| (node.state, node.words.as_str()));
    let text = |text: &str| Value::String(Arc::new(text.to_owned()));
    let output = output_of(draft, step).as_ref().map_or(Value::Null, |output| from_json(output, draft.meter));
    map([
        ("output".to_owned(), output),
        ("status".to_owned(), text(state.as_str())),
        ("error".to_owned(), text(if state.is_failure() { words } else { "" })),
    ])
}

/// The step, or the round of a loop's body that came last.
fn node_seen<'d>(draft: &'d RunDraft<'_>, step: &StepId) -> Option<&'d Node> {
    match &draft.flow.step(step).owner {
        Some(Owner::Loop(owner)) => {
            let fan = draft.get(&NodeKey::of(owner))?.fan?;
            draft.get(&NodeKey::round(step, fan.begun.checked_sub(1)?))
        }
        _ => draft.get(&NodeKey::of(step)),
    }
}

/// A step that went through a list gives a list.
fn output_of(draft: &RunDraft<'_>, step: &StepId) -> Option<Json> {
    let node = node_seen(draft, step)?;
    match node.fan.filter(|_| draft.flow.step(step).for_each.is_some()) {
        Some(fan) => {
            let round = |round| {
                draft.get(&NodeKey::round(step, round)).and_then(|node| node.output.as_deref().cloned())
            };
            Some(Json::Array((0..fan.count).map(|n| round(n).unwrap_or(Json::Null)).collect()))
        }
        None => node.output.as_deref().cloned(),
    }
}

pub(super) fn map(parts: impl IntoIterator<Item = (String, Value)>) -> Value {
    let parts = parts.into_iter().map(|(name, value)| (Key::from(name), value));
    Value::Map(Map { map: Arc::new(parts.collect::<HashMap<_, _>>()) })
}
