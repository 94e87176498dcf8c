//! The evaluator: what a checked expression gives, with every step and every byte charged to a [`Meter`].
//!
//! The crate that parses CEL evaluates it too, but without any limit, and fourteen nested macros in one line
//! of text would keep a thread for years. This one knows only what the checker lets through. What it gives
//! is what the crate gives, as a test shows over random expressions, but for two things: the parts of a map
//! are gone through in the order of their names, and a list and a map cannot be added.

mod values;

use super::{Bindings, json};
use crate::cost::{Meter, TooExpensive};
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr,
    operators as op,
};
use cel::objects::{Key, KeyRef, Map};
use cel::{IdedExpr, Value};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use values::{as_truth, find, indexed, is_key, numbers, order, overflow, text_steps, undefined, unusable};

/// `labels[key]`, or the empty text.
pub(super) const LABEL: &str = "@label";
/// The first element of a list, or null.
pub(super) const FIRST: &str = "first";

/// What an element of a list or a part of a map takes, beside what it holds.
const ELEMENT_BYTES: usize = size_of::<Value>();
const PART_BYTES: usize = 2 * size_of::<Value>();
/// Bytes of a text that can be looked at in one step.
const TEXT_STEP_BYTES: usize = 64;

#[derive(Debug)]
pub(super) enum Failure {
    /// The expression says nothing of these values: a division by zero, a part that is not there.
    Undefined(String),
    /// It was not found out. Nothing may take this for an answer, as `false && …` takes an undefined part.
    TooExpensive(TooExpensive),
}

impl From<TooExpensive> for Failure {
    fn from(reason: TooExpensive) -> Self {
        Self::TooExpensive(reason)
    }
}

type Evaluated<T = Value> = Result<T, Failure>;

pub(super) fn evaluate(expression: &IdedExpr, scope: &Bindings<'_>) -> Result<Value, String> {
    let mut evaluation = Evaluation { scope, meter: scope.meter(), locals: Vec::new() };
    evaluation.value(expression).map_err(|failure| match failure {
        Failure::Undefined(problem) => problem,
        Failure::TooExpensive(reason) => reason.to_string(),
    })
}

struct Evaluation<'e> {
    scope: &'e Bindings<'e>,
    meter: &'e Meter,
    /// What macros have named, innermost last.
    locals: Vec<(&'e str, Value)>,
}

impl<'e> Evaluation<'e> {
    fn value(&mut self, node: &'e IdedExpr) -> Evaluated {
        self.meter.step(1)?;
        match &node.expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Ident(name) => self.named(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => Err(undefined("no expression")),
        }
    }

    fn truth(&mut self, node: &'e IdedExpr) -> Evaluated<bool> {
        as_truth(&self.value(node)?)
    }

    fn literal(&self, literal: &LiteralValue) -> Evaluated {
        Ok(match literal {
            LiteralValue::Boolean(yes) => Value::Bool(*yes.inner()),
            LiteralValue::Int(int) => Value::Int(*int.inner()),
            LiteralValue::UInt(int) => Value::UInt(*int.inner()),
            LiteralValue::Double(double) => Value::Float(*double.inner()),
            LiteralValue::Null => Value::Null,
            LiteralValue::String(text) => self.text(text.inner().to_owned())?,
            LiteralValue::Bytes(_) => return Err(undefined("bytes are of no use")),
        })
    }

    fn named(&self, name: &str) -> Evaluated {
        let local = self.locals.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value);
        let value = local.or_else(|| self.scope.get(name));
        value.cloned().ok_or_else(|| undefined(format!("there is no {name}")))
    }

    fn select(&mut self, select: &'e SelectExpr) -> Evaluated {
        let operand = self.value(&select.operand)?;
        let Value::Map(map) = &operand else {
            return Err(undefined(format!(".{}: {} has no parts", select.field, json::describe(&operand))));
        };
        let part = map.map.get(&KeyRef::String(&select.field) as &dyn cel::objects::AsKeyRef);
        match part {
            _ if select.test => Ok(Value::Bool(part.is_some())),
            Some(part) => Ok(part.clone()),
            None => Err(undefined(format!("there is no part {}", select.field))),
        }
    }

    fn list(&mut self, list: &'e ListExpr) -> Evaluated {
        self.meter.hold(list.elements.len() * ELEMENT_BYTES)?;
        let elements = list.elements.iter().map(|element| self.value(element));
        Ok(Value::List(Arc::new(elements.collect::<Result<_, _>>()?)))
    }

    fn map(&mut self, map: &'e MapExpr) -> Evaluated {
        self.meter.hold(map.entries.len() * PART_BYTES)?;
        let mut parts = HashMap::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(undefined("no map")) };
            let name = self.value(&entry.key)?;
            let what = json::describe(&name);
            let key: Key = name.try_into().map_err(|_| undefined(format!("{what} cannot name a part")))?;
            let value = self.value(&entry.value)?;
            if parts.insert(key, value).is_some() {
                return Err(undefined("a map names a part twice"));
            }
        }
        Ok(Value::Map(Map { map: Arc::new(parts) }))
    }

    fn call(&mut self, call: &'e CallExpr) -> Evaluated {
        let name = call.func_name.as_str();
        let mut parts = call.target.as_deref().into_iter().chain(&call.args);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(asked), Some(yes), Some(no)) if name == op::CONDITIONAL => {
                if self.truth(asked)? {
                    self.value(yes)
                } else {
                    self.value(no)
                }
            }
            (Some(left), Some(right), None) => self.binary(name, left, right),
            (Some(operand), None, None) => self.unary(name, operand),
            _ => Err(unusable(name, &[])),
        }
    }

    fn unary(&mut self, name: &str, operand: &'e IdedExpr) -> Evaluated {
        if name == op::NOT_STRICTLY_FALSE {
            return match self.truth(operand) {
                Ok(yes) => Ok(Value::Bool(yes)),
                Err(Failure::Undefined(_)) => Ok(Value::Bool(true)),
                Err(failure) => Err(failure),
            };
        }
        let value = self.value(operand)?;
        self.meter.step(text_steps(&value))?;
        match (name, &value) {
            (op::LOGICAL_NOT, Value::Bool(yes)) => Ok(Value::Bool(!yes)),
            (op::NEGATE, Value::Int(int)) => int.checked_neg().map(Value::Int).ok_or_else(|| overflow(name)),
            (op::NEGATE, Value::Float(double)) => Ok(Value::Float(-double)),
            ("size", Value::String(text)) => Ok(Value::Int(text.chars().count() as i64)),
            ("size", Value::List(items)) => Ok(Value::Int(items.len() as i64)),
            ("size", Value::Map(map)) => Ok(Value::Int(map.map.len() as i64)),
            (FIRST, Value::List(items)) => Ok(items.first().cloned().unwrap_or(Value::Null)),
            ("int" | "double" | "string", _) => self.converted(name, &value),
            _ => Err(unusable(name, &[&value])),
        }
    }

    fn converted(&self, name: &str, value: &Value) -> Evaluated {
        let unreadable = |text: &str| undefined(format!("{name} cannot read a text of {} bytes", text.len()));
        // What both bounds leave out is what the conversion would have to cut off.
        let fits = |double: f64| double > i64::MIN as f64 && double < i64::MAX as f64;
        match (name, value) {
            ("int", Value::Int(_)) | ("double", Value::Float(_)) | ("string", Value::String(_)) => {
                Ok(value.clone())
            }
            ("int", Value::UInt(int)) => i64::try_from(*int).map(Value::Int).map_err(|_| overflow(name)),
            ("int", Value::Float(double)) if fits(*double) => Ok(Value::Int(*double as i64)),
            ("int", Value::Float(_)) => Err(overflow(name)),
            ("int", Value::String(text)) => text.parse().map(Value::Int).map_err(|_| unreadable(text)),
            ("double", Value::Int(int)) => Ok(Value::Float(*int as f64)),
            ("double", Value::UInt(int)) => Ok(Value::Float(*int as f64)),
            ("double", Value::String(text)) => text.parse().map(Value::Float).map_err(|_| unreadable(text)),
            ("string", Value::Int(int)) => self.text(int.to_string()),
            ("string", Value::UInt(int)) => self.text(int.to_string()),
            ("string", Value::Float(double)) => self.text(double.to_string()),
            ("string", Value::Bool(yes)) => self.text(yes.to_string()),
            _ => Err(unusable(name, &[value])),
        }
    }

    fn binary(&mut self, name: &str, left: &'e IdedExpr, right: &'e IdedExpr) -> Evaluated {
        if let op::LOGICAL_AND | op::LOGICAL_OR = name {
            return self.connected(name == op::LOGICAL_OR, left, right);
        }
        let (left, right) = (self.value(left)?, self.value(right)?);
        let ordered = |wanted: fn(Ordering) -> bool| match order(&left, &right) {
            Some(ordering) => Ok(Value::Bool(wanted(ordering))),
            None => Err(unusable(name, &[&left, &right])),
        };
        let (left_steps, right_steps) = (text_steps(&left), text_steps(&right));
        match name {
            op::EQUALS => self.equal(&left, &right).map(Value::Bool),
            op::NOT_EQUALS => self.equal(&left, &right).map(|same| Value::Bool(!same)),
            op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS => {
                self.meter.step(left_steps.min(right_steps))?;
                match name {
                    op::LESS => ordered(Ordering::is_lt),
                    op::LESS_EQUALS => ordered(Ordering::is_le),
                    op::GREATER => ordered(Ordering::is_gt),
                    _ => ordered(Ordering::is_ge),
                }
            }
            op::IN => self.contained(&left, &right).map(Value::Bool),
            op::INDEX => indexed(&left, &right),
            LABEL => match indexed(&left, &right) {
                Ok(value) => Ok(value),
                Err(_) => self.text(String::new()),
            },
            op::ADD => self.sum(left, right),
            op::SUBSTRACT => numbers(name, left - right),
            op::MULTIPLY => numbers(name, left * right),
            op::DIVIDE => numbers(name, left / right),
            op::MODULO => numbers(name, left % right),
            "contains" | "startsWith" | "endsWith" => {
                let (Value::String(text), Value::String(part)) = (&left, &right) else {
                    return Err(unusable(name, &[&left, &right]));
                };
                self.meter.step(left_steps + right_steps)?;
                Ok(Value::Bool(match name {
                    "contains" => text.contains(part.as_str()),
                    "startsWith" => text.starts_with(part.as_str()),
                    _ => text.ends_with(part.as_str()),
                }))
            }
            _ => Err(unusable(name, &[&left, &right])),
        }
    }

    /// `&&` and `||`. What one side decides alone stands, even if the other is undefined.
    fn connected(&mut self, is_or: bool, left: &'e IdedExpr, right: &'e IdedExpr) -> Evaluated {
        let first = match self.truth(left) {
            Ok(yes) if yes == is_or => return Ok(Value::Bool(is_or)),
            Err(Failure::TooExpensive(reason)) => return Err(reason.into()),
            first => first,
        };
        let second = self.truth(right)?;
        if second == is_or {
            return Ok(Value::Bool(is_or));
        }
        first.map(|_| Value::Bool(second))
    }

    fn sum(&self, left: Value, right: Value) -> Evaluated {
        let bytes = match (&left, &right) {
            (Value::String(a), Value::String(b)) => a.len() + b.len(),
            (Value::List(a), Value::List(b)) => (a.len() + b.len()) * ELEMENT_BYTES,
            _ => 0,
        };
        self.meter.step((bytes / TEXT_STEP_BYTES) as u64)?;
        self.meter.hold(bytes)?;
        numbers(op::ADD, left + right)
    }

    /// Values share their parts, so one that takes little room can be large to go through.
    fn equal(&self, left: &Value, right: &Value) -> Evaluated<bool> {
        self.meter.step(1)?;
        match (left, right) {
            (Value::List(a), Value::List(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b.iter()) {
                    if !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Map(a), Value::Map(b)) => {
                if a.map.len() != b.map.len() {
                    return Ok(false);
                }
                for (key, part) in a.map.iter() {
                    match find(b, &key.into()) {
                        Some(other) if self.equal(part, other)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            _ => {
                self.meter.step(text_steps(left).min(text_steps(right)))?;
                Ok(left == right)
            }
        }
    }

    fn contained(&self, value: &Value, container: &Value) -> Evaluated<bool> {
        match container {
            Value::List(items) => {
                for item in items.iter() {
                    if self.equal(item, value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Map(map) if is_key(value) => Ok(find(map, value).is_some()),
            _ => Err(unusable(op::IN, &[value, container])),
        }
    }

    fn comprehension(&mut self, made: &'e ComprehensionExpr) -> Evaluated {
        let accumulator = self.value(&made.accu_init)?;
        let range = self.value(&made.iter_range)?;
        let items = match range {
            Value::List(items) => items,
            Value::Map(map) => {
                // In their order, so that the same run decides the same everywhere.
                let mut keys: Vec<&Key> = map.map.keys().collect();
                keys.sort_unstable();
                self.meter.step(keys.len() as u64)?;
                self.meter.hold(keys.len() * ELEMENT_BYTES)?;
                Arc::new(keys.into_iter().map(Value::from).collect())
            }
            other => return Err(undefined(format!("{} cannot be gone through", json::describe(&other)))),
        };
        let outside = self.locals.len();
        let given = match (Appending::of(made), &accumulator) {
            (Some(appending), Value::List(start)) if start.is_empty() => {
                self.append_all(made, &appending, &items)
            }
            _ => self.fold(made, accumulator, &items),
        };
        self.locals.truncate(outside);
        given
    }

    /// `map` and `filter`: the list grows in one place, and is not copied for each element.
    fn append_all(
        &mut self,
        made: &'e ComprehensionExpr,
        appending: &Appending<'e>,
        items: &[Value],
    ) -> Evaluated {
        let mut list = Vec::new();
        for item in items {
            self.meter.step(1)?;
            self.locals.push((&made.iter_var, item.clone()));
            let is_wanted = appending.guard.map_or(Ok(true), |guard| self.truth(guard))?;
            if is_wanted {
                for element in &appending.elements.elements {
                    self.meter.hold(ELEMENT_BYTES)?;
                    list.push(self.value(element)?);
                }
            }
            self.locals.pop();
        }
        Ok(Value::List(Arc::new(list)))
    }

    /// Every other macro. `all` and `exists` stand where one element decides, whatever the others are.
    fn fold(&mut self, made: &'e ComprehensionExpr, start: Value, items: &[Value]) -> Evaluated {
        let decides = deciding(made);
        let mut undecided: Option<Failure> = None;
        let accumulator = self.locals.len();
        self.locals.push((&made.accu_var, start));
        for item in items {
            self.meter.step(1)?;
            if !self.truth(&made.loop_cond)? {
                break;
            }
            self.locals.push((&made.iter_var, item.clone()));
            let step = self.value(&made.loop_step);
            self.locals.truncate(accumulator + 1);
            match (step, decides) {
                (Ok(value), Some(wanted)) if undecided.is_some() && as_truth(&value).ok() != Some(wanted) => {
                }
                (Ok(value), _) => {
                    undecided = None;
                    self.locals[accumulator].1 = value;
                }
                (Err(Failure::Undefined(problem)), Some(_)) => undecided = Some(Failure::Undefined(problem)),
                (Err(failure), _) => return Err(failure),
            }
        }
        match undecided {
            Some(failure) => Err(failure),
            None => self.value(&made.result),
        }
    }

    fn text(&self, text: String) -> Evaluated {
        self.meter.hold(text.len())?;
        Ok(Value::String(Arc::new(text)))
    }
}

/// The step of `map` or `filter`: `accumulator + [elements]`, if the guard lets it.
struct Appending<'e> {
    guard: Option<&'e IdedExpr>,
    elements: &'e ListExpr,
}

impl<'e> Appending<'e> {
    fn of(made: &'e ComprehensionExpr) -> Option<Self> {
        let is_accumulator =
            |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if *name == made.accu_var);
        let appended = |node: &'e IdedExpr| match &node.expr {
            Expr::Call(call) if call.func_name == op::ADD => match call.args.as_slice() {
                [list, IdedExpr { expr: Expr::List(elements), .. }] if is_accumulator(list) => Some(elements),
                _ => None,
            },
            _ => None,
        };
        if !is_accumulator(&made.result) || !matches!(made.loop_cond.expr, Expr::Literal(_)) {
            return None;
        }
        match &made.loop_step.expr {
            Expr::Call(call) if call.func_name == op::CONDITIONAL => match call.args.as_slice() {
                [guard, step, otherwise] if is_accumulator(otherwise) => {
                    Some(Self { guard: Some(guard), elements: appended(step)? })
                }
                _ => None,
            },
            _ => Some(Self { guard: None, elements: appended(&made.loop_step)? }),
        }
    }
}

/// What an element of `all` or `exists` has to give to decide alone.
fn deciding(made: &ComprehensionExpr) -> Option<bool> {
    let Expr::Call(call) = &made.loop_step.expr else { return None };
    let is_fold =
        matches!(call.args.first(), Some(IdedExpr { expr: Expr::Ident(name), .. }) if *name == made.accu_var);
    match call.func_name.as_str() {
        op::LOGICAL_AND if is_fold => Some(false),
        op::LOGICAL_OR if is_fold => Some(true),
        _ => None,
    }
}
