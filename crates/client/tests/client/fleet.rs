use super::house::{House, USER};
use reveille_client::{Beat, Client, Error};
use reveille_roster::Scope;

fn names(client: &Client, contract: Option<&str>) -> Vec<String> {
    client.workers().list(contract).map(|worker| worker.unwrap().worker_id).collect()
}

#[test]
fn an_agent_that_beats_is_part_of_the_fleet() {
    let house = House::open();
    let client = house.client("voice", "acme", USER);
    let beat = Beat {
        status: Some("busy".to_owned()),
        active_sessions: 2,
        region: Some("eu".to_owned()),
        cpu_pct: Some(12.5),
        ..Beat::new("voice/1", "reception")
    };
    let heard = client.presence().beat(&beat).unwrap();
    assert!(heard.next_beat_s > 0, "{heard:?}");
    // An id is one part of a path, whatever is in it.
    let worker = client.workers().get("voice/1").unwrap();
    assert_eq!(
        (worker.contract.as_str(), worker.agent_name.as_str(), worker.region.as_str(), worker.active_jobs),
        ("voicegateway", "reception", "eu", 2)
    );
    assert!(worker.online && !worker.drained, "{worker:?}");
    assert_eq!(names(&client, Some("voicegateway")), ["voice/1"]);
    assert_eq!(names(&client, None), ["voice/1"]);
    assert!(names(&client, Some("cap")).is_empty());
}

#[test]
fn a_beat_is_taken_or_refused_by_itself() {
    let house = House::open();
    let client = house.client("voice", "acme", USER);
    let taken = client.presence().beats(&[Beat::new("a", "one"), Beat::new("b", "")]).unwrap();
    assert_eq!((taken.accepted, taken.rejected.len()), (1, 1));
    let refused = &taken.rejected[0];
    assert_eq!(
        (refused.index, refused.field.as_deref(), refused.error.as_str()),
        (1, Some("agent_name"), "is empty")
    );
    assert_eq!(names(&client, None), ["a"]);
    let alone = client.presence().beat(&Beat::new("b", "")).unwrap_err();
    assert_eq!(alone.to_string(), "agent_name: is empty [400 invalid_request]");
}

#[test]
fn a_worker_is_taken_out_of_service_and_put_back() {
    let house = House::open();
    house.worker("w1", "ops");
    let operator = house.client("op", "ops", &[Scope::Admin]);
    assert!(!operator.workers().get("w1").unwrap().drained);
    let drained = operator.workers().drain("w1", Some(60)).unwrap();
    assert_eq!((drained.drain_timeout_seconds, drained.drained_by.as_str()), (60, "op"));
    assert!(operator.workers().get("w1").unwrap().drained);
    assert!(operator.workers().undrain("w1").unwrap().was_drained);
    assert!(!operator.workers().undrain("w1").unwrap().was_drained);
    assert_eq!(operator.workers().drain("w1", None).unwrap().drain_timeout_seconds, 300);
    let ann = house.client("ann", "ops", USER);
    assert!(matches!(ann.workers().drain("w1", None), Err(Error::Refused { status: 403, .. })));
}
