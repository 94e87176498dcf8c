//! The worked examples are workflows, and do what their first lines say.

use reveille_core::flow::{Flow, Run, RunHead, StepOutcome, SubmittedWork, WorkflowDocument, interpret};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use serde_json::{Value, json};

const NOW: Millis = Millis(1_800_000_000_000);

fn read(name: &str) -> Flow {
    let path = format!("{}/../../examples/workflows/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let document: WorkflowDocument =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(document.id, name);
    Flow::check(&document, 1, NOW).unwrap_or_else(|problem| panic!("{name}: {problem}"))
}

fn new_run(input: Value) -> Run {
    let (id, tenant) = (RunId::known("r"), TenantId::known("default"));
    let head = RunHead::new(id, tenant, WorkflowId::known("w"), 1, NOW);
    Run::new(head, input.into())
}

/// Plays a workflow; `answer` says what each step's job gives, or that it fails for good.
fn play(name: &str, input: Value, answer: impl Fn(&str, u32, &Value) -> Option<Value>) -> Run {
    interpret(new_run(input), &read(name), NOW, |asked| {
        if *asked.sent == SubmittedWork::Notice {
            return Some(StepOutcome::Succeeded(None));
        }
        let outcome = answer(&asked.node.to_string(), asked.attempt, asked.input);
        let broke = || StepOutcome::Failed { words: "broke".to_owned(), is_worth_another_try: true };
        Some(outcome.map_or_else(broke, |output| StepOutcome::Succeeded(Some(output))))
    })
}

fn states(run: &Run) -> String {
    let steps = run
        .nodes
        .iter()
        .filter(|(key, _)| key.round.is_none())
        .map(|(key, node)| format!("{key}={}", node.state));
    format!("{}: {}", run.head.state, steps.collect::<Vec<_>>().join(" "))
}

#[test]
fn research_asks_every_source() {
    let input = json!({"question": "why?", "sources": ["a", "b", "c"]});
    let run = play("research", input, |node, _, given| {
        Some(if node == "write" { given["notes"].clone() } else { given["source"].clone() })
    });
    assert_eq!(states(&run), "succeeded: read=succeeded write=succeeded");
    assert_eq!(run.output.as_deref(), Some(&json!({"answer": ["a", "b", "c"]})));
}

#[test]
fn deploy_can_undo_what_it_did() {
    let input = json!({"ref": "v2", "env": "prod"});
    let made = |node: &str, _: u32, _: &Value| match node {
        "check" => None,
        _ => Some(json!({"image": "i2", "before": "s1", "previous": "i1"})),
    };
    let run = play("deploy", input.clone(), made);
    assert_eq!(
        states(&run),
        "failed: ask=succeeded build=succeeded check=failed migrate=succeeded release=succeeded"
    );
    let undo: Vec<_> =
        run.compensations.iter().rev().map(|undo| (undo.node.to_string(), undo.input.clone())).collect();
    assert_eq!(undo[0], ("release".to_owned(), json!({"env": "prod", "image": "i1"})));
    assert_eq!(undo[1], ("migrate".to_owned(), json!({"env": "prod", "to": "s1"})));
    let run = play("deploy", input, |_, _, _| Some(json!({"image": "i2", "before": "s1", "previous": "i1"})));
    assert_eq!(
        states(&run),
        "succeeded: ask=succeeded build=succeeded check=succeeded migrate=succeeded release=succeeded tell=succeeded"
    );
}

#[test]
fn scrape_tries_again_and_falls_back() {
    let run = play("scrape", json!({"url": "u"}), |node, attempt, given| match node {
        "fetch" => (attempt > 3).then(|| json!("today's")),
        "parse" => Some(given["page"].clone()),
        _ => Some(json!("yesterday's")),
    });
    assert_eq!(states(&run), "succeeded: archive=skipped fetch=succeeded parse=succeeded");
    assert_eq!(run.output.as_deref(), Some(&json!("today's")));
    let run = play("scrape", json!({"url": "u"}), |node, _, given| match node {
        "fetch" => None,
        "parse" => Some(given["page"].clone()),
        _ => Some(json!("yesterday's")),
    });
    assert_eq!(states(&run), "succeeded: archive=succeeded fetch=failed parse=succeeded");
    assert_eq!(run.output.as_deref(), Some(&json!("yesterday's")));
}

#[test]
fn nightly_waits_and_looks_until_it_is_done() {
    let run = play("nightly", json!({"at": "2027-02-01T03:00:00Z"}), |node, _, _| {
        Some(json!({"done": node == "look[2]"}))
    });
    assert_eq!(states(&run), "succeeded: begin=succeeded look=succeeded poll=succeeded wait=succeeded");
    assert_eq!(run.output.as_deref(), Some(&json!({"looks": 3})));
    let at: i64 = 1_801_450_800_000;
    assert_eq!(run.head.updated_at, Millis(at + 3 * 10_000), "three looks, ten seconds before each");
}

#[test]
fn router_sends_each_ticket_one_way() {
    for (kind, to) in [("bug", "triage"), ("billing", "refund"), ("praise", "answer")] {
        let run = play("router", json!({"text": "t"}), |_, _, _| Some(json!({"kind": kind})));
        assert_eq!(run.output.as_deref(), Some(&json!({"close": {"sent_to": to}})));
        let ran = run.nodes.iter().filter(|(_, node)| node.state.as_str() == "succeeded").count();
        assert_eq!(ran, 4, "{kind}");
    }
}

#[test]
fn onboard_uses_another_workflow() {
    let run = play("onboard", json!({"customer": "Ada"}), |node, _, given| {
        Some(match node {
            "profile" => json!({"sources": ["a"]}),
            "look_up" => {
                assert_eq!(given, &json!({"question": "Who is Ada?", "sources": ["a"]}));
                json!({"answer": "a poet's daughter"})
            }
            _ => given["about"].clone(),
        })
    });
    assert_eq!(run.output.as_deref(), Some(&json!({"welcome": "a poet's daughter"})));
}
