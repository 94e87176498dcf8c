//! A delegation from the giver to the answer, and every way it can go.

use super::agent::{Agent, Manner};
use super::platform::{NOWHERE, Platform, Setup, id};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// Gives a task from workspace 1 to workspace 2.
pub async fn give(platform: &Platform, token: &str, more: Value) -> super::platform::Answer {
    let mut body = json!({ "target_id": id(2), "task": "write the report" });
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    platform.post(token, &format!("/workspaces/{}/delegate", id(1)), body).await
}

pub async fn listed(platform: &Platform, token: &str) -> Vec<Value> {
    let list = platform.get(token, &format!("/workspaces/{}/delegations", id(1))).await.ok();
    list.as_array().unwrap().clone()
}

/// Workspace 1 and its token.
pub async fn giver(platform: &Platform) -> (String, String) {
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    (key, token)
}

const RUNGS: [&str; 5] = ["pending", "dispatched", "received", "in_progress", "completed"];

#[tokio::test]
async fn a_delegation_climbs_every_rung_and_is_listed_once() {
    let platform = Platform::open().await;
    let (key, token) = giver(&platform).await;
    let thinking = Arc::new(Notify::new());
    let agent = Agent::start(Manner::Thinks(thinking.clone())).await;
    platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    let answer = give(&platform, &token, json!({})).await;
    assert_eq!((answer.status, &answer.body["status"]), (202, &json!("delegated")));
    assert_eq!(answer.body["target_id"], id(2));
    let delegation = answer.body["delegation_id"].as_str().unwrap().to_owned();
    watcher.until_nth("DELEGATION_STATUS", 4).await;
    assert_eq!(watcher.rungs(), RUNGS[..4]);
    assert_eq!(listed(&platform, &token).await[0]["status"], "in_progress");
    thinking.notify_one();
    let complete = watcher.until("DELEGATION_COMPLETE").await;
    assert_eq!(
        complete,
        json!({ "delegation_id": delegation, "target_id": id(2), "response_preview": "thought it through" })
    );
    assert_eq!(watcher.rungs(), RUNGS);
    let sent = watcher.until("DELEGATION_SENT").await;
    assert_eq!(
        sent,
        json!({ "delegation_id": delegation, "target_id": id(2), "task_preview": "write the report" })
    );
    let list = listed(&platform, &token).await;
    assert_eq!(list.len(), 1);
    for (key, value) in [
        ("id", delegation.as_str()),
        ("delegation_id", &delegation),
        ("type", "delegation"),
        ("source_id", &id(1)),
        ("target_id", &id(2)),
        ("summary", "write the report"),
        ("status", "completed"),
        ("response_preview", "thought it through"),
    ] {
        assert_eq!(list[0][key], value, "{key}");
    }
    let (headers, message) = agent.got().remove(0);
    assert_eq!(headers["x-workspace-id"], id(1).as_str());
    let traceparent = headers["traceparent"].to_str().unwrap();
    assert!(traceparent.starts_with(&format!("00-{}-", delegation.replace('-', ""))), "{traceparent}");
    assert_eq!(message["params"]["message"]["messageId"], delegation);
    assert_eq!(message["params"]["message"]["parts"][0]["text"], "write the report");
    let events = platform.get(&key, &format!("/events/{}", id(1))).await.ok();
    assert_eq!(events[0]["event_type"], "DELEGATION_COMPLETE", "they are kept, too");
}

#[tokio::test]
async fn a_task_that_the_agent_refuses_fails_at_once() {
    let platform = Platform::open().await;
    let (key, token) = giver(&platform).await;
    let agent = Agent::start(Manner::Fails("I do not write reports")).await;
    platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    give(&platform, &token, json!({})).await.ok();
    let failed = watcher.until("DELEGATION_FAILED").await;
    assert_eq!((&failed["target_id"], &failed["error"]), (&json!(id(2)), &json!("I do not write reports")));
    let rungs = watcher.rungs();
    assert_eq!((rungs[0].as_str(), rungs.last().unwrap().as_str()), ("pending", "failed"));
    let list = listed(&platform, &token).await;
    assert_eq!((&list[0]["status"], &list[0]["error"]), (&json!("failed"), &json!("I do not write reports")));
    assert_eq!(agent.got().len(), 1);
}

#[tokio::test]
async fn a_breakdown_is_tried_again() {
    let platform = Platform::open().await;
    let (key, token) = giver(&platform).await;
    let agent = Agent::start(Manner::Status(500)).await;
    platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    give(&platform, &token, json!({})).await.ok();
    agent.has_got(1).await;
    agent.behave(Manner::Answers("done"));
    watcher.until("DELEGATION_COMPLETE").await;
    let got = agent.got();
    assert_eq!(got.len(), 2);
    let message = |n: usize| got[n].1["params"]["message"]["messageId"].clone();
    assert_eq!(message(0), message(1), "the agent can tell that it is the same");
    assert_eq!(listed(&platform, &token).await.len(), 1);
}

#[tokio::test]
async fn what_is_given_to_a_workspace_that_is_away_waits_for_it() {
    let platform = Setup::new().ttl_ms(300).start().await;
    let (key, token) = giver(&platform).await;
    let agent = Agent::start(Manner::Answers("late but here")).await;
    let target = platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    watcher.until_nth("WORKSPACE_OFFLINE", 2).await;
    give(&platform, &token, json!({})).await.ok();
    assert_eq!(watcher.rungs(), ["pending"]);
    assert!(agent.got().is_empty());
    platform.beat(&target, &id(2), json!({})).await.ok();
    watcher.until("DELEGATION_COMPLETE").await;
    assert_eq!(watcher.rungs(), RUNGS);
    assert_eq!(agent.got().len(), 1);
}

#[tokio::test]
async fn an_agent_that_is_not_reached_gets_it_when_it_registers_elsewhere() {
    let platform = Platform::open().await;
    let (key, token) = giver(&platform).await;
    // Nobody listens at this port any more.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let target = platform.join(&key, &id(2), &format!("http://{gone}")).await;
    let mut watcher = platform.watch("acme");
    give(&platform, &token, json!({})).await.ok();
    watcher.until_nth("DELEGATION_STATUS", 3).await;
    assert_eq!(watcher.rungs()[..3], ["pending", "dispatched", "pending"]);
    let agent = Agent::start(Manner::Answers("moved")).await;
    platform.register(&target, &id(2), &agent.url).await.ok();
    watcher.until("DELEGATION_COMPLETE").await;
    assert_eq!(agent.got().len(), 1);

    let new_home = Agent::start(Manner::Answers("moved again")).await;
    platform.register(&target, &id(2), &new_home.url).await.ok();
    give(&platform, &token, json!({})).await.ok();
    watcher.until_nth("DELEGATION_COMPLETE", 2).await;
    assert_eq!((agent.got().len(), new_home.got().len()), (1, 1), "the next one goes to the new address");
}

#[tokio::test]
async fn an_agent_that_keeps_a_task_for_later_says_when_it_is_done() {
    let platform = Platform::open().await;
    let (key, token) = giver(&platform).await;
    let agent = Agent::start(Manner::Queues).await;
    let target = platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    let answer = give(&platform, &token, json!({})).await.ok();
    let delegation = answer["delegation_id"].as_str().unwrap();
    watcher.until_nth("DELEGATION_STATUS", 4).await;
    let done = json!({ "status": "completed", "response_preview": "x".repeat(1_000) });
    let path = |number: u32| format!("/workspaces/{}/delegations/{delegation}/update", id(number));
    assert_eq!(platform.post(&token, &path(1), done.clone()).await.status, 409, "the giver cannot end it");
    let bad = platform.post(&target, &path(2), json!({ "status": "maybe" })).await;
    bad.is(400, "status must be 'completed' or 'failed'");
    let ended = platform.post(&target, &path(2), done.clone()).await.ok();
    assert_eq!(ended, json!({ "status": "completed", "delegation_id": delegation }));
    platform.post(&target, &path(2), done).await.ok();
    let complete = watcher.until("DELEGATION_COMPLETE").await;
    assert_eq!(complete["response_preview"].as_str().unwrap().len(), 200);
    let preview = listed(&platform, &token).await[0]["response_preview"].clone();
    assert_eq!(preview.as_str().unwrap(), format!("{}...", "x".repeat(300)));
    assert_eq!(watcher.rungs(), RUNGS);
    let unknown = format!("/workspaces/{}/delegations/nope/update", id(2));
    platform.post(&target, &unknown, json!({ "status": "failed" })).await.is(404, "delegation not found");
}

#[tokio::test]
async fn an_agent_records_what_it_delegates_by_itself() {
    let platform = Platform::open().await;
    let (key, token) = giver(&platform).await;
    platform.join(&key, &id(2), NOWHERE).await;
    let mut watcher = platform.watch("acme");
    let path = format!("/workspaces/{}/delegations", id(1));
    let record = json!({ "target_id": id(2), "task": "look it up", "delegation_id": "own-1" });
    for _ in 0..2 {
        let recorded = platform.post(&token, &format!("{path}/record"), record.clone()).await;
        assert_eq!((recorded.status, &recorded.body["status"]), (202, &json!("recorded")));
    }
    assert_eq!(listed(&platform, &token).await[0]["status"], "dispatched");
    let (won, broken) = (json!({ "status": "completed" }), json!({ "status": "failed", "error": "no" }));
    let update = format!("{path}/own-1/update");
    let ends = tokio::join!(platform.post(&token, &update, won), platform.post(&token, &update, broken));
    assert_eq!((ends.0.status, ends.1.status), (200, 200));
    let names = watcher.names();
    let ended = names.iter().filter(|name| matches!(**name, "DELEGATION_COMPLETE" | "DELEGATION_FAILED"));
    assert_eq!(ended.count(), 1, "it ends once");
    let last = watcher.heard.last().unwrap().2.clone();
    assert_eq!(last["target_id"], id(2), "canvases drop what has no target");
    assert_eq!(listed(&platform, &token).await.len(), 1);
}

#[tokio::test]
async fn what_was_given_to_a_workspace_ends_with_it() {
    let platform = Platform::open().await;
    let (key, token) = giver(&platform).await;
    let thinking = Arc::new(Notify::new());
    let agent = Agent::start(Manner::Thinks(thinking.clone())).await;
    platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    give(&platform, &token, json!({})).await.ok();
    watcher.until_nth("DELEGATION_STATUS", 4).await;
    platform.send(&key, "DELETE", &format!("/workspaces/{}", id(2)), Value::Null).await.ok();
    let failed = watcher.until("DELEGATION_FAILED").await;
    assert!(failed["error"].as_str().unwrap().contains("the workspace was removed"), "{failed}");
    thinking.notify_one();
    assert_eq!(listed(&platform, &token).await[0]["status"], "failed");
    give(&platform, &token, json!({})).await.is(410, "workspace was removed");
}

#[tokio::test]
async fn the_list_is_newest_first_and_at_most_fifty() {
    let platform = Platform::open().await;
    let (key, token) = giver(&platform).await;
    platform.post(&key, "/workspaces", json!({ "name": "x" })).await.ok();
    let child = platform.post(&key, "/workspaces", json!({ "name": "c", "parent_id": id(1) })).await.ok();
    for number in 0..60 {
        let body = json!({ "target_id": child["id"], "task": format!("task {number}") });
        give(&platform, &token, body).await.ok();
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let list = listed(&platform, &token).await;
    let summaries: Vec<_> = list.iter().map(|row| row["summary"].as_str().unwrap().to_owned()).collect();
    let expected: Vec<_> = (10..60).rev().map(|number| format!("task {number}")).collect();
    assert_eq!(summaries, expected);
}
