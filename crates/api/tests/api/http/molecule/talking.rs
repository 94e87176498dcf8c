//! Messages passed on, and words to whoever watches.

use super::agent::{Agent, Manner};
use super::platform::{NOWHERE, Platform, Setup, id};
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;
use tower::ServiceExt;

#[tokio::test]
async fn a_message_is_wrapped_passed_on_and_answered() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let agent = Agent::start(Manner::Answers("hello back")).await;
    let (one, own) =
        (platform.join(&key, &id(1), NOWHERE).await, platform.join(&key, &id(2), &agent.url).await);
    // As the heartbeat loop sends it: no version, no ids, and `type` where `kind` is meant.
    let message = json!({ "method": "message/send", "params": { "message": { "role": "user",
        "parts": [{ "type": "text", "text": "hello" }] } } });
    let path = format!("/workspaces/{}/a2a", id(2));
    for (caller, bearer) in
        [(None, &key), (Some(id(1)), &one), (None, &one), (Some(id(2)), &own), (Some(id(1)), &key)]
    {
        let answer = platform.send_as(caller.as_deref(), bearer, "POST", &path, message.clone()).await;
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.ok()["result"]["parts"][0]["text"], "hello back");
    }
    let got = agent.got();
    let from: Vec<_> = got
        .iter()
        .map(|(headers, _)| headers.get("x-workspace-id").map(|id| id.to_str().unwrap().to_owned()))
        .collect();
    assert_eq!(from, [None, Some(id(1)), Some(id(1)), Some(id(2)), Some(id(1))]);
    let sent = &got[0].1;
    assert_eq!((&sent["jsonrpc"], &sent["method"]), (&json!("2.0"), &json!("message/send")));
    assert_eq!(sent["params"]["message"]["parts"], json!([{ "kind": "text", "text": "hello" }]));
    assert_eq!(sent["id"], sent["params"]["message"]["messageId"]);

    agent.behave(Manner::Status(418));
    assert_eq!(platform.post(&key, &path, message.clone()).await.status, 418, "its answer is its own");
    agent.behave(Manner::Status(302));
    assert_eq!(platform.post(&key, &path, message.clone()).await.status, 502);
    platform.post(&key, &path, json!([1])).await.is(400, "invalid request body");
    platform.post("", &path, message.clone()).await.is(401, "missing workspace auth token");
    let long = json!({ "method": "x", "pad": "y".repeat(1024 * 1024) });
    assert_eq!(platform.post(&key, &path, long).await.status, 413);
    let stranger = platform.post(&key, "/workspaces", json!({ "name": "s", "parent_id": id(1) })).await.ok();
    let to_stranger = format!("/workspaces/{}/a2a", stranger["id"].as_str().unwrap());
    platform
        .post(&own, &to_stranger, message.clone())
        .await
        .is(403, "not authorized to reach this workspace");
    let unset = platform.post(&key, &to_stranger, message).await;
    unset.is(503, "workspace not available");
    assert!(!unset.header("retry-after").is_empty());
}

#[tokio::test]
async fn whoever_is_not_there_is_not_reached() {
    let platform = Setup::new().ttl_ms(300).start().await;
    let key = platform.user("acme").await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut watcher = platform.watch("acme");
    platform.join(&key, &id(1), &format!("http://{gone}")).await;
    let path = format!("/workspaces/{}/a2a", id(1));
    let message = json!({ "method": "tasks/get", "params": {} });
    platform.post(&key, &path, message.clone()).await.is(502, "failed to reach workspace agent");
    watcher.until("WORKSPACE_OFFLINE").await;
    let away = platform.post(&key, &path, message.clone()).await;
    away.is(503, "workspace not available");
    assert_eq!((&away.body["status"], away.header("retry-after")), (&json!("offline"), "10"));
    platform.post(&key, &format!("/workspaces/{}/a2a", id(9)), message).await.is(404, "workspace not found");
}

#[tokio::test]
async fn notices_and_activities_are_told_and_not_kept() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    let mut watcher = platform.watch("acme");
    let path = |what: &str| format!("/workspaces/{}/{what}", id(1));
    let attached = json!([{ "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 3 }]);
    let notice = json!({ "message": "done", "type": "delegation_result", "attachments": attached });
    assert_eq!(platform.post(&token, &path("notify"), notice).await.ok(), json!({ "status": "sent" }));
    let told = watcher.until("AGENT_MESSAGE").await;
    assert_eq!((&told["message"], &told["workspace_id"]), (&json!("done"), &json!(id(1))));
    assert_eq!((&told["name"], &told["attachments"]), (&json!("agent 000001"), &attached));
    for bad in [json!({}), json!({ "message": "" }), json!({ "message": null })] {
        platform.post(&token, &path("notify"), bad).await.is(400, "message is required");
    }
    let many = json!({ "message": "m", "attachments": vec![json!({ "uri": "u", "name": "n" }); 100] });
    assert_eq!(platform.post(&token, &path("notify"), many).await.status, 400);
    assert_eq!(
        platform.post(&token, &path("notify"), json!({ "message": "x".repeat(20_000) })).await.status,
        400
    );

    let activity = json!({ "activity_type": "tool", "source_id": id(1), "summary": "looked" });
    assert_eq!(
        platform.post(&token, &path("activity"), activity.clone()).await.ok(),
        json!({ "status": "logged" })
    );
    assert_eq!(watcher.until("ACTIVITY_LOGGED").await, activity);
    platform.post(&token, &path("activity"), json!({})).await.is(400, "activity_type is required");
    let foreign = json!({ "activity_type": "tool", "source_id": id(2) });
    assert_eq!(platform.post(&token, &path("activity"), foreign).await.status, 403);

    let card = json!({ "workspace_id": id(1), "agent_card": { "name": "new", "skills": ["a"] } });
    platform.post(&token, "/registry/update-card", card).await.ok();
    assert_eq!(watcher.until("AGENT_CARD_UPDATED").await["agent_card"]["skills"], json!(["a"]));
    let kept = platform.get(&key, "/events").await.ok();
    let kinds: Vec<_> =
        kept.as_array().unwrap().iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["AGENT_CARD_UPDATED", "WORKSPACE_ONLINE"]);
}

/// Reads frames of a stream until one has a word in it.
async fn read_until(body: &mut Body, word: &str) -> String {
    let mut text = String::new();
    let wait = async {
        while !text.contains(word) {
            let Some(frame) = body.frame().await else { return };
            text.push_str(&String::from_utf8_lossy(&frame.unwrap().into_data().unwrap()));
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(1), wait).await;
    assert!(waited.is_ok(), "no {word} in {text}");
    text
}

#[tokio::test]
async fn one_workspace_can_be_watched_as_a_stream_that_ends_with_the_server() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let (one, two) = (platform.join(&key, &id(1), NOWHERE).await, platform.join(&key, &id(2), NOWHERE).await);
    let request = Request::get(format!("/workspaces/{}/events/stream", id(1)));
    let request = request.header("authorization", format!("Bearer {one}")).body(Body::empty()).unwrap();
    let response = platform.http.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    assert_eq!(read_until(&mut body, "ping").await, ": ping\n\n");
    platform.beat(&two, &id(2), json!({ "current_task": "not this" })).await.ok();
    platform.beat(&one, &id(1), json!({ "current_task": "this" })).await.ok();
    let text = read_until(&mut body, "\n\n").await;
    let event: Value = serde_json::from_str(text.strip_prefix("data: ").unwrap().trim()).unwrap();
    assert_eq!((&event["type"], &event["data"]["current_task"]), (&json!("TASK_UPDATED"), &json!("this")));
    assert!(event["timestamp"].is_i64());
    platform.engine.drain(Duration::from_secs(5)).await;
    let end = tokio::time::timeout(Duration::from_secs(10), body.frame()).await.unwrap();
    assert!(end.is_none(), "it ends with the server");
}
