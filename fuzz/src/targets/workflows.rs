//! Workflow documents. One that may be saved can be read again and is the same as JSON, its runs keep to their meter,
//! and a run is cancelled without anything of it being evaluated.

use super::FuzzTarget;
use crate::signal::FuzzSignal;
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::flow::{
    Flow, Run, RunEvent, RunHead, RunState, StepOutcome, WorkflowDocument, advance, dry_run, start,
};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use serde_json::json;

const NOW: Millis = Millis(1_000_000);
/// Steps whose end is told to a run.
const EVENTS_MAX: usize = 20;
const NOTHING: CostLimit = CostLimit { steps: 0, bytes: 0 };

pub const TARGET: FuzzTarget = FuzzTarget {
    name: "workflows",
    dictionary: &[
        "id: w\n",
        "name: w\n",
        "steps:\n",
        "  a:\n",
        "    topic: job.a\n",
        "type: condition",
        "type: delay",
        "type: switch",
        "type: parallel",
        "type: loop",
        "type: transform",
        "type: notify",
        "type: approval",
        "type: subworkflow",
        "type: storage",
        "condition: ",
        "depends_on: [a]",
        "delay_sec: 1",
        "for_each: ",
        "input: ",
        "${input.x}",
        "${steps.a.output}",
        "${ctx.k}",
        "${item}",
        "input_schema: ",
        "$ref",
        "#/$defs/a",
        "allOf",
        "max_iterations: 3",
        "on_error: b",
        "retry: {max_retries: 2}",
        "compensation: ",
        "output: ",
        "parameters: {k: 1}",
        "cases: ",
        "{",
        "}",
    ],
    run,
};

fn run(input: &[u8], signal: &mut FuzzSignal) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let document: WorkflowDocument = match serde_saphyr::from_str(text) {
        Ok(document) => document,
        Err(error) => return signal.see_words(&error.to_string()),
    };
    let flow = match Flow::check(&document, 1, NOW) {
        Ok(flow) => flow,
        Err(problem) => return signal.see_words(&problem.to_string()),
    };
    assert!(Flow::read(&document, 1).is_ok(), "what may be saved cannot be read again");
    as_json(&document);
    let run_input = json!({"x": [1, 2, 3], "name": "n", "flag": true});
    let meter = Meter::new(CostLimit::RUN_EVENT_INLINE);
    let (foreseen, _) = dry_run(&flow, Some(&run_input), NOW, &meter);
    signal.see_count(foreseen.len());
    play(&flow, run_input, signal);
}

/// The store keeps it so.
fn as_json(document: &WorkflowDocument) {
    let kept = serde_json::to_string(document).unwrap_or_else(|error| panic!("cannot be kept: {error}"));
    match serde_json::from_str::<WorkflowDocument>(&kept) {
        Ok(again) => assert_eq!(&again, document, "kept as JSON"),
        Err(error) => panic!("what was kept cannot be read: {error}: {kept}"),
    }
}

fn play(flow: &Flow, input: serde_json::Value, signal: &mut FuzzSignal) {
    let head = RunHead::new(RunId::known("r"), TenantId::known("acme"), WorkflowId::known("w"), 1, NOW);
    let mut run = Run::new(head, input.into());
    let meter = Meter::new(CostLimit::RUN_EVENT_INLINE);
    let begun = start(&run, flow, NOW, &meter);
    run.apply(begun);
    for number in 0..EVENTS_MAX {
        let Some((node, attempt)) = run.live().find_map(|(key, node)| {
            node.sent.as_ref().filter(|_| !node.owes_cancel).map(|_| (key.clone(), node.attempt))
        }) else {
            break;
        };
        let outcome = StepOutcome::Succeeded(Some(json!({"number": number})));
        let meter = Meter::new(CostLimit::RUN_EVENT_INLINE);
        match advance(&run, flow, &RunEvent::Over { node, attempt, outcome }, NOW, &meter) {
            Ok(change) => run.apply(change),
            Err(refusal) => panic!("the end of a step that runs is refused: {refusal}"),
        }
    }
    signal.see(run.head.state.to_string());
    signal.see_words(&run.head.error);
    if !run.head.state.is_terminal() {
        let meter = Meter::new(NOTHING);
        let cancel = RunEvent::Cancel { by: "ann".to_owned(), reason: String::new() };
        match advance(&run, flow, &cancel, NOW, &meter) {
            Ok(change) => assert_eq!(change.head.state, RunState::Cancelled),
            Err(refusal) => panic!("a run cannot be cancelled: {refusal}"),
        }
        assert_eq!(meter.steps(), 0, "cancelling evaluates something");
    }
}
