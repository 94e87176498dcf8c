//! Agents that break down again and again, think longer than they beat, or start anew in the middle. Time
//! belongs to the test, and so do the letters.

use super::platform::{NOWHERE, Platform, Setup, id};
use reveille_a2a::{A2aClient, A2aError, A2aReply, A2aRequest, Received};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Every agent behind it takes this long and then says this.
struct Agents {
    takes: Duration,
    status: u16,
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl A2aClient for Agents {
    async fn check(&self, _url: &str) -> Result<(), A2aError> {
        Ok(())
    }

    async fn post(&self, _letter: A2aRequest, received: Received) -> Result<A2aReply, A2aError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        received();
        tokio::time::sleep(self.takes).await;
        let said = json!({ "result": { "parts": [{ "kind": "text", "text": "at last" }] } });
        Ok(A2aReply::new(self.status, said.to_string()))
    }
}

/// Workspace 1 has given a task to workspace 2.
async fn given(takes: Duration, status: u16) -> (Platform, Arc<Agents>, String, String) {
    let agents = Arc::new(Agents { takes, status, asked: AtomicUsize::new(0) });
    let mut setup = Setup::new();
    setup.a2a = Some(agents.clone());
    let platform = setup.start().await;
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    let target = platform.join(&key, &id(2), NOWHERE).await;
    let body = json!({ "target_id": id(2), "task": "think" });
    platform.post(&token, &format!("/workspaces/{}/delegate", id(1)), body).await.ok();
    (platform, agents, token, target)
}

async fn row(platform: &Platform, token: &str) -> Value {
    let list = platform.get(token, &format!("/workspaces/{}/delegations", id(1))).await.ok();
    assert_eq!(list.as_array().unwrap().len(), 1);
    list[0].clone()
}

#[tokio::test(start_paused = true)]
async fn a_task_that_breaks_its_agent_every_time_fails() {
    let (platform, agents, token, _target) = given(Duration::from_millis(10), 500).await;
    let mut watcher = platform.watch("acme");
    watcher.until("DELEGATION_FAILED").await;
    assert_eq!(agents.asked.load(Ordering::Relaxed), 5);
    assert_eq!(row(&platform, &token).await["status"], "failed");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_thinks_longer_than_it_beats_is_asked_once() {
    let (platform, agents, token, target) = given(Duration::from_mins(6), 200).await;
    let mut watcher = platform.watch("acme");
    // The other one falls silent too, once.
    watcher.until_nth("WORKSPACE_OFFLINE", 2).await;
    for times in 3..7 {
        platform.beat(&target, &id(2), json!({})).await.ok();
        watcher.until_nth("WORKSPACE_OFFLINE", times).await;
    }
    platform.beat(&target, &id(2), json!({})).await.ok();
    watcher.until("DELEGATION_COMPLETE").await;
    assert_eq!(agents.asked.load(Ordering::Relaxed), 1);
    let row = row(&platform, &token).await;
    assert_eq!((&row["status"], &row["response_preview"]), (&json!("completed"), &json!("at last")));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_starts_anew_is_asked_again() {
    let (platform, agents, token, target) = given(Duration::from_secs(20), 200).await;
    let mut watcher = platform.watch("acme");
    tokio::time::sleep(Duration::from_secs(5)).await;
    platform.register(&target, &id(2), NOWHERE).await.ok();
    watcher.until("DELEGATION_COMPLETE").await;
    assert_eq!(agents.asked.load(Ordering::Relaxed), 2);
    assert_eq!(row(&platform, &token).await["status"], "completed");
}
