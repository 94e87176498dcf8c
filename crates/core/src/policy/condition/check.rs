//! The type checker of conditions. It walks the parsed expression once, knows the kind of every part, and
//! turns each look into the labels into one that cannot fail.

use super::kinds::{FIELDS, Kind, field};
use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, SelectExpr, operators as op,
};

/// Names that a macro such as `exists` brings in, innermost last.
type Scope = Vec<(String, Kind)>;
type Checked = Result<(IdedExpr, Kind), String>;

/// The expression, ready to be asked, if it says yes or no.
pub fn yes_or_no(expression: IdedExpr) -> Result<IdedExpr, String> {
    let (checked, kind) = check(expression, &mut Scope::new())?;
    match kind {
        Kind::Truth => Ok(checked),
        other => Err(format!("is {other}, not yes or no")),
    }
}

fn check(node: IdedExpr, scope: &mut Scope) -> Checked {
    let id = node.id;
    let (expr, kind) = match node.expr {
        Expr::Literal(literal) => {
            let kind = literal_kind(&literal)?;
            (Expr::Literal(literal), kind)
        }
        Expr::Ident(name) => {
            let kind = name_kind(&name, scope)?;
            (Expr::Ident(name), kind)
        }
        Expr::Select(select) => return select_of(id, select, scope),
        Expr::Call(call) => return call_of(id, call, scope),
        Expr::List(list) => list_of(list, scope)?,
        Expr::Comprehension(comprehension) => comprehension_of(*comprehension, scope)?,
        Expr::Map(map) => {
            let name = map.entries.first().map(|entry| match &entry.expr {
                EntryExpr::StructField(field) => field.field.as_str(),
                EntryExpr::MapEntry(_) => "{…}",
            });
            return Err(format!("maps ({}) are of no use in a condition", name.unwrap_or("{}")));
        }
        Expr::Struct(made) => return Err(format!("there is no type {}", made.type_name)),
        Expr::Unspecified => return Err("is empty".to_owned()),
    };
    Ok((IdedExpr { id, expr }, kind))
}

fn literal_kind(literal: &LiteralValue) -> Result<Kind, String> {
    match literal {
        LiteralValue::Boolean(_) => Ok(Kind::Truth),
        LiteralValue::Int(_) => Ok(Kind::Int),
        LiteralValue::Double(_) => Ok(Kind::Double),
        LiteralValue::String(_) => Ok(Kind::Text),
        LiteralValue::UInt(_) => Err("unsigned numbers are of no use: leave out the u".to_owned()),
        LiteralValue::Bytes(_) => Err("bytes are of no use: leave out the b".to_owned()),
        LiteralValue::Null => Err("no fact is ever null".to_owned()),
    }
}

fn name_kind(name: &str, scope: &Scope) -> Result<Kind, String> {
    if let Some((_, kind)) = scope.iter().rev().find(|(known, _)| known == name) {
        return Ok(kind.clone());
    }
    if name == "job" {
        Ok(Kind::Job)
    } else {
        Err(format!("unknown name {name}: facts are asked for as job.…"))
    }
}

/// `job.topic`, `job.labels.env`, `has(job.labels.env)`.
fn select_of(id: u64, select: SelectExpr, scope: &mut Scope) -> Checked {
    let (operand, kind) = check(*select.operand, scope)?;
    let kind = match kind {
        Kind::Job => {
            let names = || FIELDS.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
            let fact = field(&select.field)
                .ok_or_else(|| format!("a job has no fact {}; it has {}", select.field, names()))?;
            if select.test { Kind::Truth } else { (fact.kind)() }
        }
        Kind::Labels if select.test => Kind::Truth,
        Kind::Labels => return Ok(label(id, operand, text(select.field))),
        other => return Err(format!(".{}: {other} has no parts", select.field)),
    };
    let select = SelectExpr { operand: Box::new(operand), field: select.field, test: select.test };
    Ok((IdedExpr { id, expr: Expr::Select(select) }, kind))
}

/// `key in labels ? labels[key] : ''`
fn label(id: u64, labels: IdedExpr, key: IdedExpr) -> (IdedExpr, Kind) {
    let node = |name: &str, args| IdedExpr {
        id,
        expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }),
    };
    let is_there = node(op::IN, vec![key.clone(), labels.clone()]);
    let value = node(op::INDEX, vec![labels, key]);
    (node(op::CONDITIONAL, vec![is_there, value, text(String::new())]), Kind::Text)
}

fn text(text: String) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::String(text.into())) }
}

fn call_of(id: u64, call: CallExpr, scope: &mut Scope) -> Checked {
    let CallExpr { func_name: name, target, args } = call;
    let is_member = target.is_some();
    let mut checked = Vec::with_capacity(args.len() + 1);
    for part in target.map(|target| *target).into_iter().chain(args) {
        checked.push(check(part, scope)?);
    }
    let (mut parts, kinds): (Vec<IdedExpr>, Vec<Kind>) = checked.into_iter().unzip();
    let kind = call_kind(&name, is_member, &kinds)?;
    if name == op::INDEX && kinds.first() == Some(&Kind::Labels) {
        let key = parts.pop().unwrap_or_default();
        return Ok(label(id, parts.pop().unwrap_or_default(), key));
    }
    let target = is_member.then(|| Box::new(parts.remove(0)));
    Ok((IdedExpr { id, expr: Expr::Call(CallExpr { func_name: name, target, args: parts }) }, kind))
}

fn call_kind(name: &str, is_member: bool, kinds: &[Kind]) -> Result<Kind, String> {
    use Kind::{Double, Int, Job, Labels, List, Text, Truth};
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
            Some(Job | Labels) => Err(format!("{written}: {a} can only be asked for its parts")),
            None if !(a.is_number() && b.is_number()) => Err(format!("{written} compares {a} with {b}")),
            _ => Ok(Truth),
        },
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [a, b]) => {
            let fits = (a.is_number() && b.is_number()) || (*a == Text && *b == Text);
            if fits { Ok(Truth) } else { Err(format!("{written} compares {a} with {b}")) }
        }
        (op::IN, [a, List(of)]) if a.join(of).is_some() => Ok(Truth),
        (op::IN, [Text, Labels]) => Ok(Truth),
        (op::ADD, [List(a), List(b)]) => {
            a.join(b).map(Kind::list).ok_or_else(|| format!("+ joins lists of {a} and {b}"))
        }
        (op::ADD, [Text, Text]) | (op::INDEX, [Labels, Text]) => Ok(Text),
        (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, [Int, Int])
        | (op::NEGATE, [Int])
        | ("size", [Text | List(_) | Labels])
        | ("int", [Text | Int | Double]) => Ok(Int),
        (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE, [Double, Double]) | (op::NEGATE, [Double]) => {
            Ok(Double)
        }
        (op::INDEX, [List(of), Int]) => Ok((**of).clone()),
        ("contains" | "startsWith" | "endsWith", [Text, Text]) if is_member => Ok(Truth),
        ("double", [Text | Int | Double]) => Ok(Double),
        ("string", [Text | Int | Double | Truth]) => Ok(Text),
        _ => {
            let given = kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
            Err(format!("{written} cannot be used with {given}"))
        }
    }
}

fn truth(written: &str, kinds: &[&Kind]) -> Result<Kind, String> {
    match kinds.iter().find(|kind| kind.join(&Kind::Truth).is_none()) {
        Some(other) => Err(format!("{written} needs yes or no, and is given {other}")),
        None => Ok(Kind::Truth),
    }
}

fn list_of(list: ListExpr, scope: &mut Scope) -> Result<(Expr, Kind), String> {
    let mut of = Kind::Any;
    let mut elements = Vec::with_capacity(list.elements.len());
    for element in list.elements {
        let (element, kind) = check(element, scope)?;
        of = of.join(&kind).ok_or_else(|| format!("a list has {of} and {kind}"))?;
        elements.push(element);
    }
    Ok((Expr::List(ListExpr { elements, ..list }), Kind::list(of)))
}

/// What `all`, `exists`, `exists_one`, `filter` and `map` become.
fn comprehension_of(made: ComprehensionExpr, scope: &mut Scope) -> Result<(Expr, Kind), String> {
    let (iter_range, range) = check(made.iter_range, scope)?;
    let item = match range {
        Kind::List(of) => *of,
        Kind::Labels => Kind::Text,
        other => return Err(format!("{other} cannot be gone through")),
    };
    if made.iter_var2.is_some() {
        return Err("a macro takes one name".to_owned());
    }
    let (accu_init, accu) = check(made.accu_init, scope)?;
    let outside = scope.len();
    scope.push((made.accu_var.clone(), accu.clone()));
    scope.push((made.iter_var.clone(), item));
    let (loop_cond, asked) = check(made.loop_cond, scope)?;
    truth("a macro", &[&asked])?;
    let (loop_step, step) = check(made.loop_step, scope)?;
    let accu = accu.join(&step).ok_or_else(|| format!("a macro needs {accu}, and is given {step}"))?;
    scope.truncate(outside);
    scope.push((made.accu_var.clone(), accu));
    let (result, kind) = check(made.result, scope)?;
    scope.truncate(outside);
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
