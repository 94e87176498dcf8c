use super::house::{House, USER};
use reveille_client::{Error, RUN_ENDS, RunFilter};
use reveille_core::flow::RunState;
use serde_json::{Value, json};
use std::time::Duration;

const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(50);

#[test]
fn the_ends_are_those_of_the_server() {
    let ends: Vec<&str> =
        RunState::ALL.iter().filter(|state| state.is_terminal()).map(|state| state.as_str()).collect();
    let mut known = RUN_ENDS.to_vec();
    known.sort_by_key(|end| ends.iter().position(|state| state == end));
    assert_eq!(known, ends);
}

#[test]
fn a_run_is_waited_for_until_it_has_ended() {
    let house = House::open();
    let client = house.client("ann", "acme", USER);
    let steps = json!({"a": {"type": "transform", "input": {"double": "${input.n * 2}"}}});
    let saved: Value = client.post("/api/v1/workflows", &json!({"id": "sum", "steps": steps})).unwrap();
    assert_eq!(saved["version"], 1);
    let started = client.runs().start("sum", &json!({"n": 21}), None).unwrap();
    assert!(!started.existing);
    let run = client.runs().wait(&started.run_id, LONG).unwrap();
    assert_eq!(
        (run.status.as_str(), run.workflow_id.as_str(), &run.input["n"]),
        ("succeeded", "sum", &json!(21))
    );
    assert_eq!((run.steps["a"].status.as_str(), &run.steps["a"].output["double"]), ("succeeded", &json!(42)));
    assert!(run.completed_at.is_some() && run.rollback_run_id.is_none(), "{run:?}");
}

#[test]
fn a_run_is_started_once_and_cancelled() {
    let house = House::open();
    let client = house.client("ann", "acme", USER);
    let steps = json!({"d": {"type": "delay", "delay_sec": 600}});
    client.post::<Value>("/api/v1/workflows", &json!({"id": "slow", "steps": steps})).unwrap();
    let start = || client.runs().start("slow", &json!({}), Some("once")).unwrap();
    let (first, again) = (start(), start());
    assert_eq!((first.existing, again.existing, &first.run_id), (false, true, &again.run_id));
    assert_eq!(client.runs().wait(&first.run_id, SHORT), Err(Error::WaitTimeout(SHORT)));
    assert!(!client.runs().get(&first.run_id).unwrap().has_ended());

    let listed = |status: &str| -> Vec<String> {
        let filter = RunFilter { status: Some(status), workflow_id: Some("slow"), ..RunFilter::default() };
        client.runs().list(&filter, 10).map(|run| run.unwrap().id).collect()
    };
    assert!(listed("cancelled").is_empty());
    client.runs().cancel(&first.run_id, "enough").unwrap();
    let run = client.runs().wait(&first.run_id, LONG).unwrap();
    assert_eq!(run.status, "cancelled");
    assert_eq!(listed("cancelled"), [first.run_id.as_str()]);
    let over = client.runs().cancel(&first.run_id, "again").unwrap_err();
    assert!(matches!(over, Error::Refused { status: 409, .. }), "{over}");
}
