//! Our evaluator against the one of the crate that parses: over random expressions and values both give the
//! same, or both give nothing.

use cel::{Context, Program, Value};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use reveille_core::cost::{CostLimit, Meter, TooExpensive};
use reveille_core::expression::{Bindings, Expression, ValueKind, from_json, to_json};
use serde_json::{Value as Json, json};

const LEN_MAX: usize = 4096;

fn names() -> [(&'static str, ValueKind); 2] {
    [("input", ValueKind::Json), ("n", ValueKind::Int)]
}

/// Parts that fit together often enough: numbers, texts, lists and parts of the input.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (-3i64..4).prop_map(|int| int.to_string()),
        Just("9223372036854775807".to_owned()),
        prop_oneof![Just("0.5"), Just("2.0"), Just("1e300")].prop_map(str::to_owned),
        prop_oneof![Just("'a'"), Just("'b c'"), Just("''"), Just("'7'"), Just("'ä'")].prop_map(str::to_owned),
        prop_oneof![Just("true"), Just("false"), Just("null"), Just("n"), Just("input")]
            .prop_map(str::to_owned),
        prop_oneof![
            Just("input.list"),
            Just("input.text"),
            Just("input.number"),
            Just("input.map"),
            Just("input.missing"),
            Just("input.map.k"),
            Just("input['list']"),
            Just("[]"),
        ]
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 48, 3, |inner| {
        let operator = prop_oneof![
            Just("+"),
            Just("-"),
            Just("*"),
            Just("/"),
            Just("%"),
            Just("=="),
            Just("!="),
            Just("<"),
            Just("<="),
            Just(">"),
            Just(">="),
            Just("&&"),
            Just("||"),
            Just("in"),
        ];
        let member = prop_oneof![Just("contains"), Just("startsWith"), Just("endsWith")];
        let function = prop_oneof![Just("size"), Just("int"), Just("double"), Just("string"), Just("!"), Just("-")];
        let folding = prop_oneof![Just("all"), Just("exists"), Just("exists_one"), Just("filter"), Just("map")];
        prop_oneof![
            4 => (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => (inner.clone(), member, inner.clone()).prop_map(|(a, name, b)| format!("({a}).{name}({b})")),
            2 => (function, inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            2 => (inner.clone(), folding, inner.clone())
                .prop_map(|(a, name, b)| format!("({a}).{name}(x, {})", b.replace("input.text", "x"))),
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(|all| format!("[{}]", all.join(", "))),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{'k': {a}, 'l': {b}}}")),
            1 => inner.prop_map(|a| format!("has(({a}).k)")),
        ]
    })
}

fn inputs() -> impl Strategy<Value = Json> {
    (prop::collection::vec(-2i64..3, 0..4), "[ab ]{0,3}", -2i64..3).prop_map(|(list, text, number)| {
        json!({"list": list, "text": text, "number": number, "map": {"k": number, "m": [text]}})
    })
}

/// What the crate's own evaluator gives.
fn reference(source: &str, input: &Json, n: i64) -> Option<Value> {
    let program = Program::compile(source).ok()?;
    let mut context = Context::default();
    context.add_variable_from_value("input", from_json(input, &Meter::new(CostLimit::RUN_EVENT)));
    context.add_variable_from_value("n", Value::Int(n));
    program.execute(&context).ok()
}

fn ours(source: &str, input: &Json, n: i64, limit: CostLimit) -> Option<Result<Value, String>> {
    let expression = Expression::parse(source, &names(), LEN_MAX).ok()?;
    let meter = Meter::new(limit);
    let mut scope = Bindings::new(&meter);
    scope.set("input", from_json(input, &meter));
    scope.set("n", Value::Int(n));
    Some(expression.value(&scope))
}

/// The value with every list in an order that follows from what is in it.
fn in_order(value: &Value) -> String {
    match value {
        Value::List(items) => {
            let mut items: Vec<String> = items.iter().map(in_order).collect();
            items.sort();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut parts: Vec<String> =
                map.map.iter().map(|(key, part)| format!("{key}: {}", in_order(part))).collect();
            parts.sort();
            format!("{{{}}}", parts.join(", "))
        }
        other => format!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12_000))]

    #[test]
    fn it_gives_what_the_parsers_own_evaluator_gives(source in expressions(), input in inputs(), n in -2i64..3) {
        // What the checker refuses is not evaluated at all.
        let Some(given) = ours(&source, &input, n, CostLimit::RUN_EVENT) else { return Ok(()) };
        // The crate adds the names of a map to a list. The language has no such thing.
        if given.as_ref().is_err_and(|problem| problem == "+ cannot be used with these values") {
            return Ok(());
        }
        let expected = reference(&source, &input, n);
        if given.as_ref().ok() != expected.as_ref() {
            // The crate goes through a map in no order.
            let sorted = |value: Option<&Value>| value.map(in_order);
            prop_assert_eq!(sorted(given.as_ref().ok()), sorted(expected.as_ref()), "{}: {:?}", source, given);
        }
    }

    #[test]
    fn less_to_spend_gives_the_same_or_nothing(source in expressions(), input in inputs(), steps in 0u64..200) {
        let Some(given) = ours(&source, &input, 1, CostLimit::RUN_EVENT) else { return Ok(()) };
        match ours(&source, &input, 1, CostLimit { steps, bytes: 1 << 20 }) {
            Some(Err(problem)) if problem == TooExpensive::Steps(steps).to_string() => {}
            other => prop_assert_eq!(other, Some(given), "{}", source),
        }
    }
}

#[test]
fn enough_random_expressions_give_something_for_the_comparison_to_mean_anything() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut values, mut nothings) = (0, 0);
    for _ in 0..12_000 {
        let source = expressions().new_tree(&mut runner).unwrap().current();
        let input = inputs().new_tree(&mut runner).unwrap().current();
        match ours(&source, &input, 1, CostLimit::RUN_EVENT) {
            Some(Ok(_)) => values += 1,
            Some(Err(_)) => nothings += 1,
            None => {}
        }
    }
    assert!(values > 400 && nothings > 400, "{values} values, {nothings} without one");
}

#[test]
fn a_text_that_doubles_at_every_level_is_stopped_before_it_is_made() {
    let doubled = (0..30).fold("['0123456789']".to_owned(), |list, level| {
        format!("{list}.map(x{level}, x{level} + x{level})")
    });
    let problem = ours(&doubled, &json!({}), 0, CostLimit::RUN_EVENT).unwrap().unwrap_err();
    assert!(problem.contains("too expensive"), "{problem}");
}

#[test]
fn a_value_that_shares_its_parts_is_charged_for_all_of_them() {
    let doubled =
        (0..40).fold("[[1]]".to_owned(), |list, level| format!("{list}.map(x{level}, [x{level}, x{level}])"));
    let meter = Meter::new(CostLimit::RUN_EVENT);
    let expression = Expression::parse(&doubled, &names(), LEN_MAX).unwrap();
    let value = expression.value(&Bindings::new(&meter)).unwrap();
    assert!(to_json(&value, &meter).unwrap_err().contains("too expensive"));
    let compared = format!("{doubled} == {doubled}");
    assert!(
        ours(&compared, &json!({}), 0, CostLimit::RUN_EVENT).unwrap().unwrap_err().contains("too expensive")
    );
}
