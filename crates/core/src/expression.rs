//! Expressions: CEL, checked when they are written down and not when they are asked.
//!
//! The checker knows the kind of every name, so that an expression that compares a text with a number, or
//! asks for something that does not exist, is refused with its reason while somebody is looking. What comes
//! from outside and has no schema is JSON: its parts can be anything, and are looked at when the time comes.
//!
//! Two uses: conditions of policy rules (`policy::condition`) and the steps of workflows (`flow`).

mod check;
mod depth;
mod json;
mod kind;

pub use json::{from_json, to_json};
pub use kind::{RecordKind, ValueKind};

use cel::parser::Parser;
use cel::{Context, Env, IdedExpr, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// How deep an expression may be nested; `a + b + c` is two deep.
const DEPTH_MAX: u16 = 64;

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// What an expression may speak of.
pub type Names<'a> = &'a [(&'a str, ValueKind)];

/// An expression that was found to be one.
#[derive(Clone)]
pub struct Expression {
    source: Arc<str>,
    expression: Arc<IdedExpr>,
    kind: ValueKind,
    asks: Arc<BTreeSet<NameReference>>,
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

/// The values that stand behind the names.
pub struct Bindings<'a>(Context<'a, 'a>);

impl Default for Bindings<'_> {
    fn default() -> Self {
        Self(Context::with_env(Arc::clone(&ENV)))
    }
}

impl Bindings<'_> {
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.add_variable_from_value(name, value);
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
        let checked = check::check_all(parsed, names)?;
        Ok(Self {
            source: source.into(),
            expression: Arc::new(checked.expression),
            kind: checked.kind,
            asks: Arc::new(checked.asks),
        })
    }

    pub fn source(&self) -> &str {
        &self.source
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
        scope.0.resolve(&self.expression).map_err(|error| error.to_string())
    }

    /// The same, of an expression that says yes or no.
    pub fn holds(&self, scope: &Bindings<'_>) -> Result<bool, String> {
        match self.value(scope)? {
            Value::Bool(yes) => Ok(yes),
            other => Err(format!("gives {}, which is neither yes nor no", json::describe(&other))),
        }
    }
}
