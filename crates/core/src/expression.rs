//! Expressions: CEL, checked when they are written down and not when they are asked.
//!
//! The checker knows the kind of every name, so that an expression that compares a text with a number, or
//! asks for something that does not exist, is refused with its reason while somebody is looking. What comes
//! from outside and has no schema is JSON: its parts can be anything, and are looked at when the time comes.
//! What asking costs is counted, and limited: see [`crate::cost`].
//!
//! Two uses: conditions of policy rules (`policy::condition`) and the steps of workflows (`flow`).

mod check;
mod depth;
mod estimate;
mod evaluate;
mod json;
mod kind;

pub use json::{from_json, to_json};
pub use kind::{RecordKind, ValueKind};

use crate::cost::{CostLimit, Meter};
use cel::parser::Parser;
use cel::{IdedExpr, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// How deep an expression may be nested; `a + b + c` is two deep.
const DEPTH_MAX: u16 = 64;

/// What an expression may speak of.
pub type Names<'a> = &'a [(&'a str, ValueKind)];

/// An expression that was found to be one.
#[derive(Clone)]
pub struct Expression {
    source: Arc<str>,
    expression: Arc<IdedExpr>,
    kind: ValueKind,
    asks: Arc<BTreeSet<NameReference>>,
    steps: u64,
}

/// A name that an expression asks for, with the part of it where it names one: `input`, `steps.fetch`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameReference {
    pub name: String,
    pub part: Option<String>,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// The values that stand behind the names, and the meter that is charged for what is asked of them.
pub struct Bindings<'m> {
    /// A handful.
    values: Vec<(String, Value)>,
    meter: &'m Meter,
}

impl<'m> Bindings<'m> {
    pub fn new(meter: &'m Meter) -> Self {
        Self { values: Vec::new(), meter }
    }

    pub fn set(&mut self, name: &str, value: Value) {
        self.values.push((name.to_owned(), value));
    }

    pub fn meter(&self) -> &'m Meter {
        self.meter
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl Expression {
    /// Reads an expression of at most `len_max` characters.
    pub fn parse(source: &str, names: Names<'_>, len_max: usize) -> Result<Self, String> {
        if source.chars().count() > len_max {
            return Err(format!("has more than {len_max} characters"));
        }
        let parsed = Parser::new().max_recursion_depth(DEPTH_MAX).parse(source);
        let parsed = parsed.map_err(|errors| errors.to_string().trim().replace('\n', " "))?;
        if depth::of(&parsed) > DEPTH_MAX {
            return Err(format!("is nested more than {DEPTH_MAX} deep"));
        }
        let steps = estimate::steps(&parsed);
        let checked = check::check_all(parsed, names)?;
        Ok(Self {
            source: source.into(),
            expression: Arc::new(checked.expression),
            kind: checked.kind,
            asks: Arc::new(checked.asks),
            steps,
        })
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// How many steps it takes, at least.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether it can be afforded at all: asked of what somebody is about to put in force.
    pub fn check_cost(&self, limit: CostLimit) -> Result<(), String> {
        let (steps, most) = (self.steps, limit.steps);
        let affordable = steps <= most;
        affordable
            .then_some(())
            .ok_or_else(|| format!("is too expensive: it takes {steps} steps, and may take {most}"))
    }

    /// What it gives; JSON where that is only known when it is asked.
    pub fn kind(&self) -> &ValueKind {
        &self.kind
    }

    /// Everything that has to be in the scope.
    pub fn asks(&self) -> &BTreeSet<NameReference> {
        &self.asks
    }

    /// What it gives, or why it gives nothing: a division by zero, a part that is not there.
    pub fn value(&self, scope: &Bindings<'_>) -> Result<Value, String> {
        evaluate::evaluate(&self.expression, scope)
    }

    /// The same, of an expression that says yes or no.
    pub fn holds(&self, scope: &Bindings<'_>) -> Result<bool, String> {
        match self.value(scope)? {
            Value::Bool(yes) => Ok(yes),
            other => Err(format!("gives {}, which is neither yes nor no", json::describe(&other))),
        }
    }
}
