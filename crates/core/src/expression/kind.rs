//! What kind of thing an expression gives.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueKind {
    Truth,
    Int,
    Double,
    Text,
    Null,
    List(Box<ValueKind>),
    /// Texts by name; one that is not there reads as the empty text.
    Labels,
    /// Something whose parts are known by name.
    Record(Arc<RecordKind>),
    /// Comes from outside: known when it is asked.
    Json,
    /// The element of an empty list: whatever is needed.
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordKind {
    /// What it is, for messages: `a job`.
    pub what: String,
    pub parts: BTreeMap<String, ValueKind>,
    /// Whether it may have parts that are not listed.
    pub is_open: bool,
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truth => "a yes or no",
            Self::Int | Self::Double => "a number",
            Self::Text => "a text",
            Self::Null => "null",
            Self::List(_) => "a list",
            Self::Labels => "labels",
            Self::Record(record) => &record.what,
            Self::Json => "a value",
            Self::Any => "anything",
        })
    }
}

impl ValueKind {
    pub fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    pub fn record(what: &str, parts: impl IntoIterator<Item = (String, Self)>) -> Self {
        let parts = parts.into_iter().collect();
        Self::Record(Arc::new(RecordKind { what: what.to_owned(), parts, is_open: false }))
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Double)
    }

    /// Whether only the time of asking can tell what it is.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Json | Self::Any => true,
            Self::Record(record) => record.is_open,
            _ => false,
        }
    }

    pub(super) fn may_be_number(&self) -> bool {
        self.is_number() || self.is_open()
    }

    pub(super) fn may_be(&self, kind: &Self) -> bool {
        self == kind || self.is_open()
    }

    /// The kind that both are, if there is one. A record that may have other parts is JSON to whoever
    /// compares it.
    pub(super) fn join(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, kind) | (kind, Self::Any) => Some(kind.clone()),
            (a, b) if a == b => Some(a.clone()),
            (a, b) if a.is_open() || b.is_open() => Some(Self::Json),
            (Self::List(a), Self::List(b)) => a.join(b).map(Self::list),
            _ => None,
        }
    }
}

impl RecordKind {
    /// The kind of one part.
    pub(super) fn part(&self, name: &str) -> Result<ValueKind, String> {
        match self.parts.get(name) {
            Some(kind) => Ok(kind.clone()),
            None if self.is_open => Ok(ValueKind::Json),
            None => {
                let known = self.parts.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() { "nothing" } else { &known };
                Err(format!("{} has no {name}; it has {known}", self.what))
            }
        }
    }
}
