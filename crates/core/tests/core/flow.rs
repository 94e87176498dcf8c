//! Tables of cases, kind by kind: a document, how its jobs end, and where every step and the run then stand.

mod dry_run;
mod refused;
mod runs;
mod saga;

use reveille_core::cost::{CostLimit, Meter};
use reveille_core::flow::{
    self, Flow, ITEMS_MAX, NodeKey, Run, RunChange, RunEvent, RunHead, RunRefusal, RunState, StepOutcome,
    WorkflowDocument, interpret,
};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use serde_json::{Value as Json, json};

fn start(run: &Run, flow: &Flow, now: Millis) -> RunChange {
    flow::start(run, flow, now, &Meter::new(CostLimit::RUN_EVENT))
}

fn advance(run: &Run, flow: &Flow, event: &RunEvent, now: Millis) -> Result<RunChange, RunRefusal> {
    flow::advance(run, flow, event, now, &Meter::new(CostLimit::RUN_EVENT))
}

fn document(steps: Json) -> WorkflowDocument {
    document_with(steps, json!({}))
}

fn document_with(steps: Json, mut more: Json) -> WorkflowDocument {
    let mut document = json!({"id": "w", "name": "a workflow"});
    let (Some(parts), Some(more)) = (document.as_object_mut(), more.as_object_mut()) else {
        panic!("objects")
    };
    parts.append(more);
    parts.insert("steps".to_owned(), steps);
    serde_json::from_value(document).unwrap_or_else(|error| panic!("{error}"))
}

fn new_run(input: Json) -> Run {
    let (id, tenant) = (RunId::known("r"), TenantId::known("default"));
    let head = RunHead::new(id, tenant, WorkflowId::known("w"), 1, Millis(0));
    Run::new(head, input.into())
}

fn ok(output: Json) -> StepOutcome {
    StepOutcome::Succeeded(Some(output))
}

fn failed() -> StepOutcome {
    StepOutcome::Failed { words: "broke".to_owned(), is_worth_another_try: true }
}

fn fatal() -> StepOutcome {
    StepOutcome::Failed { words: "broke for good".to_owned(), is_worth_another_try: false }
}

/// How jobs end: by step and attempt. What is not listed succeeds and gives back its input.
type Script<'a> = &'a [(&'a str, StepOutcome)];

fn play(document: &WorkflowDocument, input: Json, script: Script<'_>) -> Run {
    let flow = Flow::check(document, 1, Millis(0)).unwrap_or_else(|problem| panic!("{problem}"));
    interpret(new_run(input), &flow, Millis(1_000), |asked| {
        let name = format!("{}@{}", asked.node, asked.attempt);
        let told = script.iter().find(|(of, _)| *of == name || *of == asked.node.to_string());
        Some(told.map_or_else(|| ok(asked.input.clone()), |(_, outcome)| outcome.clone()))
    })
}

/// Where everything stands, as `run=… step=… step=…`.
fn states(run: &Run) -> String {
    let steps = run.nodes.iter().map(|(key, node)| format!("{key}={}", node.state)).collect::<Vec<_>>();
    [vec![format!("run={}", run.head.state)], steps].concat().join(" ")
}

fn check(what: &str, steps: Json, input: Json, script: Script<'_>, expected: &str) -> Run {
    let run = play(&document(steps), input, script);
    assert_eq!(states(&run), expected, "{what}: {}", run.head.error);
    assert_eq!(
        (run.head.running, run.head.waiting, run.head.cancels),
        (0, 0, 0),
        "{what}: nothing is left over"
    );
    run
}

fn job(topic: &str, after: &[&str]) -> Json {
    json!({"topic": topic, "depends_on": after})
}

#[test]
fn steps_run_after_what_they_depend_on() {
    let chain = json!({"a": job("job.a", &[]), "b": job("job.b", &["a"]), "c": job("job.c", &["a", "b"])});
    check("a chain", chain.clone(), json!({}), &[], "run=succeeded a=succeeded b=succeeded c=succeeded");
    check("a failure", chain.clone(), json!({}), &[("a", failed())], "run=failed a=failed");
    check(
        "a denial",
        chain.clone(),
        json!({}),
        &[("b", StepOutcome::Denied("no".into()))],
        "run=denied a=succeeded b=denied",
    );
    check(
        "too slow",
        chain,
        json!({}),
        &[("a", StepOutcome::TimedOut("slow".into()))],
        "run=failed a=timed_out",
    );
    let side = json!({"a": job("job.a", &[]), "b": job("job.b", &[])});
    check("others are called back", side, json!({}), &[("a", fatal())], "run=failed a=failed b=cancelled");
}

#[test]
fn inputs_and_outputs_are_mapped() {
    let steps = json!({
        "fetch": {"topic": "job.fetch", "input": {"url": "${input.url}"}, "result_data_path": "$.body", "output_path": "page"},
        "sum": {"topic": "job.sum", "depends_on": ["fetch"],
                "input": {"text": "${steps.fetch.output.text}", "n": "${length(ctx.page.links)}", "by": "${steps.fetch.status}"}},
    });
    let page = json!({"body": {"text": "hi", "links": [1, 2]}});
    let run = check(
        "mapped",
        steps,
        json!({"url": "u"}),
        &[("fetch", ok(page))],
        "run=succeeded fetch=succeeded sum=succeeded",
    );
    assert_eq!(run.output.as_deref(), Some(&json!({"sum": {"text": "hi", "n": 2, "by": "succeeded"}})));
    assert_eq!(run.context["page"], json!({"text": "hi", "links": [1, 2]}).into());

    let steps = json!({"a": {"topic": "job.a", "input": {"n": "${input.n}"}, "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    check("fits", steps.clone(), json!({"n": 1}), &[], "run=succeeded a=succeeded");
    let run = check("does not fit", steps, json!({"n": "x"}), &[], "run=failed a=failed");
    assert!(run.head.error.contains("input: /n"), "{}", run.head.error);
    let steps = json!({"a": {"topic": "job.a", "output_schema": {"type": "object", "required": ["id"]}}});
    check("a result that does not fit", steps, json!({}), &[("a", ok(json!({})))], "run=failed a=failed");
}

#[test]
fn a_false_condition_skips_and_so_do_dependents_unless_they_say_otherwise() {
    let steps = json!({
        "a": {"topic": "job.a", "condition": "input.n > 1"},
        "b": job("job.b", &["a"]),
        "c": {"topic": "job.c", "depends_on": ["a"], "run_when": "settled"},
    });
    check("false", steps.clone(), json!({"n": 1}), &[], "run=succeeded a=skipped b=skipped c=succeeded");
    check("true", steps.clone(), json!({"n": 2}), &[], "run=succeeded a=succeeded b=succeeded c=succeeded");
    let run = check("neither", steps, json!({"n": "x"}), &[], "run=failed a=failed");
    assert!(run.head.error.starts_with("step a: condition:"), "{}", run.head.error);
}

#[test]
fn a_handler_runs_when_its_step_has_failed_for_good() {
    let steps = json!({
        "a": {"topic": "job.a", "on_error": "mend"},
        "mend": {"topic": "job.mend", "input": {"why": "${steps.a.error}"}},
        "next": job("job.next", &["a"]),
        "end": {"topic": "job.end", "depends_on": ["a", "mend"], "run_when": "settled"},
    });
    check(
        "not needed",
        steps.clone(),
        json!({}),
        &[],
        "run=succeeded a=succeeded end=succeeded mend=skipped next=succeeded",
    );
    let run = check(
        "needed",
        steps.clone(),
        json!({}),
        &[("a", fatal())],
        "run=succeeded a=failed end=succeeded mend=succeeded next=skipped",
    );
    assert_eq!(
        run.nodes[&NodeKey::parse("mend").unwrap()].output.as_deref(),
        Some(&json!({"why": "broke for good"}))
    );
    check(
        "also denials",
        steps.clone(),
        json!({}),
        &[("a", StepOutcome::Denied("no".into()))],
        "run=succeeded a=denied end=succeeded mend=succeeded next=skipped",
    );
    check(
        "fails too",
        steps,
        json!({}),
        &[("a", fatal()), ("mend", fatal())],
        "run=failed a=failed mend=failed next=skipped",
    );
}

#[test]
fn failures_are_tried_again_with_backoff_but_not_those_for_good() {
    let retry = json!({"max_retries": 2, "initial_backoff_sec": 10, "multiplier": 3, "max_backoff_sec": 20});
    let steps = json!({"a": {"topic": "job.a", "retry": retry}});
    let run = check(
        "the third counts",
        steps.clone(),
        json!({}),
        &[("a@1", failed()), ("a@2", StepOutcome::TimedOut("slow".into()))],
        "run=succeeded a=succeeded",
    );
    assert_eq!(run.nodes[&NodeKey::parse("a").unwrap()].attempt, 3);
    assert_eq!(run.head.updated_at, Millis(1_000 + 10_000 + 20_000), "1 × 10 s, then 30 s cut to 20");
    check("used up", steps.clone(), json!({}), &[("a", failed())], "run=failed a=failed");
    let run = check("for good", steps, json!({}), &[("a", fatal())], "run=failed a=failed");
    assert_eq!(run.nodes[&NodeKey::parse("a").unwrap()].attempt, 1);
}

#[test]
fn a_condition_step_says_yes_or_no() {
    let steps = json!({
        "is_big": {"type": "condition", "condition": "input.n > 10"},
        "big": {"topic": "job.big", "depends_on": ["is_big"], "condition": "steps.is_big.output"},
    });
    check("yes", steps.clone(), json!({"n": 11}), &[], "run=succeeded big=succeeded is_big=succeeded");
    check("no", steps, json!({"n": 1}), &[], "run=succeeded big=skipped is_big=succeeded");
}

#[test]
fn a_switch_takes_one_branch() {
    let cases = json!([{"when": "x", "next": "ax"}, {"match": 2, "step": "a2"}]);
    let steps = json!({
        "s": {"type": "switch", "condition": "input.v", "input": {"cases": cases, "default": "other"}},
        "ax": job("job.ax", &[]), "a2": job("job.a2", &[]), "other": job("job.other", &[]),
        "end": {"topic": "job.end", "depends_on": ["ax", "a2", "other"], "run_when": "settled"},
    });
    for (value, taken) in [(json!("x"), "ax"), (json!(2), "a2"), (json!(2.0), "a2"), (json!(null), "other")] {
        let state = |step: &str| if step == taken { "succeeded" } else { "skipped" };
        let expected = format!(
            "run=succeeded a2={} ax={} end=succeeded other={} s=succeeded",
            state("a2"),
            state("ax"),
            state("other")
        );
        check(taken, steps.clone(), json!({"v": value}), &[], &expected);
    }
}

#[test]
fn a_parallel_step_is_over_when_enough_branches_are() {
    let steps = |strategy: Json| {
        json!({
            "p": {"type": "parallel", "input": strategy},
            "a": job("job.a", &[]), "b": job("job.b", &[]), "c": job("job.c", &[]), "end": job("job.end", &["p"]),
        })
    };
    let named = |strategy: &str, required: u32| json!({"steps": ["a", "b", "c"], "strategy": strategy, "required": required});
    let all = steps(json!({"steps": ["a", "b", "c"]}));
    check(
        "all",
        all.clone(),
        json!({}),
        &[],
        "run=succeeded a=succeeded b=succeeded c=succeeded end=succeeded p=succeeded",
    );
    check(
        "not all",
        all,
        json!({}),
        &[("b", fatal())],
        "run=failed a=succeeded b=failed c=cancelled p=failed",
    );
    check(
        "any",
        steps(named("any", 1)),
        json!({}),
        &[("a", fatal())],
        "run=succeeded a=failed b=succeeded c=cancelled end=succeeded p=succeeded",
    );
    check(
        "two of three",
        steps(named("n_of_m", 2)),
        json!({}),
        &[("b", fatal())],
        "run=succeeded a=succeeded b=failed c=succeeded end=succeeded p=succeeded",
    );
    check(
        "too few",
        steps(named("n_of_m", 2)),
        json!({}),
        &[("a", fatal()), ("b", fatal())],
        "run=failed a=failed b=failed c=cancelled p=failed",
    );
}

#[test]
fn a_for_each_goes_through_its_list() {
    let steps = json!({
        "each": {"topic": "job.each", "for_each": "${input.list}", "max_parallel": 2, "input": {"is": "${item}", "at": "${index}"}},
        "sum": {"type": "transform", "depends_on": ["each"], "input": {"n": "${length(steps.each.output)}", "last": "${steps.each.output[2].is}"}},
    });
    let run = check(
        "three",
        steps.clone(),
        json!({"list": ["x", "y", "z"]}),
        &[],
        "run=succeeded each=succeeded each[0]=succeeded each[1]=succeeded each[2]=succeeded sum=succeeded",
    );
    assert_eq!(run.output.as_deref(), Some(&json!({"sum": {"n": 3, "last": "z"}})));
    check(
        "one fails",
        steps.clone(),
        json!({"list": ["x", "y", "z"]}),
        &[("each[0]", fatal())],
        "run=failed each=failed each[0]=failed each[1]=cancelled",
    );
    let empty = json!({"each": {"topic": "job.each", "for_each": "input.list"}});
    check("nothing to do", empty.clone(), json!({"list": []}), &[], "run=succeeded each=succeeded");
    check("no list", empty.clone(), json!({"list": 5}), &[], "run=failed each=failed");
    let run =
        check("too many", empty, json!({"list": vec![0; ITEMS_MAX + 1]}), &[], "run=failed each=failed");
    assert!(run.head.error.contains("at most 1000"), "{}", run.head.error);
    let inline = json!({"each": {"type": "transform", "for_each": "input.list", "input": "${item * 2}"}});
    let run = play(&document(inline), json!({"list": (0..1000).collect::<Vec<_>>()}), &[]);
    assert_eq!(
        run.output.as_deref().and_then(|out| out["each"].as_array()).map(Vec::len),
        Some(1000),
        "worked out on the spot, without a deep stack"
    );
}

#[test]
fn no_more_rounds_run_at_once_than_may() {
    let steps = json!({"each": {"topic": "job.each", "for_each": "input.list", "max_parallel": 3}});
    let flow = Flow::check(&document(steps), 1, Millis(0)).unwrap();
    let mut run = new_run(json!({"list": vec![0; 10]}));
    let begun = start(&run, &flow, Millis(0));
    run.apply(begun);
    for _ in 0..10 {
        assert!(run.head.running <= 3 && run.head.running > 0);
        let (key, node) = run.live().find(|(_, node)| node.sent.is_some()).unwrap();
        let event = RunEvent::Over { node: key.clone(), attempt: node.attempt, outcome: ok(json!(1)) };
        let change = advance(&run, &flow, &event, Millis(1)).unwrap();
        assert!(change.nodes.len() <= 3, "a step, its round, and the next round: {}", change.nodes.len());
        run.apply(change);
    }
    assert_eq!(run.head.state, RunState::Succeeded);
}

#[test]
fn a_loop_goes_round_while_or_until() {
    let steps = |input: Json| {
        json!({
            "l": {"type": "loop", "input": input}, "body": {"topic": "job.body", "input": {"n": "${index}"}},
            "end": {"type": "transform", "depends_on": ["l"], "input": "${steps.l.output.iterations}"},
        })
    };
    let until = steps(json!({"body_step": "body", "until": "steps.body.output.n >= 2"}));
    let run = check(
        "until",
        until,
        json!({}),
        &[],
        "run=succeeded body=succeeded body[0]=succeeded body[1]=succeeded body[2]=succeeded end=succeeded l=succeeded",
    );
    assert_eq!(run.output.as_deref(), Some(&json!({"end": 3})));
    let as_long = steps(json!({"body": "body", "while": "index < 2"}));
    check(
        "while",
        as_long,
        json!({}),
        &[],
        "run=succeeded body=succeeded body[0]=succeeded body[1]=succeeded end=succeeded l=succeeded",
    );
    let never = steps(json!({"body": "body", "while": "false"}));
    check("not once", never, json!({}), &[], "run=succeeded body=skipped end=succeeded l=succeeded");
    let too_long = steps(json!({"body": "body", "condition": "true", "max_iterations": 2}));
    check("too often", too_long, json!({}), &[], "run=failed body[0]=succeeded body[1]=succeeded l=failed");
    let plain = steps(json!({"body": "body", "max_iterations": 2}));
    check(
        "so many times",
        plain,
        json!({}),
        &[],
        "run=succeeded body=succeeded body[0]=succeeded body[1]=succeeded end=succeeded l=succeeded",
    );
    let fails = steps(json!({"body": "body", "max_iterations": 3}));
    check(
        "a round fails",
        fails,
        json!({}),
        &[("body[1]", fatal())],
        "run=failed body[0]=succeeded body[1]=failed l=failed",
    );
}

#[test]
fn delays_are_waited_for() {
    let steps = json!({"d": {"type": "delay", "delay_sec": 30}, "a": {"topic": "job.a", "depends_on": ["d"], "delay_until": "${input.at}"}});
    let run = check(
        "both",
        steps.clone(),
        json!({"at": "1970-01-01T00:02:00Z"}),
        &[],
        "run=succeeded a=succeeded d=succeeded",
    );
    assert_eq!(run.head.updated_at, Millis(120_000));
    let run = check(
        "over already",
        steps.clone(),
        json!({"at": "1970-01-01T00:00:02Z"}),
        &[],
        "run=succeeded a=succeeded d=succeeded",
    );
    assert_eq!(run.head.updated_at, Millis(31_000));
    check("no moment", steps, json!({"at": "soon"}), &[], "run=failed a=failed d=succeeded");
    let loops = json!({"l": {"type": "loop", "input": {"body": "b", "max_iterations": 3}}, "b": {"topic": "job.b", "delay_sec": 5}});
    let run = check(
        "before every round",
        loops,
        json!({}),
        &[],
        "run=succeeded b=succeeded b[0]=succeeded b[1]=succeeded b[2]=succeeded l=succeeded",
    );
    assert_eq!(run.head.updated_at, Millis(1_000 + 15_000));
}

#[test]
fn storage_keeps_values_for_later_steps() {
    let steps = json!({
        "w": {"type": "storage", "input": {"operation": "write", "key": "seen", "value": ["${input.v}"]}},
        "r": {"type": "storage", "depends_on": ["w"], "input": {"op": "read", "key": "seen"}},
        "x": {"type": "storage", "depends_on": ["r"], "input": {"op": "delete", "key": "seen"}},
        "t": {"type": "transform", "depends_on": ["x"], "input": "${has(ctx.seen) ? 'there' : 'gone'}"},
        "p": {"type": "transform", "input": "${ctx.limit + 1}"},
    });
    let document = document_with(steps, json!({"parameters": {"limit": 4}}));
    let run = play(&document, json!({"v": 7}), &[]);
    assert_eq!(states(&run), "run=succeeded p=succeeded r=succeeded t=succeeded w=succeeded x=succeeded");
    assert_eq!(run.nodes[&NodeKey::parse("r").unwrap()].output.as_deref(), Some(&json!([7])));
    assert_eq!(run.output.as_deref(), Some(&json!({"t": "gone", "p": 5})));
}

#[test]
fn other_things_are_sent_off_and_waited_for() {
    let steps = json!({
        "ask": {"type": "approval", "input": {"what": "${input.what}"}},
        "tell": {"type": "notify", "depends_on": ["ask"], "input": {"message": "going on with ${input.what}"}},
        "sub": {"type": "subworkflow", "depends_on": ["tell"], "input": {"workflow_id": "other", "input_mapping": {"w": "${input.what}"}, "output_mapping": {"got": "w"}}},
    });
    let run = check(
        "all three",
        steps.clone(),
        json!({"what": "it"}),
        &[],
        "run=succeeded ask=succeeded sub=succeeded tell=succeeded",
    );
    assert_eq!(run.output.as_deref(), Some(&json!({"sub": {"got": "it"}})));
    check(
        "not approved",
        steps,
        json!({"what": "it"}),
        &[("ask", StepOutcome::Denied("no".into()))],
        "run=denied ask=denied",
    );
}
