//! The six rules of the heartbeat contract, each a test named after it.

use super::AGENT;
use crate::http::watched::{self, payload};
use reveille_roster::{Roster, Scope};
use reveille_test_kit::NOON;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn rule_1_tenant_is_derived_from_the_key() {
    let api = watched::start().await;
    let (acme, zeta) = (api.key("acme", AGENT).await, api.key("zeta", AGENT).await);
    let operator = api.key("default", &[Scope::Admin]).await;
    let forged = payload("w1", json!({"tenant_id": "zeta"})).to_string();
    let headers = [("x-api-key", acme.as_str()), ("x-tenant-id", "zeta")];
    assert_eq!(api.send("POST", "/v1/agents/heartbeat", &headers, forged.clone()).await.status, 202);
    let headers = [("x-api-key", operator.as_str()), ("x-tenant-id", "zeta")];
    assert_eq!(api.send("POST", "/v1/agents/heartbeat", &headers, forged.clone()).await.status, 202);
    for odd in [json!(7), json!({"a": 1}), json!([])] {
        assert_eq!(api.beat(&acme, &payload("w1", json!({"tenant_id": odd}))).await, 202);
    }
    assert_eq!(api.agents(&acme).await.len(), 1);
    assert!(api.agents(&zeta).await.is_empty());
    assert_eq!(api.agents(&operator).await.len(), 2, "an operator sees acme's and its own");
    let seen = async |key: &str, path: &str| api.call(key, "GET", path, "").await;
    assert_eq!(seen(&operator, "/v1/agents?tenant=acme").await.1["workers"].as_array().unwrap().len(), 1);
    assert_eq!(seen(&operator, "/v1/agents?tenant=zeta").await.1, json!({"workers": []}));
    let foreign = seen(&zeta, "/v1/agents?tenant=acme").await;
    assert_eq!(foreign, (403, json!({"detail": "Not authorized to read another tenant's data"})));
    assert_eq!(seen(&acme, "/v1/agents?tenant=acme").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn rule_2_identity_is_tenant_and_agent_id() {
    let api = watched::start().await;
    let (acme, zeta) = (api.key("acme", AGENT).await, api.key("zeta", AGENT).await);
    for (key, id) in [(&acme, "w1"), (&acme, "w2"), (&zeta, "w1"), (&acme, "w1")] {
        assert_eq!(api.beat(key, &payload(id, json!({"agent_name": "shared"}))).await, 202);
    }
    assert_eq!(api.beat(&acme, &payload("w1", json!({"agent_name": "renamed"}))).await, 202);
    let mut names: Vec<_> = api.agents(&acme).await.iter().map(|row| row["agent_name"].clone()).collect();
    names.sort_by_key(ToString::to_string);
    assert_eq!(names, ["renamed", "shared"]);
    let snapshot = api.call(&acme, "GET", "/openorca/snapshot", "").await.1;
    let mut nodes: Vec<_> = snapshot["agents"].as_array().unwrap().iter().map(|node| &node["id"]).collect();
    nodes.sort_by_key(ToString::to_string);
    assert_eq!(nodes, ["w1", "w2"]);
    assert_eq!(api.agents(&zeta).await[0]["agent_name"], "shared");
}

#[tokio::test(start_paused = true)]
async fn rule_3_last_seen_is_stamped_by_the_server() {
    let api = watched::start().await;
    let key = api.key("acme", AGENT).await;
    let now = NOON.0 as f64 / 1000.0;
    for (id, ts) in [("ahead", json!(now + 3600.0)), ("behind", json!(now - 3600.0)), ("odd", json!("now"))] {
        assert_eq!(api.beat(&key, &payload(id, json!({"ts": ts}))).await, 202);
    }
    for row in api.agents(&key).await {
        assert_eq!((row["last_seen"].as_f64(), row["status"].as_str()), (Some(now), Some("idle")));
    }
    sleep(Duration::from_secs(44)).await;
    assert_eq!(api.beat(&key, &payload("behind", json!({"ts": now - 3600.0}))).await, 202);
    sleep(Duration::from_secs(2)).await;
    let rows = api.agents(&key).await;
    assert_eq!(rows[0]["agent_id"], "behind", "the order is by our clock");
    let status = |id: &str| rows.iter().find(|row| row["agent_id"] == id).unwrap()["status"].clone();
    assert_eq!((status("ahead"), status("behind")), (json!("offline"), json!("idle")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rule_4_sixteen_first_beats_at_once_leave_one_row() {
    let api = watched::start().await;
    let key = api.key("acme", AGENT).await;
    for round in 0..10 {
        let id = format!("w{round}");
        let beats = (0..16).map(|sessions| {
            let (http, key) = ((*api).clone(), key.clone());
            let body = payload(&id, json!({"status": "busy", "active_sessions": sessions})).to_string();
            tokio::spawn(async move { http.call(&key, "POST", "/v1/agents/heartbeat", &body).await.0 })
        });
        for beat in beats.collect::<Vec<_>>() {
            assert_eq!(beat.await.unwrap(), 202);
        }
    }
    assert_eq!(api.agents(&key).await.len(), 10);
    let written = async {
        loop {
            let rows = api.world.roster.presence(None, 1_000).await.unwrap();
            if rows.len() >= 10 {
                return rows;
            }
            tokio::task::yield_now().await;
        }
    };
    let rows = tokio::time::timeout(Duration::from_secs(10), written).await.unwrap();
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| row.key.tenant.as_str() == "acme"));
    assert_eq!(api.beat(&key, &payload("w0", json!({}))).await, 202, "and the next beat is as welcome");
}

#[tokio::test(start_paused = true)]
async fn rule_5_silence_of_45_seconds_is_offline_with_no_sessions() {
    let api = watched::start().await;
    let key = api.key("acme", AGENT).await;
    let busy = payload("w1", json!({"status": "busy", "active_sessions": 3}));
    assert_eq!(api.beat(&key, &busy).await, 202);
    sleep(Duration::from_secs(44)).await;
    let row = api.agents(&key).await.remove(0);
    assert_eq!((&row["status"], &row["active_sessions"]), (&json!("busy"), &json!(3)));
    sleep(Duration::from_secs(1)).await;
    let row = api.agents(&key).await.remove(0);
    assert_eq!((&row["status"], &row["active_sessions"]), (&json!("offline"), &json!(0)));
    let snapshot = api.call(&key, "GET", "/openorca/snapshot", "").await.1;
    let node = &snapshot["agents"][0];
    assert_eq!((&node["status"], &node["activeSessions"]), (&json!("offline"), &json!(0)));
    assert_eq!((&node["activityLevel"], &node["currentAction"]), (&json!(0), &json!("Offline")));
    let health = &snapshot["fleetHealth"];
    assert_eq!((&health["tasksInProgress"], &health["offlineAgents"]), (&json!(0), &json!(1)));
    assert_eq!((&health["activeAgents"], &health["overallHealth"]), (&json!(0), &json!("critical")));
    assert_eq!(api.beat(&key, &busy).await, 202);
    assert_eq!(api.agents(&key).await[0]["active_sessions"], 3, "it is back as it says");
}

#[tokio::test(start_paused = true)]
async fn rule_6_status_is_idle_busy_or_offline() {
    let api = watched::start().await;
    let key = api.key("acme", AGENT).await;
    for (status, answer) in [("idle", 202), ("busy", 202), ("offline", 202)] {
        let body = payload("w1", json!({"status": status, "active_sessions": 2}));
        assert_eq!(api.beat(&key, &body).await, answer);
        let row = api.agents(&key).await.remove(0);
        assert_eq!(row["status"], status);
        assert_eq!(row["active_sessions"], if status == "offline" { 0 } else { 2 });
    }
    for (status, shown, is_online, sessions) in
        [("idle", "online", true, 2), ("busy", "busy", true, 2), ("offline", "offline", false, 0)]
    {
        let body = payload("w1", json!({"status": status, "active_sessions": 2}));
        assert_eq!(api.beat(&key, &body).await, 202);
        let worker = api.call(&key, "GET", "/api/v1/workers/w1", "").await.1;
        assert_eq!((&worker["status"], &worker["online"]), (&json!(shown), &json!(is_online)), "{worker}");
        assert_eq!(worker["active_jobs"], sessions, "{worker}");
    }
    for bad in ["<b>on fire</b>", "Idle", "", "online"] {
        let body = payload("w1", json!({"status": bad})).to_string();
        let (status, reply) = api.call(&key, "POST", "/v1/agents/heartbeat", &body).await;
        assert_eq!((status, reply["field"].as_str()), (422, Some("status")), "{reply}");
        assert!(!reply.to_string().contains("fire"));
    }
    assert_eq!(api.agents(&key).await[0]["status"], "offline", "what was refused changed nothing");
}
