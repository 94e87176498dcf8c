use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::*;
use crate::beat_schedule::Pace;
use crate::http::stub::{Stub, StubReply, StubRequest};

const BEAT: &str = "POST /v1/agents/heartbeat";
/// So long that a beat before its time is seen.
const NEVER: Duration = Duration::from_hours(1);
const QUICK: PresenceSettings = PresenceSettings {
    pace: Pace {
        beat_every: Duration::from_millis(60),
        beat_gap_min: Duration::from_millis(20),
        pause_min: Duration::from_millis(20),
        pause_max: Duration::from_millis(80),
    },
    push_wait_max: Duration::from_millis(500),
};

fn only_news() -> PresenceSettings {
    PresenceSettings { pace: Pace { beat_every: NEVER, ..QUICK.pace }, ..QUICK }
}

async fn accepting() -> Stub {
    Stub::start(|_| StubReply::new(202, json!({ "status": "accepted" }))).await
}

fn agent(stub: &Stub) -> Registration {
    Registration::new("myvoiceagents").agent_id("a-1").collector_url(stub.url())
}

fn statuses(asked: &[StubRequest]) -> Vec<(Value, Value)> {
    asked.iter().map(|asked| (asked.body["status"].clone(), asked.body["active_sessions"].clone())).collect()
}

#[tokio::test]
async fn an_agent_beats_at_once_and_then_again_and_again() {
    let stub = accepting().await;
    let _presence = start(agent(&stub).api_key("vk_1").project("p").region("iad"), QUICK);
    let asked = stub.wait_for(BEAT, 3).await;
    assert_eq!(asked[0].bearer.as_deref(), Some("Bearer vk_1"));
    let first = &asked[0].body;
    assert_eq!((&first["agent_id"], &first["agent_name"]), (&json!("a-1"), &json!("myvoiceagents")));
    assert_eq!(
        (&first["project"], &first["region"], &first["tenant_id"]),
        (&json!("p"), &json!("iad"), &Value::Null)
    );
    assert!(first["started_at"].as_f64().unwrap() <= first["ts"].as_f64().unwrap());
    let apart = asked[2].at - asked[0].at;
    assert!(apart >= Duration::from_millis(100), "two intervals lasted {apart:?}");
}

#[tokio::test]
async fn an_agent_without_a_key_sends_none() {
    let stub = accepting().await;
    let _presence = start(agent(&stub), QUICK);
    assert_eq!(stub.wait_for(BEAT, 1).await[0].bearer, None);
}

#[tokio::test]
async fn becoming_busy_or_idle_is_said_at_once() {
    let stub = accepting().await;
    let presence = start(agent(&stub), only_news());
    stub.wait_for(BEAT, 1).await;
    let (first, second) = (presence.session(), presence.session());
    stub.wait_for(BEAT, 2).await;
    drop(first);
    drop(second);
    let asked = stub.wait_for(BEAT, 3).await;
    let expected = [(json!("idle"), json!(0)), (json!("busy"), json!(2)), (json!("idle"), json!(0))];
    assert_eq!(statuses(&asked), expected);
}

#[tokio::test]
async fn a_flood_of_short_sessions_is_a_few_beats() {
    let stub = accepting().await;
    let presence = start(agent(&stub), only_news());
    stub.wait_for(BEAT, 1).await;
    for _ in 0..200 {
        let session = presence.session();
        tokio::task::yield_now().await;
        drop(session);
        tokio::task::yield_now().await;
    }
    let last = presence.session();
    stub.wait_until(|asked| asked.last().is_some_and(|asked| asked.body["status"] == "busy")).await;
    sleep(Duration::from_millis(60)).await;
    let asked = stub.asked();
    assert_eq!(asked.last().unwrap().body["status"], "busy", "the last word is how it is");
    assert!(asked.len() < 20, "{} beats", asked.len());
    drop(last);
}

#[tokio::test]
async fn a_server_that_fails_is_asked_less_and_less_and_found_again() {
    let mut beats = 0;
    let stub = Stub::start(move |_| {
        beats += 1;
        StubReply::new(if beats <= 4 { 500 } else { 202 }, json!({}))
    })
    .await;
    let presence = start(agent(&stub), only_news());
    // News do not get around the pauses either.
    let session = presence.session();
    let asked = stub.wait_for(BEAT, 5).await;
    let pauses: Vec<_> = asked.windows(2).map(|pair| (pair[1].at - pair[0].at).as_millis()).collect();
    for (pause, least) in pauses.iter().zip([10, 20, 40, 40]) {
        assert!(*pause >= least, "{pauses:?}");
    }
    assert_eq!(asked[4].body["status"], "busy");
    drop(session);
    stub.wait_for(BEAT, 6).await;
}

#[tokio::test]
async fn a_server_that_says_when_to_come_back_is_left_alone_until_then() {
    let stub = Stub::start(|_| StubReply { retry_after: Some(30), ..StubReply::new(429, json!({})) }).await;
    let presence = start(agent(&stub), QUICK);
    stub.wait_for(BEAT, 1).await;
    let _session = presence.session();
    sleep(Duration::from_millis(300)).await;
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn a_wish_for_the_next_beat_is_followed() {
    let stub = Stub::start(|_| StubReply::new(202, json!({ "status": "accepted", "next_beat_s": 30 }))).await;
    let _presence = start(agent(&stub), QUICK);
    stub.wait_for(BEAT, 1).await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn a_silent_server_is_asked_again() {
    let stub = Stub::start(|_| StubReply { delay: NEVER, ..StubReply::new(202, json!({})) }).await;
    let settings = PresenceSettings { push_wait_max: Duration::from_millis(30), ..QUICK };
    let _presence = start(agent(&stub), settings);
    stub.wait_for(BEAT, 3).await;
}

#[tokio::test]
async fn an_agent_that_stops_is_silent() {
    let stub = accepting().await;
    let presence = start(agent(&stub), QUICK);
    stub.wait_for(BEAT, 1).await;
    let session = presence.session();
    presence.stop();
    sleep(Duration::from_millis(50)).await;
    let said = stub.asked().len();
    drop(session);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(stub.asked().len(), said);
}

#[tokio::test]
async fn what_cannot_work_breaks_nothing() {
    for registration in [
        Registration::new("a"),
        Registration::new("a").collector_url("collector:8080"),
        Registration::new("a").collector_url("http://127.0.0.1:1").api_key("line\nbreak"),
    ] {
        let presence = register_worker(registration);
        drop(presence.session());
    }
}

#[test]
fn an_agent_without_a_runtime_is_seen_too() {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let stub = runtime.block_on(accepting());
    let presence = start(agent(&stub), QUICK);
    let seen = runtime.block_on(async { timeout(Duration::from_secs(5), stub.wait_for(BEAT, 2)).await });
    assert!(seen.is_ok());
    presence.stop();
}

#[test]
fn the_machine_has_a_name() {
    let registration = Registration::new("a");
    assert!(!registration.profile.agent_id.is_empty());
    assert_eq!(registration.profile.host.as_deref(), Some(registration.profile.agent_id.as_str()));
}
