//! Our own stream of events: snapshots, resuming, filters, and whose events one gets.

use super::support::{Api, USER};
use super::watched::{self, payload};
use reveille_core::fleet::Beat;
use reveille_core::id::{TenantId, WorkerId};
use reveille_roster::Scope;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const ALL: &[Scope] = &[Scope::Ingest, Scope::Read, Scope::Write];
const EVENTS: &str = "/api/v1/events";

async fn busy(api: &Api, key: &str, id: &str, sessions: u32) {
    let body = payload(id, json!({"status": "busy", "active_sessions": sessions}));
    assert_eq!(api.beat(key, &body).await, 202);
}

#[tokio::test(start_paused = true)]
async fn a_stream_starts_with_the_fleet_and_goes_on_with_what_happens() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    busy(&api, &key, "w1", 1).await;
    let mut stream = api.open(&key, EVENTS, &[]).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream; charset=utf-8");
    let (_, event, data) = stream.event().await;
    assert_eq!(event, "snapshot");
    assert_eq!((&data["workers"][0]["worker_id"], &data["truncated"]), (&json!("w1"), &json!(false)));
    let counts = json!({"total": 1, "online": 1, "busy": 1, "degraded": 0, "offline": 0});
    assert_eq!(data["counts"], counts);

    busy(&api, &key, "w2", 1).await;
    busy(&api, &key, "w2", 2).await;
    let (_, event, data) = stream.event().await;
    assert_eq!((event.as_str(), &data["worker_id"]), ("worker.joined", &json!("w2")));
    assert_eq!((&data["contract"], &data["worker"]["status"]), (&json!("voicegateway"), &json!("busy")));
    assert_eq!(stream.event().await.1, "worker.changed");
    api.engine.fleet().beat(&WorkerId::known("c1"), &TenantId::known("acme"), &Beat::default());
    assert_eq!(stream.event().await.1, "worker.joined");
    let (_, reply) = api.submit(&key, json!({"topic": "job.echo", "context": {}})).await;
    let (_, event, data) = stream.event().await;
    assert_eq!((event.as_str(), &data["job_id"]), ("job.updated", &reply["job_id"]));
    assert_eq!(data["topic"], "job.echo");
    let (_, event, data) = loop {
        let told = stream.event().await;
        if told.1 != "job.updated" {
            break told;
        }
    };
    assert_eq!((event.as_str(), &data["worker"]), ("worker.left", &Value::Null), "after 30 s");
    let (_, event, data) = stream.event().await;
    assert_eq!(
        (event.as_str(), &data["worker"]["status"]),
        ("worker.offline", &json!("offline")),
        "after 45 s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_takes_its_open_streams_along() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    let mut stream = api.open(&key, EVENTS, &[]).await;
    assert_eq!(stream.event().await.1, "snapshot");
    let id = api.engine.access().authenticate(&key).unwrap().key.clone();
    api.engine.access().revoke_key(&id, "test").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(2), stream.end()).await;
    assert!(ended.is_ok(), "it went on for more than two seconds");
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_how_runs_go() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    let mut stream = api.open(&key, &format!("{EVENTS}?kinds=run"), &[]).await;
    assert_eq!(stream.event().await.1, "snapshot");
    let workflow = json!({"id": "w", "name": "w", "steps": {"wait": {"type": "delay", "delay_sec": 5}}});
    api.call(&key, "POST", "/api/v1/workflows", &workflow.to_string()).await;
    let (_, run) = api.call(&key, "POST", "/api/v1/workflows/w/runs", "{}").await;
    for (state, before) in [("waiting", Value::Null), ("succeeded", json!("waiting"))] {
        let (_, event, data) = stream.event().await;
        assert_eq!((event.as_str(), &data["run_id"]), ("run.updated", &run["run_id"]));
        assert_eq!(
            (&data["workflow_id"], &data["state"], &data["before"]),
            (&json!("w"), &json!(state), &before)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_comes_back_misses_nothing_and_gets_nothing_twice() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    let mut stream = api.open(&key, EVENTS, &[]).await;
    stream.event().await;
    busy(&api, &key, "w1", 1).await;
    let (last, ..) = stream.event().await;
    drop(stream);
    busy(&api, &key, "w1", 2).await;
    busy(&api, &key, "w2", 1).await;
    for mut again in [
        api.open(&key, EVENTS, &[("last-event-id", &last)]).await,
        api.open(&key, &format!("{EVENTS}?after={last}"), &[]).await,
    ] {
        assert_eq!(again.event().await.1, "worker.changed");
        assert_eq!(again.event().await.1, "worker.joined");
        assert_eq!(again.raw_within(Duration::from_secs(5)).await, None);
    }
    for strange in ["", "nonsense", "0-1", "ffffffffffffffff-99"] {
        let mut fresh = api.open(&key, EVENTS, &[("last-event-id", strange)]).await;
        assert_eq!(fresh.event().await.1, "snapshot", "{strange:?} is of another life");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_a_fresh_snapshot() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    let mut stream = api.open(&key, EVENTS, &[]).await;
    stream.event().await;
    for sessions in 0..5_000 {
        busy(&api, &key, "w1", sessions).await;
    }
    let (id, event, data) = stream.event().await;
    assert_eq!((event.as_str(), data["workers"].as_array().unwrap().len()), ("snapshot", 1));
    let mut again = api.open(&key, EVENTS, &[("last-event-id", &id)]).await;
    assert_eq!(again.raw_within(Duration::from_secs(5)).await, None, "its id is a place to read on from");
}

#[tokio::test(start_paused = true)]
async fn nobody_sees_another_tenants_events() {
    let api = watched::start().await;
    let (acme, zeta) = (api.key("acme", ALL).await, api.key("zeta", ALL).await);
    let operator = api.key("ops", &[Scope::Admin]).await;
    let mut own = api.open(&acme, EVENTS, &[]).await;
    let mut everyone = api.open(&operator, EVENTS, &[]).await;
    let mut named = api.open(&operator, &format!("{EVENTS}?tenant=zeta"), &[]).await;
    let mut by_header = api.open(&operator, EVENTS, &[("x-tenant-id", "zeta")]).await;
    for stream in [&mut own, &mut everyone, &mut named, &mut by_header] {
        assert_eq!(stream.event().await.1, "snapshot");
    }
    busy(&api, &zeta, "w1", 1).await;
    for stream in [&mut everyone, &mut named, &mut by_header] {
        let (_, event, data) = stream.event().await;
        assert_eq!((event.as_str(), &data["tenant"]), ("worker.joined", &json!("zeta")));
    }
    assert_eq!(own.raw_within(Duration::from_secs(5)).await, None);
    assert_eq!(api.call(&acme, "GET", &format!("{EVENTS}?tenant=zeta"), "").await.0, 403);
    let beats = api.key("acme", &[Scope::Ingest]).await;
    assert_eq!(api.call(&beats, "GET", EVENTS, "").await.0, 403);
    assert_eq!(api.call("", "GET", EVENTS, "").await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn filters_let_through_what_they_name() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    let open = async |query: &str| {
        let mut stream = api.open(&key, &format!("{EVENTS}?{query}"), &[]).await;
        assert_eq!(stream.event().await.1, "snapshot");
        stream
    };
    let (mut jobs, mut cap, mut one) =
        (open("kinds=job").await, open("contract=cap").await, open("worker=w2").await);
    let mut workers = open("kinds=worker,workspace").await;
    busy(&api, &key, "w1", 1).await;
    busy(&api, &key, "w2", 1).await;
    api.engine.fleet().beat(&WorkerId::known("c1"), &TenantId::known("acme"), &Beat::default());
    let (_, reply) = api.submit(&key, json!({"topic": "job.echo", "context": {}})).await;
    assert_eq!(jobs.event().await.2["job_id"], reply["job_id"]);
    assert_eq!(cap.event().await.2["worker_id"], "c1");
    assert_eq!(one.event().await.2["worker_id"], "w2");
    for id in ["w1", "w2", "c1"] {
        assert_eq!(workers.event().await.2["worker_id"], id);
    }
    for bad in ["kinds=worker,nonsense", "contract=x"] {
        assert_eq!(api.call(&key, "GET", &format!("{EVENTS}?{bad}"), "").await.0, 400, "{bad}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_kept_alive_and_keeps_its_place() {
    let api = watched::start().await;
    let (key, other) = (api.key("acme", ALL).await, api.key("acme", USER).await);
    let mut stream = api.open(&other, &format!("{EVENTS}?kinds=job"), &[]).await;
    let (first, ..) = stream.event().await;
    busy(&api, &key, "w1", 1).await;
    let began = tokio::time::Instant::now();
    let raw = stream.raw().await;
    let id = raw.strip_prefix(": keepalive\nid: ").unwrap_or_else(|| panic!("{raw}"));
    assert_ne!(id, first, "what the filter held back has been read");
    assert_eq!(began.elapsed().as_secs(), 15);
    sleep(Duration::from_secs(1)).await;
    assert!(stream.raw().await.starts_with(": keepalive"));
    assert_eq!(began.elapsed().as_secs(), 30);
}
