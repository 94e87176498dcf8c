//! The facts that a condition may ask for, and what kind of thing each is.

use crate::request::Request;
use cel::Value;
use cel::objects::{Key, Map};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// What an expression is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Truth,
    Int,
    Double,
    Text,
    List(Box<Kind>),
    /// Texts by name.
    Labels,
    /// The job itself: only its facts can be asked for.
    Job,
    /// The element of an empty list: whatever is needed.
    Any,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truth => "a yes or no",
            Self::Int | Self::Double => "a number",
            Self::Text => "a text",
            Self::List(_) => "a list",
            Self::Labels => "labels",
            Self::Job => "the job",
            Self::Any => "anything",
        })
    }
}

impl Kind {
    pub fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Double)
    }

    /// The kind that both are, if there is one.
    pub fn join(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, kind) | (kind, Self::Any) => Some(kind.clone()),
            (Self::List(a), Self::List(b)) => a.join(b).map(Self::list),
            (a, b) => (a == b).then(|| a.clone()),
        }
    }
}

/// One fact: its name, its kind, and where it comes from.
pub struct Field {
    pub name: &'static str,
    pub kind: fn() -> Kind,
    pub read: fn(&Request) -> Value,
}

macro_rules! fields {
    ($($name:literal: $kind:expr, |$request:ident| $read:expr;)*) => {
        pub const FIELDS: &[Field] = &[$(Field { name: $name, kind: || $kind, read: |$request| $read }),*];
    };
}

fields! {
    "id": Kind::Text, |job| text(job.id.as_str());
    "tenant": Kind::Text, |job| text(job.tenant.as_str());
    "topic": Kind::Text, |job| text(job.topic.as_str());
    "priority": Kind::Text, |job| text(job.priority.as_str());
    "labels": Kind::Labels, |job| labels(&job.labels);
    "capability": Kind::Text, |job| text(&job.needs.capability);
    "risk_tags": Kind::list(Kind::Text), |job| texts(&job.needs.risk_tags);
    "requires": Kind::list(Kind::Text), |job| texts(&job.needs.requires);
    "pack_id": Kind::Text, |job| text(&job.needs.pack_id);
    "principal_id": Kind::Text, |job| text(&job.actor.principal_id);
    "actor_id": Kind::Text, |job| text(&job.actor.actor_id);
    "actor_type": Kind::Text, |job| text(&job.actor.actor_type);
    "team": Kind::Text, |job| text(&job.actor.team);
    "max_input_tokens": Kind::Int, |job| Value::Int(job.budget.max_input_tokens);
    "max_output_tokens": Kind::Int, |job| Value::Int(job.budget.max_output_tokens);
    "max_total_tokens": Kind::Int, |job| Value::Int(job.budget.max_total_tokens);
    "deadline_ms": Kind::Int, |job| Value::Int(job.budget.deadline_ms);
    "workflow_id": Kind::Text, |job| text(&job.place.workflow_id);
    "step_index": Kind::Int, |job| Value::Int(i64::from(job.place.step_index));
    "parent_job_id": Kind::Text, |job| text(&job.place.parent_job_id);
    "adapter_id": Kind::Text, |job| text(&job.place.adapter_id);
    "memory_id": Kind::Text, |job| text(&job.place.memory_id);
    "is_delegated": Kind::Truth, |job| Value::Bool(job.delegated.is_some());
}

pub fn field(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
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
