//! How deep an expression is nested, found without going deep ourselves: the checker and the evaluator
//! recurse, and a policy file must not be able to use up their stack.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr};

pub fn of(expression: &IdedExpr) -> u16 {
    let mut deepest = 0;
    let mut open = vec![(expression, 1u16)];
    while let Some((node, depth)) = open.pop() {
        deepest = deepest.max(depth);
        for part in parts(&node.expr) {
            open.push((part, depth.saturating_add(1)));
        }
    }
    deepest
}

fn parts(expr: &Expr) -> Vec<&IdedExpr> {
    match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Select(select) => vec![&*select.operand],
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Struct(made) => made.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Comprehension(made) => {
            vec![&made.iter_range, &made.accu_init, &made.loop_cond, &made.loop_step, &made.result]
        }
    }
}

fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}
