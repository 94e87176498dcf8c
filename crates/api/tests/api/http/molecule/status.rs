//! Well, unwell, silent, and back.

use super::platform::{NOWHERE, Platform, Setup, id};
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_roster::{Roster, StructureEventQuery};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn errors_degrade_a_workspace_and_it_recovers_below_a_tenth() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    let mut watcher = platform.watch("acme");
    for (error_rate, status, event) in [
        (0.49, "online", None),
        (0.5, "degraded", Some("WORKSPACE_DEGRADED")),
        (0.9, "degraded", None),
        (0.3, "degraded", None),
        (0.1, "degraded", None),
        (0.09, "online", Some("WORKSPACE_ONLINE")),
        (0.2, "online", None),
    ] {
        watcher.forget();
        platform.beat(&token, &id(1), json!({ "error_rate": error_rate, "sample_error": "boom" })).await.ok();
        assert_eq!(platform.status(&key, &id(1)).await, status, "{error_rate}");
        let listed = platform.get(&key, &format!("/api/v1/workers/{}", id(1))).await.ok();
        assert_eq!(listed["status"], status, "{error_rate}: the fleet says the same");
        assert_eq!(watcher.names(), Vec::from_iter(event), "{error_rate}");
        if event == Some("WORKSPACE_DEGRADED") {
            assert_eq!(watcher.heard[0].2, json!({ "error_rate": 0.5, "sample_error": "boom" }));
        }
    }
    platform.beat(&token, &id(1), json!({ "runtime_state": "wedged", "sample_error": "hangs" })).await.ok();
    assert_eq!(platform.status(&key, &id(1)).await, "degraded");
    assert_eq!(watcher.until("WORKSPACE_DEGRADED").await["runtime_state"], "wedged");
    platform.beat(&token, &id(1), json!({})).await.ok();
    assert_eq!(platform.status(&key, &id(1)).await, "online");
    let events = platform.get(&key, &format!("/events/{}", id(1))).await.ok();
    let kinds: Vec<&str> =
        events.as_array().unwrap().iter().rev().map(|event| event["event_type"].as_str().unwrap()).collect();
    let (on, off) = ("WORKSPACE_ONLINE", "WORKSPACE_DEGRADED");
    assert_eq!(kinds, [on, off, on, off, on]);
}

#[tokio::test]
async fn a_task_is_told_of_when_it_changes_and_a_task_only_beat_heals_nobody() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    let mut watcher = platform.watch("acme");
    for task in ["a", "a", "b", "b", "", ""] {
        platform.beat(&token, &id(1), json!({ "current_task": task, "active_tasks": 1.7 })).await.ok();
    }
    let told: Vec<Value> = {
        watcher.names();
        watcher
            .heard
            .iter()
            .filter(|(_, name, _)| name == "TASK_UPDATED")
            .map(|(.., told)| told.clone())
            .collect()
    };
    let task = |text: &str| json!({ "current_task": text, "active_tasks": 1 });
    assert_eq!(told, [task("a"), task("b"), task("")]);

    platform
        .beat(&token, &id(1), json!({ "error_rate": 0.8, "sample_error": "boom", "uptime_seconds": 61.9 }))
        .await
        .ok();
    let partial = json!({ "current_task": "c", "active_tasks": 1, "uptime_seconds": 0 });
    platform.beat(&token, &id(1), partial.clone()).await.ok();
    assert_eq!(platform.status(&key, &id(1)).await, "degraded", "it knew nothing of errors");
    let listed = platform.get(&key, "/workspaces").await.ok()[0].clone();
    assert_eq!(
        (listed["uptime_seconds"].as_i64(), listed["last_error_rate"].as_f64()),
        (Some(61), Some(0.8))
    );
    assert_eq!((&listed["current_task"], &listed["last_sample_error"]), (&json!("c"), &json!("boom")));
    let public = platform.get(&key, &format!("/workspaces/{}", id(1))).await.ok();
    assert!(public.get("current_task").is_none() && public.get("last_sample_error").is_none());
    platform.register(&token, &id(1), NOWHERE).await.ok();
    platform.beat(&token, &id(1), partial).await.ok();
    assert_eq!(platform.status(&key, &id(1)).await, "online", "it has started anew");
    let nulls = json!({ "error_rate": null, "active_tasks": null, "uptime_seconds": null,
        "current_task": null, "sample_error": null, "monthly_spend": 3, "runtime_metadata": { "x": 1 } });
    platform.beat(&token, &id(1), nulls).await.ok();
}

#[tokio::test(start_paused = true)]
async fn silence_is_death_after_sixty_seconds_told_in_order_and_a_beat_brings_it_back() {
    let mut setup = Setup::new();
    let platform = setup.start().await;
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    let mut watcher = platform.watch("acme");
    for round in 1..=3 {
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!(platform.status(&key, &id(1)).await, "online", "round {round}");
        platform.beat(&token, &id(1), json!({})).await.ok();
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!(platform.status(&key, &id(1)).await, "online");
        watcher.forget();
        // Whoever hears it finds the event and the status on the disk and in our answers.
        watcher.until("WORKSPACE_OFFLINE").await;
        assert_eq!(platform.status(&key, &id(1)).await, "offline");
        let query = StructureEventQuery {
            tenant: TenantId::known("acme"),
            workspace: Some(WorkspaceId::known(id(1))),
            limit: 1,
        };
        assert_eq!(setup.roster().events(&query).await.unwrap()[0].kind, "WORKSPACE_OFFLINE");
        let stored = setup.roster().workspaces(None, 10).await.unwrap();
        assert_eq!(stored[0].status.as_str(), "offline");
        let found = format!("/registry/discover/{}", id(1));
        let away = platform.send_as(Some(&id(1)), &token, "GET", &found, Value::Null).await;
        away.is(503, "workspace not available");
        assert_eq!(away.body["status"], "offline");
        watcher.forget();
        platform.beat(&token, &id(1), json!({})).await.ok();
        assert_eq!(platform.status(&key, &id(1)).await, "online");
        assert_eq!(watcher.names(), ["WORKSPACE_ONLINE"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_restarts_declares_the_silent_dead_and_the_others_not() {
    let mut setup = Setup::new();
    let platform = setup.start().await;
    let key = platform.user("acme").await;
    let (one, _two) =
        (platform.join(&key, &id(1), NOWHERE).await, platform.join(&key, &id(2), NOWHERE).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    platform.die().await;
    let platform = setup.start().await;
    let mut watcher = platform.watch("acme");
    assert_eq!(platform.status(&key, &id(2)).await, "online");
    tokio::time::sleep(Duration::from_secs(30)).await;
    platform.beat(&one, &id(1), json!({})).await.ok();
    tokio::time::sleep(Duration::from_secs(31)).await;
    watcher.until("WORKSPACE_OFFLINE").await;
    assert_eq!(watcher.heard[0].0, id(2));
    assert_eq!(platform.status(&key, &id(1)).await, "online");
    assert_eq!(platform.status(&key, &id(2)).await, "offline");
}

/// Beats and deaths at the same moment: whatever comes first, whoever beats is online in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beat_that_meets_its_own_death_wins() {
    let platform = Setup::new().ttl_ms(100).start().await;
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    for round in 0..8 {
        tokio::time::sleep(Duration::from_millis(96 + round)).await;
        for _ in 0..3 {
            platform.beat(&token, &id(1), json!({})).await.ok();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(platform.status(&key, &id(1)).await, "online", "round {round}");
    }
}
