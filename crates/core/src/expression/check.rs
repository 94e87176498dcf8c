//! The type checker. It walks the parsed expression once, knows the kind of every part, and turns each look
//! into labels into one that cannot fail. Nothing is written out twice, so what is checked is no larger than
//! what was written.

use super::evaluate::{FIRST, LABEL};
use super::{NameReference, Names, ValueKind};
use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, MapEntryExpr,
    MapExpr, SelectExpr, operators as op,
};
use std::collections::BTreeSet;

type Checked = Result<(IdedExpr, ValueKind), String>;

/// An expression, ready to be asked.
pub struct CheckedExpression {
    pub expression: IdedExpr,
    pub kind: ValueKind,
    pub asks: BTreeSet<NameReference>,
}

/// What is known where a part of the expression stands.
struct CheckScope<'a> {
    names: Names<'a>,
    /// Names that a macro such as `exists` brings in, innermost last.
    inner: Vec<(String, ValueKind)>,
    asks: BTreeSet<NameReference>,
}

pub fn check_all(expression: IdedExpr, names: Names<'_>) -> Result<CheckedExpression, String> {
    let mut scope = CheckScope { names, inner: Vec::new(), asks: BTreeSet::new() };
    let (expression, kind) = check(expression, &mut scope)?;
    Ok(CheckedExpression { expression, kind, asks: scope.asks })
}

fn check(node: IdedExpr, scope: &mut CheckScope<'_>) -> Checked {
    let id = node.id;
    let (expr, kind) = match node.expr {
        Expr::Literal(literal) => {
            let kind = literal_kind(&literal)?;
            (Expr::Literal(literal), kind)
        }
        Expr::Ident(name) => {
            let kind = scope.kind_of(&name, None)?;
            (Expr::Ident(name), kind)
        }
        Expr::Select(select) => return select_of(id, select, scope),
        Expr::Call(call) => return call_of(id, call, scope),
        Expr::List(list) => list_of(list, scope)?,
        Expr::Comprehension(comprehension) => comprehension_of(*comprehension, scope)?,
        Expr::Map(map) => map_of(map, scope)?,
        Expr::Struct(made) => return Err(format!("there is no type {}", made.type_name)),
        Expr::Unspecified => return Err("is empty".to_owned()),
    };
    Ok((IdedExpr { id, expr }, kind))
}

fn literal_kind(literal: &LiteralValue) -> Result<ValueKind, String> {
    match literal {
        LiteralValue::Boolean(_) => Ok(ValueKind::Truth),
        LiteralValue::Int(_) => Ok(ValueKind::Int),
        LiteralValue::Double(_) => Ok(ValueKind::Double),
        LiteralValue::String(_) => Ok(ValueKind::Text),
        LiteralValue::UInt(_) => Err("unsigned numbers are of no use: leave out the u".to_owned()),
        LiteralValue::Bytes(_) => Err("bytes are of no use: leave out the b".to_owned()),
        LiteralValue::Null => Ok(ValueKind::Null),
    }
}

impl CheckScope<'_> {
    /// The kind of a name, of which this part is asked for.
    fn kind_of(&mut self, name: &str, part: Option<&str>) -> Result<ValueKind, String> {
        if let Some((_, kind)) = self.inner.iter().rev().find(|(known, _)| known == name) {
            return Ok(kind.clone());
        }
        let Some((_, kind)) = self.names.iter().find(|(known, _)| *known == name) else {
            let known = self.names.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
            return Err(format!("unknown name {name}: there is {known}"));
        };
        self.asks.insert(NameReference { name: name.to_owned(), part: part.map(str::to_owned) });
        Ok(kind.clone())
    }

    /// What stands before a dot or a bracket, of which this part is asked for.
    fn operand(&mut self, node: IdedExpr, part: &str) -> Checked {
        if let Expr::Ident(name) = &node.expr {
            let kind = self.kind_of(name, Some(part))?;
            return Ok((node, kind));
        }
        check(node, self)
    }
}

/// `job.topic`, `job.labels.env`, `has(job.labels.env)`, `input.user.name`.
fn select_of(id: u64, select: SelectExpr, scope: &mut CheckScope<'_>) -> Checked {
    let SelectExpr { operand, field, test } = select;
    let (operand, kind) = scope.operand(*operand, &field)?;
    let kind = match kind {
        ValueKind::Record(record) => record.part(&field)?,
        ValueKind::Labels if !test => return Ok(label(id, operand, text(field))),
        ValueKind::Labels | ValueKind::Json => ValueKind::Json,
        other => return Err(format!(".{field}: {other} has no parts")),
    };
    let kind = if test { ValueKind::Truth } else { kind };
    let select = SelectExpr { operand: Box::new(operand), field, test };
    Ok((IdedExpr { id, expr: Expr::Select(select) }, kind))
}

/// What is read is the empty text where there is no such label.
fn label(id: u64, labels: IdedExpr, key: IdedExpr) -> (IdedExpr, ValueKind) {
    (call(id, LABEL, vec![labels, key]), ValueKind::Text)
}

fn first(id: u64, list: IdedExpr, kind: &ValueKind) -> Checked {
    if !matches!(kind, ValueKind::List(_)) && !kind.is_open() {
        return Err(format!("first cannot be used with {kind}"));
    }
    Ok((call(id, FIRST, vec![list]), ValueKind::Json))
}

fn call(id: u64, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}

fn text(text: String) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::String(text.into())) }
}

fn call_of(id: u64, call: CallExpr, scope: &mut CheckScope<'_>) -> Checked {
    let CallExpr { func_name: name, target, args } = call;
    if let (op::INDEX, [operand, key]) = (name.as_str(), args.as_slice())
        && let Expr::Literal(LiteralValue::String(part)) = &key.expr
    {
        // `steps['fetch-page']` is `steps.fetch-page`, if that could be written.
        let (operand, field) = (Box::new(operand.clone()), part.to_string());
        return select_of(id, SelectExpr { operand, field, test: false }, scope);
    }
    let name = if name == "length" { "size".to_owned() } else { name };
    let is_member = target.is_some();
    let mut checked = Vec::with_capacity(args.len() + 1);
    for part in target.map(|target| *target).into_iter().chain(args) {
        checked.push(check(part, scope)?);
    }
    let (mut parts, kinds): (Vec<IdedExpr>, Vec<ValueKind>) = checked.into_iter().unzip();
    if name == FIRST && parts.len() == 1 {
        return first(id, parts.remove(0), &kinds[0]);
    }
    let kind = call_kind(&name, is_member, &kinds)?;
    if name == op::INDEX && kinds.first() == Some(&ValueKind::Labels) {
        let key = parts.pop().unwrap_or_default();
        return Ok(label(id, parts.pop().unwrap_or_default(), key));
    }
    let target = is_member.then(|| Box::new(parts.remove(0)));
    Ok((IdedExpr { id, expr: Expr::Call(CallExpr { func_name: name, target, args: parts }) }, kind))
}

fn call_kind(name: &str, is_member: bool, kinds: &[ValueKind]) -> Result<ValueKind, String> {
    use ValueKind::{Double, Int, Labels, List, Record, Text, Truth};
    let written = name.trim_matches(['_', '@']);
    match (name, kinds) {
        (op::LOGICAL_AND | op::LOGICAL_OR, [a, b]) => truth(written, &[a, b]),
        (op::LOGICAL_NOT, [a]) => truth("!", &[a]),
        (op::NOT_STRICTLY_FALSE, [a]) => truth("a condition in a macro", &[a]),
        (op::CONDITIONAL, [asked, yes, no]) => {
            truth("?", &[asked])?;
            yes.join(no).ok_or_else(|| format!("? : gives {yes} or {no}"))
        }
        (op::EQUALS | op::NOT_EQUALS, [a, b]) => match a.join(b) {
            Some(Record(_) | Labels) => Err(format!("{written}: {a} can only be asked for its parts")),
            None if !(a.is_number() && b.is_number()) => Err(format!("{written} compares {a} with {b}")),
            _ => Ok(Truth),
        },
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [a, b]) => {
            let fits = (a.may_be_number() && b.may_be_number()) || (a.may_be(&Text) && b.may_be(&Text));
            if fits { Ok(Truth) } else { Err(format!("{written} compares {a} with {b}")) }
        }
        (op::IN, [a, List(of)]) if a.join(of).is_some() => Ok(Truth),
        (op::IN, [Text, Labels]) => Ok(Truth),
        (op::ADD, [List(a), List(b)]) => {
            a.join(b).map(ValueKind::list).ok_or_else(|| format!("+ joins lists of {a} and {b}"))
        }
        (op::ADD, [Text, Text]) | (op::INDEX, [Labels, Text]) => Ok(Text),
        (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, [Int, Int])
        | (op::NEGATE, [Int])
        | ("size", [Text | List(_) | Labels])
        | ("int", [Text | Int | Double]) => Ok(Int),
        (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE, [Double, Double]) | (op::NEGATE, [Double]) => {
            Ok(Double)
        }
        (op::INDEX, [List(of), index]) if index.may_be(&Int) => Ok((**of).clone()),
        ("contains" | "startsWith" | "endsWith", [a, b])
            if is_member && a.may_be(&Text) && b.may_be(&Text) =>
        {
            Ok(Truth)
        }
        ("double", [Text | Int | Double]) => Ok(Double),
        ("string", [Text | Int | Double | Truth]) => Ok(Text),
        _ => of_json(name, kinds).ok_or_else(|| {
            let given = kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
            format!("{written} cannot be used with {given}")
        }),
    }
}

/// What is given where a part is only known when it is asked.
fn of_json(name: &str, kinds: &[ValueKind]) -> Option<ValueKind> {
    if !kinds.iter().any(ValueKind::is_open) {
        return None;
    }
    match (name, kinds) {
        (op::IN, [_, _]) => Some(ValueKind::Truth),
        (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO | op::INDEX, [_, _]) => {
            Some(ValueKind::Json)
        }
        (op::NEGATE, [_]) => Some(ValueKind::Json),
        ("size" | "int", [_]) => Some(ValueKind::Int),
        ("double", [_]) => Some(ValueKind::Double),
        ("string", [_]) => Some(ValueKind::Text),
        _ => None,
    }
}

fn truth(written: &str, kinds: &[&ValueKind]) -> Result<ValueKind, String> {
    match kinds.iter().find(|kind| kind.join(&ValueKind::Truth).is_none()) {
        Some(other) => Err(format!("{written} needs yes or no, and is given {other}")),
        None => Ok(ValueKind::Truth),
    }
}

fn list_of(list: ListExpr, scope: &mut CheckScope<'_>) -> Result<(Expr, ValueKind), String> {
    let mut of = ValueKind::Any;
    let mut elements = Vec::with_capacity(list.elements.len());
    for element in list.elements {
        let (element, kind) = check(element, scope)?;
        of = of.join(&kind).ok_or_else(|| format!("a list has {of} and {kind}"))?;
        elements.push(element);
    }
    Ok((Expr::List(ListExpr { elements, ..list }), ValueKind::list(of)))
}

/// `{'name': value}`
fn map_of(map: MapExpr, scope: &mut CheckScope<'_>) -> Result<(Expr, ValueKind), String> {
    let mut entries = Vec::with_capacity(map.entries.len());
    for entry in map.entries {
        let EntryExpr::MapEntry(MapEntryExpr { key, value, optional }) = entry.expr else {
            return Err("a map has fields".to_owned());
        };
        let (key, kind) = check(key, scope)?;
        if !kind.may_be(&ValueKind::Text) {
            return Err(format!("a map's names are texts, and one is {kind}"));
        }
        let (value, _) = check(value, scope)?;
        entries.push(IdedEntryExpr {
            id: entry.id,
            expr: EntryExpr::MapEntry(MapEntryExpr { key, value, optional }),
        });
    }
    Ok((Expr::Map(MapExpr { entries }), ValueKind::Json))
}

/// What `all`, `exists`, `exists_one`, `filter` and `map` become.
fn comprehension_of(
    made: ComprehensionExpr,
    scope: &mut CheckScope<'_>,
) -> Result<(Expr, ValueKind), String> {
    let (iter_range, range) = check(made.iter_range, scope)?;
    let item = match range {
        ValueKind::List(of) => *of,
        ValueKind::Labels => ValueKind::Text,
        open if open.is_open() => ValueKind::Json,
        other => return Err(format!("{other} cannot be gone through")),
    };
    if made.iter_var2.is_some() {
        return Err("a macro takes one name".to_owned());
    }
    let (accu_init, accu) = check(made.accu_init, scope)?;
    let outside = scope.inner.len();
    scope.inner.push((made.accu_var.clone(), accu.clone()));
    scope.inner.push((made.iter_var.clone(), item));
    let (loop_cond, asked) = check(made.loop_cond, scope)?;
    truth("a macro", &[&asked])?;
    let (loop_step, step) = check(made.loop_step, scope)?;
    let accu = accu.join(&step).ok_or_else(|| format!("a macro needs {accu}, and is given {step}"))?;
    scope.inner.truncate(outside);
    scope.inner.push((made.accu_var.clone(), accu));
    let (result, kind) = check(made.result, scope)?;
    scope.inner.truncate(outside);
    let (iter_var, iter_var2, accu_var) = (made.iter_var, made.iter_var2, made.accu_var);
    let made = ComprehensionExpr {
        iter_range,
        iter_var,
        iter_var2,
        accu_var,
        accu_init,
        loop_cond,
        loop_step,
        result,
    };
    Ok((Expr::Comprehension(Box::new(made)), kind))
}
