//! What cannot be saved, and what is said of it: the step, the field and the reason.

use super::job;
use reveille_core::flow::{Flow, WorkflowDocument};
use reveille_core::time::Millis;
use serde_json::{Value as Json, json};

fn refused(what: &str, document: Result<WorkflowDocument, serde_json::Error>, parts: &[&str]) {
    let said = match document {
        Err(error) => error.to_string(),
        Ok(document) => Flow::check(&document, 1, Millis(1_800_000_000_000))
            .err()
            .unwrap_or_else(|| panic!("{what} was taken"))
            .to_string(),
    };
    for part in parts {
        assert!(said.contains(part), "{what}: {said:?} should say {part:?}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn bad_steps_are_refused_with_the_step_and_the_reason() {
    for (steps, parts) in [
        (json!({}), &["steps", "at least one"][..]),
        (
            json!({"a": job("job.a", &["b"]), "b": job("job.b", &["a"])}),
            &["step a", "depends_on", "wait for each other: a, b"],
        ),
        (json!({"a": job("job.a", &["a"])}), &["step a", "wait for each other"]),
        (json!({"a": job("job.a", &["gone"])}), &["step a", "depends_on", "no step gone"]),
        (json!({"a": {"topic": "job.a", "on_error": "gone"}}), &["step a", "on_error", "no step gone"]),
        (json!({"a": {"topic": "job.a", "on_error": "a"}}), &["step a", "on_error", "its own"]),
        (json!({"a": {}}), &["step a", "topic"]),
        (json!({"a": {"type": "magic"}}), &["step a", "type", "no step type \"magic\"", "subworkflow"]),
        (json!({"a b": job("job.a", &[])}), &["steps", "a b"]),
        (json!({"a": {"topic": "job.a", "id": "z"}}), &["step a", "id"]),
        (json!({"a": {"topic": "job.a", "condition": "input.n +"}}), &["step a", "condition"]),
        (
            json!({"a": {"topic": "job.a", "condition": "'x'"}}),
            &["step a", "condition", "a text, not yes or no"],
        ),
        (
            json!({"a": {"topic": "job.a", "condition": "1 == 'x'"}}),
            &["step a", "condition", "a number with a text"],
        ),
        (
            json!({"a": {"topic": "job.a", "input": {"x": "${nothing}"}}}),
            &["step a", "input", "x: unknown name nothing"],
        ),
        (
            json!({"a": {"topic": "job.a", "input": {"x": "${item}"}}}),
            &["step a", "input", "unknown name item"],
        ),
        (
            json!({"a": job("job.a", &[]), "b": {"topic": "job.b", "input": "${steps.a.output}"}}),
            &["step b", "input", "has no a; it has nothing"],
        ),
        (
            json!({"a": job("job.a", &[]), "b": {"topic": "job.b", "depends_on": ["a"], "input": "${steps.a.result}"}}),
            &["step b", "a step has no result; it has error, output, status"],
        ),
        (
            json!({"a": {"topic": "job.a", "for_each": vec![0; 10_000]}}),
            &["step a", "for_each", "10000 items", "at most 1000"],
        ),
        (
            json!({"a": {"topic": "job.a", "for_each": "'text'"}}),
            &["step a", "for_each", "a text, not a list"],
        ),
        (json!({"a": {"topic": "job.a", "for_each": [1], "max_parallel": 0}}), &["step a", "max_parallel"]),
        (json!({"a": {"topic": "job.a", "max_parallel": 3}}), &["step a", "max_parallel"]),
        (json!({"a": {"type": "delay"}}), &["step a", "delay_sec"]),
        (json!({"a": {"type": "delay", "delay_sec": -1}}), &["step a", "delay_sec"]),
        (json!({"a": {"type": "delay", "delay_sec": 1e12}}), &["step a", "delay_sec"]),
        (
            json!({"a": {"type": "delay", "delay_until": "2020-01-01T00:00:00Z"}}),
            &["step a", "delay_until", "in the past"],
        ),
        (
            json!({"a": {"type": "delay", "delay_until": "+010000-01-01T00:00:00Z"}}),
            &["step a", "delay_until"],
        ),
        (json!({"a": {"type": "delay", "delay_until": "tomorrow"}}), &["step a", "delay_until", "RFC 3339"]),
        (
            json!({"a": {"topic": "job.a", "delay_sec": 1, "delay_until": "2099-01-01T00:00:00Z"}}),
            &["step a", "either"],
        ),
        (json!({"a": {"topic": "job.a", "timeout_sec": 0}}), &["step a", "timeout_sec"]),
        (
            json!({"a": {"topic": "job.a", "retry": {"max_retries": 1000}}}),
            &["step a", "retry", "max_retries"],
        ),
        (json!({"a": {"topic": "job.a", "retry": {"multiplier": 0.1}}}), &["step a", "retry", "multiplier"]),
        (json!({"a": {"topic": "job.a", "run_when": "later"}}), &["step a", "run_when"]),
        (json!({"a": {"topic": "job.a", "output_path": "a.b"}}), &["step a", "output_path"]),
        (json!({"a": {"topic": "job.a", "input_schema": {"type": 5}}}), &["step a", "input_schema"]),
        (json!({"a": {"type": "switch", "condition": "input.x"}}), &["step a", "cases"]),
        (
            json!({"a": {"type": "switch", "condition": "input.x", "input": {"cases": [{"when": 1, "next": "gone"}]}}}),
            &["step a", "no step gone"],
        ),
        (json!({"a": {"type": "parallel", "input": {"steps": []}}}), &["step a", "branches"]),
        (
            json!({"a": {"type": "parallel", "input": {"steps": ["b"], "strategy": "n_of_m", "required": 2}}, "b": job("job.b", &[])}),
            &["step a", "required"],
        ),
        (
            json!({"a": {"type": "parallel", "input": {"steps": ["b"]}}, "b": job("job.b", &["a"])}),
            &["wait for each other: a, b"],
        ),
        (
            json!({"a": {"type": "parallel", "input": {"steps": ["c"]}}, "b": {"type": "parallel", "input": {"steps": ["c"]}}, "c": job("job.c", &[])}),
            &["step b", "belongs to a already"],
        ),
        (json!({"a": {"type": "loop", "input": {"body": "a"}}}), &["step a"]),
        (
            json!({"a": {"type": "loop", "input": {"body": "b", "max_iterations": 0}}, "b": job("job.b", &[])}),
            &["step a", "max_iterations"],
        ),
        (
            json!({"a": {"type": "loop", "input": {"body": "b"}}, "b": job("job.b", &[]), "c": job("job.c", &["b"])}),
            &["step b", "loop a"],
        ),
        (json!({"a": {"type": "notify"}}), &["step a", "message"]),
        (json!({"a": {"type": "notify", "input": {"message": "x", "level": "loud"}}}), &["step a", "level"]),
        (json!({"a": {"type": "storage", "input": {"op": "burn", "key": "k"}}}), &["step a", "operation"]),
        (json!({"a": {"type": "storage", "input": {"op": "read", "key": "a b"}}}), &["step a", "key"]),
        (json!({"a": {"type": "subworkflow"}}), &["step a", "workflow_id"]),
        (
            json!({"a": {"type": "switch", "condition": "1", "for_each": [1], "input": {"cases": [{"when": 1, "next": "b"}]}}, "b": job("job.b", &[])}),
            &["step a", "for_each"],
        ),
        (
            json!({"a": {"topic": "job.a", "compensation": {"topic": ""}}}),
            &["step a", "compensation", "topic"],
        ),
        (
            json!({"a": {"topic": "job.a", "compensation": {"topic": "job.u", "retry": {"max_retries": 101}}}}),
            &["step a", "compensation", "retry", "at most 100"],
        ),
        (
            json!({"a": {"topic": "job.a", "compensation": {"topic": "job.u", "input": "${nothing}"}}}),
            &["step a", "compensation", "unknown name"],
        ),
        (json!({"a": {"topic": "job.a", "bogus": 1}}), &["unknown field `bogus`"]),
    ] {
        let document = json!({"id": "w", "name": "n", "steps": steps});
        refused(&document.to_string(), serde_json::from_value(document.clone()), parts);
    }
}

#[test]
fn bad_heads_are_refused() {
    let steps = json!({"a": job("job.a", &[])});
    for (head, parts) in [
        (json!({"id": ""}), &["id"][..]),
        (json!({"id": "a:b"}), &["id", "`:`"]),
        (json!({"name": "n".repeat(257)}), &["name", "256"]),
        (json!({"timeout_sec": 8 * 24 * 3600}), &["timeout_sec"]),
        (json!({"compensate_on": ["whim"]}), &["compensate_on", "whim"]),
        (json!({"description": "d".repeat(600 * 1024)}), &["bytes"]),
        (json!({"input_schema": {"type": "wrong"}}), &["input_schema"]),
        (json!({"parameters": {"a b": 1}}), &["parameters"]),
        (json!({"policy_override": {}}), &["policy_override"]),
        (json!({"output": "${steps.gone.output}"}), &["output", "gone"]),
    ] {
        let mut document = json!({"id": "w", "name": "n", "steps": steps});
        let (Some(parts_of), Json::Object(head)) = (document.as_object_mut(), head) else {
            panic!("objects")
        };
        parts_of.extend(head);
        refused("a head", serde_json::from_value(document), parts);
    }
    let many: serde_json::Map<_, _> = (0..501).map(|n| (format!("s{n}"), job("job.a", &[]))).collect();
    refused(
        "many steps",
        serde_json::from_value(json!({"id": "w", "name": "n", "steps": many})),
        &["501", "500"],
    );
}

#[test]
fn schemas_tell_expressions_what_to_expect() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    for (condition, part) in
        [("input.n == 'x'", "a number with a text"), ("input.m == 1", "has no m; it has n")]
    {
        let steps = json!({"a": {"topic": "job.a", "condition": condition}});
        let document = json!({"id": "w", "name": "n", "input_schema": schema, "steps": steps});
        refused(condition, serde_json::from_value(document), &["step a", "condition", part]);
    }
}
