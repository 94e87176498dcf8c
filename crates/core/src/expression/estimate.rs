//! What an expression is bound to cost, before there are any values: lists that are written out have the
//! length they are written with, and all others count as one element. An expression that cannot be afforded
//! even so is refused when it is written down.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, operators as op};

/// The steps it takes, at least, if every element is looked at.
pub fn steps(node: &IdedExpr) -> u64 {
    let all = |parts: &mut dyn Iterator<Item = &IdedExpr>| parts.map(steps).fold(0, u64::saturating_add);
    let parts = match &node.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => 0,
        Expr::Select(select) => steps(&select.operand),
        Expr::Call(call) => all(&mut call.target.as_deref().into_iter().chain(&call.args)),
        Expr::List(list) => all(&mut list.elements.iter()),
        Expr::Map(map) => all(&mut map.entries.iter().flat_map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
            EntryExpr::StructField(field) => vec![&field.value],
        })),
        Expr::Comprehension(made) => {
            let round = steps(&made.loop_cond).saturating_add(steps(&made.loop_step)).saturating_add(1);
            let around = all(&mut [&made.iter_range, &made.accu_init, &made.result].into_iter());
            elements(&made.iter_range).saturating_mul(round).saturating_add(around)
        }
    };
    parts.saturating_add(1)
}

/// How many elements a list has, at least, as far as it is written out.
fn elements(node: &IdedExpr) -> u64 {
    match &node.expr {
        Expr::List(list) => list.elements.len() as u64,
        Expr::Call(call) if call.func_name == op::ADD => call.args.iter().map(elements).sum(),
        Expr::Comprehension(made) => elements(&made.iter_range),
        _ => 1,
    }
}
