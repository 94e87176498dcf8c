//! CEL expressions. Evaluating one gives the same each time, gives what the checker said, and keeps to its meter:
//! nothing takes an evaluation that was too expensive for an answer.

use super::FuzzTarget;
use crate::signal::FuzzSignal;
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::expression::{Bindings, Expression, ValueKind, from_json, to_json};
use serde_json::json;

const EXPRESSION_LEN_MAX: usize = 4096;
/// Small, so that many expressions reach it.
const LIMIT: CostLimit = CostLimit { steps: 5_000, bytes: 256 * 1024 };

pub const TARGET: FuzzTarget = FuzzTarget {
    name: "expressions",
    dictionary: &[
        "input",
        "input.list",
        "input.text",
        "labels",
        "labels['a']",
        "index",
        ".all(x, ",
        ".exists(x, ",
        ".map(x, ",
        ".filter(x, ",
        ".exists_one(x, ",
        "size(",
        ".contains(",
        ".startsWith(",
        ".matches(",
        "has(",
        "[0,0,0,0]",
        "x",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " == ",
        " != ",
        " < ",
        " && ",
        " || ",
        "!",
        " in ",
        " ? ",
        " : ",
        "true",
        "false",
        "null",
        "'a'",
        "\"b\"",
        "1",
        "1.5",
        "1u",
        "{'k': 1}",
        "(",
        ")",
        "[",
        "]",
        "int(",
        "string(",
        "double(",
        "duration('1h')",
        "b'x'",
        "\\u0000",
    ],
    run,
};

fn run(input: &[u8], signal: &mut FuzzSignal) {
    let Ok(source) = std::str::from_utf8(input) else { return };
    let names = [
        ("input", ValueKind::Json),
        ("labels", ValueKind::Labels),
        ("index", ValueKind::Int),
        ("ctx", ValueKind::Json),
    ];
    let expression = match Expression::parse(source, &names, EXPRESSION_LEN_MAX) {
        Ok(expression) => expression,
        Err(problem) => return signal.see_words(&problem),
    };
    signal.see(expression.kind().to_string());
    assert!(expression.steps() > 0, "an expression that costs nothing");
    let once = evaluate(&expression, signal);
    assert_eq!(once, evaluate(&expression, signal), "evaluated again");
}

fn evaluate(expression: &Expression, signal: &mut FuzzSignal) -> Result<String, String> {
    let meter = Meter::new(LIMIT);
    let mut scope = Bindings::new(&meter);
    let list: Vec<u32> = (0..30).collect();
    scope.set(
        "input",
        from_json(&json!({"list": list, "text": "äbc", "flag": true, "deep": {"a": [{}]}}), &meter),
    );
    scope.set("labels", from_json(&json!({"a": "1", "b": "2"}), &meter));
    scope.set("ctx", from_json(&json!({}), &meter));
    scope.set("index", from_json(&json!(3), &meter));
    let value = expression.value(&scope);
    match (&value, meter.exceeded()) {
        (Ok(_), None) => {}
        (Ok(_), Some(reason)) => panic!("an answer in spite of the meter: {reason}"),
        (Err(words), Some(reason)) => assert_eq!(words, &reason.to_string()),
        (Err(words), None) => {
            assert!(!words.contains("too expensive"), "refused without a reason");
            signal.see_words(words);
        }
    }
    value.map(|value| {
        let meter = Meter::new(LIMIT);
        signal.see(std::mem::discriminant(&value));
        format!("{:?}", to_json(&value, &meter))
    })
}
