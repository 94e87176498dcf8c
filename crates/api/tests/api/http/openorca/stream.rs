//! The console's stream: what it begins with, what it tells, and what keeps it alive.

use super::{ALL, EVENTS, cap_worker};
use crate::http::watched::{self, payload};
use reveille_test_kit::Sse;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn the_stream_begins_with_a_snapshot_and_tells_only_what_changed() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    api.beat(&key, &payload("w1", json!({}))).await;
    let mut stream = api.open(&key, EVENTS, &[]).await;
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(stream.headers[name], value);
    }
    let first = stream.data().await;
    assert_eq!(
        (&first["type"], &first["snapshot"]["agents"][0]["id"]),
        (&json!("snapshot.replace"), &json!("w1"))
    );
    api.beat(&key, &payload("w1", json!({"cpu_pct": 3.5}))).await;
    assert_eq!(stream.raw_within(Duration::from_secs(10)).await, None, "the same again is no news");
    for sessions in [1, 2, 3] {
        api.beat(&key, &payload("w1", json!({"status": "busy", "active_sessions": sessions}))).await;
    }
    let frame = stream.data().await;
    assert_eq!((&frame["type"], &frame["agent"]["activeSessions"]), (&json!("agent.updated"), &json!(3)));
    let frame = stream.data().await;
    assert_eq!(
        (&frame["type"], &frame["fleetHealth"]["tasksInProgress"]),
        (&json!("fleet.updated"), &json!(3))
    );
}

#[tokio::test(start_paused = true)]
async fn a_lapsed_ttl_is_pushed() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    let mut stream = api.open(&key, EVENTS, &[]).await;
    api.beat(&key, &payload("w1", json!({"status": "busy", "active_sessions": 3}))).await;
    cap_worker(&api, "c1", "acme");
    assert_eq!(stream.data().await["snapshot"]["agents"].as_array().unwrap().len(), 2);
    let offline = loop {
        let frame = stream.until("agent.updated").await;
        if frame["agent"]["status"] == "offline" {
            break frame;
        }
    };
    assert_eq!(offline["agent"]["id"], "cap:c1", "CAP workers have 30 s, and are then forgotten");
    let replaced = stream.until("snapshot.replace").await;
    assert_eq!(replaced["snapshot"]["agents"].as_array().unwrap().len(), 1);
    let offline = stream.until("agent.updated").await;
    let agent = &offline["agent"];
    assert_eq!((&agent["id"], &agent["status"]), (&json!("w1"), &json!("offline")));
    assert_eq!(agent["activeSessions"], 0);
    let health = stream.until("fleet.updated").await;
    assert_eq!(health["fleetHealth"]["offlineAgents"], 1);
    assert_eq!(health["fleetHealth"]["tasksInProgress"], 0);
}

#[tokio::test(start_paused = true)]
async fn keepalives_come_every_15_seconds_whatever_others_do() {
    let api = watched::start().await;
    let (acme, zeta) = (api.key("acme", ALL).await, api.key("zeta", ALL).await);
    let began = tokio::time::Instant::now();
    let mut quiet = api.open(&acme, EVENTS, &[]).await;
    let mut loud = api.open(&zeta, EVENTS, &[]).await;
    quiet.data().await;
    loud.data().await;
    let noise = async {
        for sessions in 0.. {
            api.beat(&zeta, &payload("w1", json!({"status": "busy", "active_sessions": sessions}))).await;
            sleep(Duration::from_millis(500)).await;
        }
    };
    let keepalives = async |stream: &mut Sse, only: bool| {
        for round in 1..=3 {
            loop {
                let frame = stream.data().await;
                if frame["type"] == "runtime.status" {
                    assert_eq!(frame["status"], "connected");
                    break;
                }
                assert!(!only || frame["type"] == "fleet.updated", "nothing of zeta's: {frame}");
            }
            let late = began.elapsed().as_secs_f64() - 15.0 * f64::from(round);
            assert!((0.0..0.5).contains(&late), "{late} s late");
        }
    };
    tokio::select! {
        () = noise => {}
        _ = async { tokio::join!(keepalives(&mut quiet, true), keepalives(&mut loud, false)) } => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_console_gets_a_new_picture() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    let mut stream = api.open(&key, EVENTS, &[]).await;
    stream.data().await;
    for sessions in 0..5_000 {
        api.beat(&key, &payload("w1", json!({"status": "busy", "active_sessions": sessions}))).await;
    }
    let next = stream.data().await;
    assert_eq!(next["type"], "snapshot.replace", "and not five thousand frames");
    assert_eq!(next["snapshot"]["agents"][0]["activeSessions"], 4_999);
    assert_eq!(stream.raw_within(Duration::from_secs(5)).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_server_drains() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    let mut streams = [api.open(&key, EVENTS, &[]).await, api.open(&key, "/api/v1/events", &[]).await];
    for stream in &mut streams {
        stream.raw().await;
    }
    api.engine.drain(Duration::from_secs(1)).await;
    for stream in &mut streams {
        assert!(stream.has_ended().await);
    }
}
