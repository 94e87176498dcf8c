//! The facts that a condition may ask for, and what kind of thing each is.

use crate::cost::Meter;
use crate::expression::{Bindings, ValueKind};
use crate::request::Request;
use cel::Value;
use cel::objects::{Key, Map};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

/// What a condition may speak of.
pub static NAMES: LazyLock<[(&str, ValueKind); 1]> = LazyLock::new(|| {
    let facts = FIELDS.iter().map(|field| (field.name.to_owned(), (field.kind)()));
    [("job", ValueKind::record("a job", facts))]
});

/// A job's facts as conditions read them, made once for all rules.
pub struct Facts<'a>(pub(super) Bindings<'a>);

impl<'m> Facts<'m> {
    /// What is asked of them is charged to `meter`.
    pub fn of(request: &Request, meter: &'m Meter) -> Self {
        let job = FIELDS.iter().map(|field| (Key::from(field.name), (field.read)(request)));
        let job = Map { map: Arc::new(job.collect::<HashMap<Key, Value>>()) };
        let mut scope = Bindings::new(meter);
        scope.set("job", Value::Map(job));
        Self(scope)
    }
}

/// One fact: its name, its kind, and where it comes from.
struct Field {
    name: &'static str,
    kind: fn() -> ValueKind,
    read: fn(&Request) -> Value,
}

macro_rules! fields {
    ($($name:literal: $kind:expr, |$request:ident| $read:expr;)*) => {
        const FIELDS: &[Field] = &[$(Field { name: $name, kind: || $kind, read: |$request| $read }),*];
    };
}

fields! {
    "id": ValueKind::Text, |job| text(job.id.as_str());
    "tenant": ValueKind::Text, |job| text(job.tenant.as_str());
    "topic": ValueKind::Text, |job| text(job.topic.as_str());
    "priority": ValueKind::Text, |job| text(job.priority.as_str());
    "labels": ValueKind::Labels, |job| labels(&job.labels);
    "capability": ValueKind::Text, |job| text(&job.needs.capability);
    "risk_tags": ValueKind::list(ValueKind::Text), |job| texts(&job.needs.risk_tags);
    "requires": ValueKind::list(ValueKind::Text), |job| texts(&job.needs.requires);
    "pack_id": ValueKind::Text, |job| text(&job.needs.pack_id);
    "principal_id": ValueKind::Text, |job| text(&job.actor.principal_id);
    "actor_id": ValueKind::Text, |job| text(&job.actor.actor_id);
    "actor_type": ValueKind::Text, |job| text(&job.actor.actor_type);
    "team": ValueKind::Text, |job| text(&job.actor.team);
    "max_input_tokens": ValueKind::Int, |job| Value::Int(job.budget.max_input_tokens);
    "max_output_tokens": ValueKind::Int, |job| Value::Int(job.budget.max_output_tokens);
    "max_total_tokens": ValueKind::Int, |job| Value::Int(job.budget.max_total_tokens);
    "deadline_ms": ValueKind::Int, |job| Value::Int(job.budget.deadline_ms);
    "workflow_id": ValueKind::Text, |job| text(&job.place.workflow_id);
    "step_index": ValueKind::Int, |job| Value::Int(i64::from(job.place.step_index));
    "parent_job_id": ValueKind::Text, |job| text(&job.place.parent_job_id);
    "adapter_id": ValueKind::Text, |job| text(&job.place.adapter_id);
    "memory_id": ValueKind::Text, |job| text(&job.place.memory_id);
    "is_delegated": ValueKind::Truth, |job| Value::Bool(job.delegated.is_some());
}

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn texts(list: &[String]) -> Value {
    Value::List(Arc::new(list.iter().map(|item| text(item)).collect()))
}

fn labels(labels: &BTreeMap<String, String>) -> Value {
    let entries = labels.iter().map(|(name, value)| (Key::from(name.clone()), text(value)));
    Value::Map(Map { map: Arc::new(entries.collect::<HashMap<Key, Value>>()) })
}
