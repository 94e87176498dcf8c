//! The server dies in the middle of a delegation, and comes back on the same disk.

use super::agent::{Agent, Manner};
use super::platform::{NOWHERE, Platform, Setup, id};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Notify;

async fn give(platform: &Platform, token: &str) -> Value {
    let body = json!({ "target_id": id(2), "task": "survive" });
    platform.post(token, &format!("/workspaces/{}/delegate", id(1)), body).await.ok()
}

/// Until the only delegation in the list has ended; says how.
async fn ended(platform: &Platform, token: &str) -> String {
    let wait = async {
        loop {
            let list = platform.get(token, &format!("/workspaces/{}/delegations", id(1))).await.ok();
            assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
            let status = list[0]["status"].as_str().unwrap().to_owned();
            if status == "completed" || status == "failed" {
                return status;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(100), wait).await.unwrap()
}

async fn terminal_events(platform: &Platform, key: &str) -> usize {
    let events = platform.get(key, &format!("/events/{}", id(1))).await.ok();
    let kinds = events.as_array().unwrap().iter().map(|event| event["event_type"].as_str().unwrap());
    kinds.filter(|kind| matches!(*kind, "DELEGATION_COMPLETE" | "DELEGATION_FAILED")).count()
}

#[tokio::test]
async fn a_delegation_that_was_being_thought_about_completes_after_a_restart() {
    let mut setup = Setup::new();
    let platform = setup.start().await;
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    let agent = Agent::start(Manner::Thinks(Arc::new(Notify::new()))).await;
    platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    give(&platform, &token).await;
    watcher.until_nth("DELEGATION_STATUS", 4).await;
    platform.die().await;
    agent.behave(Manner::Answers("remembered"));
    let platform = setup.start().await;
    assert_eq!(ended(&platform, &token).await, "completed");
    assert_eq!(terminal_events(&platform, &key).await, 1);
    let got = agent.got();
    let message = |n: usize| got[n].1["params"]["message"]["messageId"].clone();
    assert_eq!((got.len(), message(0)), (2, message(1)));
}

#[tokio::test]
async fn a_delegation_whose_agent_is_away_after_the_restart_completes_when_it_is_back() {
    let mut setup = Setup::new();
    let platform = setup.start().await;
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    let agent = Agent::start(Manner::Thinks(Arc::new(Notify::new()))).await;
    let target = platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    give(&platform, &token).await;
    watcher.until_nth("DELEGATION_STATUS", 4).await;
    platform.die().await;
    let address = agent.url.strip_prefix("http://").unwrap().to_owned();
    drop(agent);
    tokio::task::yield_now().await;
    let platform = setup.start().await;
    let mut watcher = platform.watch("acme");
    watcher.until("DELEGATION_STATUS").await;
    assert_eq!(watcher.rungs()[0], "pending", "it was not reached");
    let agent = loop {
        match TcpListener::bind(&address).await {
            Ok(listener) => break Agent::on(listener, Manner::Answers("back")),
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    };
    platform.beat(&target, &id(2), json!({})).await.ok();
    assert_eq!(ended(&platform, &token).await, "completed");
    assert_eq!((terminal_events(&platform, &key).await, agent.got().len()), (1, 1));
}

/// Whenever the server dies, what it said yes to is done, is listed once, and ends once.
#[tokio::test]
async fn a_delegation_survives_a_kill_at_any_moment() {
    for delay in 0..12u64 {
        let mut setup = Setup::new();
        let platform = setup.start().await;
        let key = platform.user("acme").await;
        let token = platform.join(&key, &id(1), NOWHERE).await;
        let agent = Agent::start(Manner::Answers("whenever")).await;
        platform.join(&key, &id(2), &agent.url).await;
        give(&platform, &token).await;
        tokio::time::sleep(std::time::Duration::from_micros(delay * 150)).await;
        platform.die().await;
        let platform = setup.start().await;
        assert_eq!(ended(&platform, &token).await, "completed", "killed after {delay}");
        let mut count = terminal_events(&platform, &key).await;
        for _ in 0..20 {
            tokio::task::yield_now().await;
            count = count.max(terminal_events(&platform, &key).await);
        }
        assert_eq!(count, 1, "killed after {delay}");
    }
}
