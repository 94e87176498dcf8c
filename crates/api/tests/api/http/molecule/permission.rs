//! Who may give what to whom, and how often.

use super::agent::{Agent, Manner};
use super::delegating::{give, giver, listed};
use super::platform::{Platform, Setup, id};
use serde_json::{Value, json};

#[tokio::test]
async fn an_idempotency_key_gives_once() {
    let platform = Platform::open().await;
    let (key, token) = giver(&platform).await;
    let agent = Agent::start(Manner::Answers("once")).await;
    platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    let keyed = json!({ "idempotency_key": "k" });
    let (one, other) =
        tokio::join!(give(&platform, &token, keyed.clone()), give(&platform, &token, keyed.clone()));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 202]);
    assert_eq!(one.body["delegation_id"], other.body["delegation_id"]);
    watcher.until("DELEGATION_COMPLETE").await;
    let again = give(&platform, &token, keyed).await;
    assert_eq!((again.status, &again.body["status"]), (200, &json!("completed")));
    assert_eq!((&again.body["idempotent_hit"], &again.body["target_id"]), (&json!(true), &json!(id(2))));
    assert_eq!((listed(&platform, &token).await.len(), agent.got().len()), (1, 1));
}

#[tokio::test]
async fn who_may_not_give_to_whom_is_told_so() {
    let platform = Platform::open().await;
    let (key, token) = giver(&platform).await;
    let made = json!({ "name": "child", "parent_id": id(1) });
    let child = platform.post(&key, "/workspaces", made).await.ok()["id"].as_str().unwrap().to_owned();
    let made = json!({ "name": "stranger's child", "parent_id": platform.post(&key, "/workspaces",
        json!({ "name": "stranger" })).await.ok()["id"] });
    let nephew = platform.post(&key, "/workspaces", made).await.ok()["id"].as_str().unwrap().to_owned();
    for (body, status, error) in [
        (json!({ "target_id": id(1) }), 400, "self-delegation not permitted"),
        (json!({ "target_id": nephew }), 403, "not authorized to reach this workspace"),
        (json!({ "target_id": id(44) }), 404, "workspace not found"),
        (json!({ "target_id": "x" }), 400, "target_id must be a valid UUID"),
        (json!({ "target_id": null }), 400, "invalid request body"),
        (json!({ "target_id": "" }), 400, "invalid delegation request"),
        (json!({ "target_id": child, "task": "" }), 400, "invalid delegation request"),
    ] {
        give(&platform, &token, body).await.is(status, error);
    }
    assert_eq!(give(&platform, &token, json!({ "target_id": child })).await.status, 202);
    let access = |target: &str| json!({ "caller_id": id(1), "target_id": target });
    for (target, allowed) in [(&child, true), (&nephew, false), (&id(1), true), (&id(44), false)] {
        let answer = platform.post(&token, "/registry/check-access", access(target)).await.ok();
        assert_eq!(answer, json!({ "allowed": allowed }), "{target}");
    }
    let found = format!("/registry/discover/{nephew}");
    let refused = platform.send_as(Some(&id(1)), &token, "GET", &found, Value::Null).await;
    refused.is(403, "not authorized to discover this workspace");
    platform.get(&token, &found).await.is(400, "X-Workspace-ID header is required");
    let peers = platform.get(&token, &format!("/registry/{}/peers?q=CHI", id(1))).await.ok();
    assert_eq!(peers.as_array().unwrap().len(), 1);
    assert_eq!((&peers[0]["id"], &peers[0]["parent_id"]), (&json!(child), &json!(id(1))));
}

#[tokio::test]
async fn what_policy_denies_fails() {
    let mut setup = Setup::new();
    setup.policy = json!({"rules": [
        {"id": "no", "match": {"topics": ["job.delegate"]}, "decision": "deny", "reason": "not on Sundays"}]});
    let platform = setup.start().await;
    let (key, token) = giver(&platform).await;
    let agent = Agent::start(Manner::Answers("never")).await;
    platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    let answer = give(&platform, &token, json!({ "idempotency_key": "k" })).await;
    assert_eq!((answer.status, &answer.body["warning"]), (202, &json!("not on Sundays")));
    assert_eq!(watcher.until("DELEGATION_FAILED").await["error"], "not on Sundays");
    assert_eq!(watcher.rungs(), ["pending", "failed"]);
    assert_eq!(give(&platform, &token, json!({ "idempotency_key": "k" })).await.body["status"], "failed");
    let list = listed(&platform, &token).await;
    assert_eq!((list.len(), &list[0]["error"]), (1, &json!("not on Sundays")));
    assert!(agent.got().is_empty());
}
