//! Documents, an input, and what is foreseen of every step.

use super::{document, document_with};
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::flow::{self, Fate, Flow, Forecast, Foreseen, WorkflowDocument};
use reveille_core::time::Millis;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

fn dry_run(flow: &Flow, input: Option<&Json>, now: Millis) -> (Vec<Foreseen>, i64) {
    flow::dry_run(flow, input, now, &Meter::new(CostLimit::RUN_EVENT))
}

/// A line per step: `id: fate; input …; output …`.
fn told(document: &WorkflowDocument, input: &Json) -> String {
    let flow = Flow::check(document, 1, Millis(0)).unwrap_or_else(|problem| panic!("{problem}"));
    let list = |on: &BTreeSet<String>| on.iter().cloned().collect::<Vec<_>>().join(" ");
    let line = |step: &Foreseen| {
        let fate = match &step.fate {
            Fate::Begins => "begins".to_owned(),
            Fate::Depends(on) => format!("depends on {}", list(on)),
            Fate::Skipped(why) => format!("skipped ({why})"),
            Fate::Fails(why) => format!("fails ({why})"),
        };
        let input = |input: &Forecast<Json>| match input {
            Forecast::Yes(json) => format!(" <- {json}"),
            Forecast::Depends(on) => format!(" <- ?{}", list(on)),
            Forecast::Fails(_) => " <- !".to_owned(),
        };
        let inputs: String = step.inputs.iter().map(input).collect();
        let output = step.output.as_ref().map_or_else(String::new, |output| format!(" -> {output}"));
        format!("{}: {fate}{inputs}{output}", step.step)
    };
    dry_run(&flow, Some(input), Millis(0)).0.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn check(steps: Json, input: &Json, expected: &str) {
    assert_eq!(told(&document(steps), input), expected);
}

#[test]
fn what_rests_on_the_input_alone_is_known_and_the_rest_says_on_what_it_rests() {
    check(
        json!({
            "fetch": {"topic": "job.fetch", "input": {"url": "${input.url}"}},
            "sum": {"topic": "job.sum", "depends_on": ["fetch"], "input": {"text": "${steps.fetch.output}"}},
            "big": {"topic": "job.big", "depends_on": ["fetch"], "condition": "steps.fetch.output.n > 1"},
            "last": {"topic": "job.last", "depends_on": ["big"], "input": {"n": "${input.n + 1}"}},
        }),
        &json!({"url": "u", "n": 1}),
        r#"fetch: begins <- {"url":"u"}
big: depends on steps.fetch <- {}
last: depends on steps.fetch <- {"n":2}
sum: begins <- ?steps.fetch"#,
    );
}

#[test]
fn conditions_and_switches_that_are_known_skip_what_they_skip() {
    check(
        json!({
            "a": {"topic": "job.a", "condition": "input.n > 1"},
            "b": {"topic": "job.b", "depends_on": ["a"]},
            "c": {"topic": "job.c", "depends_on": ["a"], "run_when": "settled", "input": "${steps.a.status}"},
            "way": {"type": "switch", "condition": "input.kind", "input": {"cases": [{"when": "x", "next": "x"}], "default": "y"}},
            "x": {"topic": "job.x"},
            "y": {"topic": "job.y"},
        }),
        &json!({"n": 1, "kind": "x"}),
        r#"a: skipped (its condition is false)
b: skipped (a is skipped)
c: begins <- "skipped"
way: begins <- {} -> "x"
x: begins <- {}
y: skipped (switch_branch_not_taken)"#,
    );
    check(
        json!({
            "ask": {"topic": "job.ask"},
            "way": {"type": "switch", "depends_on": ["ask"], "condition": "steps.ask.output", "input": {"cases": [{"when": "x", "next": "x"}]}},
            "x": {"topic": "job.x"},
        }),
        &json!({}),
        "ask: begins <- {}\nway: begins <- {}\nx: depends on what way finds <- {}",
    );
}

#[test]
fn an_input_that_does_not_fit_is_found_round_by_round() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let steps = json!({
        "each": {"topic": "job.each", "for_each": "${input.list}", "input": {"n": "${item}"}, "input_schema": schema},
        "after": {"topic": "job.after", "depends_on": ["each"]},
    });
    check(
        steps.clone(),
        &json!({"list": [1, 2]}),
        "each: begins <- {\"n\":1} <- {\"n\":2}\nafter: begins <- {}",
    );
    let said = told(&document(steps.clone()), &json!({"list": [1, "x"]}));
    assert!(said.starts_with("each: fails (round 1: input: /n does not fit"), "{said}");
    assert!(said.ends_with("after: skipped (each would fail)"), "{said}");
    let said = told(&document(steps), &json!({}));
    assert!(said.starts_with("each: fails (for_each: "), "{said}");
}

#[test]
fn handlers_rest_on_whether_something_fails() {
    let steps = json!({
        "a": {"topic": "job.a", "on_error": "mend"},
        "mend": {"topic": "job.mend", "input": "${steps.a.error}"},
        "sum": {"type": "transform", "input": "${1 / input.n}", "on_error": "other"},
        "other": {"topic": "job.other", "input": "${steps.sum.status}"},
    });
    check(
        steps.clone(),
        &json!({"n": 1}),
        "a: begins <- {}\nmend: depends on whether a fails <- ?steps.a\nsum: begins <- 1 -> 1\nother: skipped (nothing before it would fail)",
    );
    let said = told(&document(steps), &json!({"n": 0}));
    assert!(said.contains("sum: fails (") && said.ends_with("other: begins <- \"failed\""), "{said}");
}

#[test]
fn parameters_are_known_unless_a_step_writes_them() {
    let steps = json!({
        "a": {"topic": "job.a", "input": ["${ctx.fixed}", "${ctx.fixed}"]},
        "w": {"topic": "job.w", "output_path": "moved"},
        "b": {"topic": "job.b", "depends_on": ["w"], "input": "${ctx.moved}"},
    });
    let document = document_with(steps, json!({"parameters": {"fixed": 1, "moved": 2}}));
    assert_eq!(told(&document, &json!({})), "a: begins <- [1,1]\nw: begins <- {}\nb: begins <- ?ctx.moved");
}

#[test]
fn delays_add_up_along_the_longest_way() {
    let steps = json!({
        "a": {"type": "delay", "delay_sec": 10},
        "b": {"topic": "job.b", "depends_on": ["a"], "delay_sec": 5},
        "c": {"type": "delay", "delay_until": "1970-01-01T00:00:12Z"},
    });
    let flow = Flow::check(&document(steps), 1, Millis(0)).unwrap();
    assert_eq!(dry_run(&flow, Some(&json!({})), Millis(0)).1, 15_000);
}

#[test]
fn what_undoes_a_step_is_known_as_far_as_its_input_is() {
    let undo = |input: &str| json!({"topic": "job.undo", "input": input});
    let steps = json!({
        "a": {"topic": "job.a", "compensation": undo("${input.n}")},
        "b": {"topic": "job.b", "compensation": undo("${steps.b.output.id}")},
        "each": {"topic": "job.c", "for_each": "${input.list}", "compensation": undo("${item + index}")},
        "plain": {"topic": "job.d"},
    });
    let flow = Flow::check(&document(steps), 1, Millis(0)).unwrap();
    let undone = |input: Option<&Json>| {
        let of = |step: Foreseen| (step.step.to_string(), step.undo_inputs);
        dry_run(&flow, input, Millis(0)).0.into_iter().map(of).collect::<BTreeMap<_, _>>()
    };
    let on = |name: &str| Forecast::Depends([name.to_owned()].into());
    let told = undone(Some(&json!({"n": 7, "list": [10, 20]})));
    assert_eq!(told["a"], [Forecast::Yes(json!(7))]);
    assert_eq!(told["b"], [on("steps.b")]);
    assert_eq!(told["each"], [Forecast::Yes(json!(10)), Forecast::Yes(json!(21))]);
    assert_eq!(told["plain"], []);
    let told = undone(None);
    assert_eq!(told["a"], [on("input")], "whatever it is given");
    assert_eq!(told["each"], []);
}
