//! What can be said of values without a meter: their order, their parts, and what is wrong with them.

use super::super::json;
use super::{Evaluated, Failure, TEXT_STEP_BYTES};
use cel::Value;
use cel::common::ast::operators as op;
use cel::objects::{KeyRef, Map};
use std::cmp::Ordering;

pub(super) fn as_truth(value: &Value) -> Evaluated<bool> {
    match value {
        Value::Bool(yes) => Ok(*yes),
        other => Err(undefined(format!("{} is neither yes nor no", json::describe(other)))),
    }
}

pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    let is_ordered = |value: &Value| !matches!(value, Value::Null);
    (is_ordered(left) && is_ordered(right)).then(|| left.partial_cmp(right)).flatten()
}

pub(super) fn indexed(container: &Value, index: &Value) -> Evaluated {
    match container {
        Value::List(items) => {
            let at = match index {
                Value::Int(at) => usize::try_from(*at).ok(),
                Value::UInt(at) => usize::try_from(*at).ok(),
                Value::Float(at) => whole(*at).and_then(|at| usize::try_from(at).ok()),
                _ => return Err(unusable(op::INDEX, &[container, index])),
            };
            let found = at.and_then(|at| items.get(at)).cloned();
            found.ok_or_else(|| undefined(format!("a list of {} has no such element", items.len())))
        }
        Value::Map(map) if is_key(index) => {
            find(map, index).cloned().ok_or_else(|| undefined("there is no such part"))
        }
        _ => Err(unusable(op::INDEX, &[container, index])),
    }
}

pub(super) fn is_key(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Int(_) | Value::UInt(_) | Value::Bool(_) | Value::Float(_))
}

/// The part of that name. A number finds the same number of another kind.
pub(super) fn find<'m>(map: &'m Map, key: &Value) -> Option<&'m Value> {
    let part = |key: KeyRef<'_>| map.map.get(&key as &dyn cel::objects::AsKeyRef);
    let signed = |int: i64| part(KeyRef::Int(int));
    let unsigned = |int: u64| part(KeyRef::Uint(int));
    match key {
        Value::String(name) => part(KeyRef::String(name)),
        Value::Bool(yes) => part(KeyRef::Bool(*yes)),
        Value::Int(int) => signed(*int).or_else(|| u64::try_from(*int).ok().and_then(unsigned)),
        Value::UInt(int) => unsigned(*int).or_else(|| i64::try_from(*int).ok().and_then(signed)),
        Value::Float(double) => {
            let int = whole(*double)?;
            signed(int).or_else(|| u64::try_from(int).ok().and_then(unsigned))
        }
        _ => None,
    }
}

/// The whole number that it is, if it is one.
pub(super) fn whole(double: f64) -> Option<i64> {
    let fits = double > i64::MIN as f64 && double < i64::MAX as f64;
    (fits && double.fract() == 0.0).then_some(double as i64)
}

pub(super) fn text_steps(value: &Value) -> u64 {
    match value {
        Value::String(text) => (text.len() / TEXT_STEP_BYTES) as u64,
        _ => 0,
    }
}

/// The parsing crate's own arithmetic, with its errors in our words: theirs would say the values.
pub(super) fn numbers(name: &str, result: Result<Value, cel::ExecutionError>) -> Evaluated {
    use cel::ExecutionError::{DivisionByZero, Overflow, RemainderByZero};
    result.map_err(|error| match error {
        DivisionByZero(_) | RemainderByZero(_) => undefined("a division by zero"),
        Overflow(..) => overflow(name),
        _ => undefined(format!("{} cannot be used with these values", written(name))),
    })
}

pub(super) fn overflow(name: &str) -> Failure {
    undefined(format!("{} gives a number that is too large", written(name)))
}

/// Says of what kind the values are, not what they are: one may be a secret.
pub(super) fn unusable(name: &str, values: &[&Value]) -> Failure {
    let kinds = values.iter().map(|value| json::describe(value)).collect::<Vec<_>>().join(" and ");
    undefined(format!("{} cannot be used with {kinds}", written(name)))
}

pub(super) fn written(name: &str) -> &str {
    name.trim_matches(['_', '@'])
}

pub(super) fn undefined(problem: impl Into<String>) -> Failure {
    Failure::Undefined(problem.into())
}
