//! Approving what one has asked for oneself, by asking and answering in two different ways.

use crate::http::molecule::platform::{NOWHERE, Platform, Setup, id};
use crate::http::support::{Api, USER};
use reveille_bus::{Bus, Message, MessageOrigin, MessageSender};
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::State;
use reveille_engine::Settings;
use reveille_test_kit::{create_key, job_packet, wait_for_state};
use reveille_wire::subject;
use serde_json::{Value, json};

fn asks() -> Value {
    json!({"rules": [{"id": "ask", "decision": "require_approval"}]})
}

fn open() -> Settings {
    Settings { open_tenant: Some(TenantId::known("default")), ..Settings::default() }
}

const DENIED: (u16, Option<&str>) = (403, Some("self_approval_denied"));

/// What somebody with this key, or none, is told who approves.
async fn approve(http: &reveille_test_kit::TestHttp, key: &str, job: &str) -> (u16, Option<String>) {
    let header = [("x-api-key", key)];
    let headers = if key.is_empty() { &[] } else { &header[..] };
    let path = format!("/api/v1/approvals/{job}/approve");
    let (status, reply) = http.send("POST", &path, headers, "{}").await.status_and_json();
    (status, reply["code"].as_str().map(str::to_owned))
}

/// Workspace 1 gives a task to workspace 2; the job that waits.
async fn delegated(platform: &Platform, bearer: &str) -> String {
    let body = json!({ "target_id": id(2), "task": "pay the bill" });
    let taken = platform.post(bearer, &format!("/workspaces/{}/delegate", id(1)), body).await.ok();
    taken["delegation_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_key_delegates_in_a_workspaces_name_and_approves_it_itself() {
    let mut setup = Setup::new();
    setup.policy = asks();
    let platform = setup.start().await;
    let ann = create_key(&platform.engine, "ann", "acme", USER).await;
    let anns_other = create_key(&platform.engine, "ann", "acme", USER).await;
    let bob = create_key(&platform.engine, "bob", "acme", USER).await;
    let token = platform.join(&ann, &id(1), NOWHERE).await;
    platform.join(&ann, &id(2), NOWHERE).await;
    let job = delegated(&platform, &ann).await;
    for key in [&ann, &anns_other] {
        let (status, code) = approve(&platform.http, key, &job).await;
        assert_eq!((status, code.as_deref()), DENIED);
    }
    let stored = platform.engine.jobs().job(&JobId::known(job.as_str())).await.unwrap().unwrap();
    assert_eq!(stored.request.actor.principal_id, id(1), "the workspace is still who acts");
    assert_eq!(approve(&platform.http, &bob, &job).await.0, 200);
    // What the workspace gives by itself is the workspace's, and anybody with a key may answer.
    let job = delegated(&platform, &token).await;
    assert_eq!(approve(&platform.http, &ann, &job).await.0, 200);
}

#[tokio::test]
async fn whoever_sends_a_job_through_the_open_door_approves_it_over_http_without_a_key() {
    let api = Api::start_with(asks(), open()).await;
    let sender = MessageSender { tenant: TenantId::known("default"), key: None };
    let origin = MessageOrigin::Worker(sender);
    let message = Message { origin, ..Message::new(subject::JOB_SUBMIT, job_packet("sent", "job.pay")) };
    api.bus.publish(message).await.unwrap();
    wait_for_state(&api.engine, "sent", State::ApprovalRequired).await;
    let (status, code) = approve(&api, "", "sent").await;
    assert_eq!((status, code.as_deref()), DENIED);
    let ann = api.named_key("ann", "default", USER).await;
    assert_eq!(approve(&api, &ann, "sent").await.0, 200);
}

#[tokio::test]
async fn a_submitter_puts_its_key_away_and_approves_as_nobody() {
    let api = Api::start_with(asks(), open()).await;
    let ann = api.named_key("ann", "default", USER).await;
    let (_, reply) = api.submit(&ann, json!({"topic": "job.pay", "context": {}})).await;
    let job = reply["job_id"].as_str().unwrap();
    let (status, code) = approve(&api, "", job).await;
    assert_eq!((status, code.as_deref()), DENIED);
}

#[tokio::test]
async fn nobody_in_particular_delegates_with_a_token_and_approves_without() {
    let mut setup = Setup::new();
    (setup.policy, setup.settings) = (asks(), open());
    let platform = setup.start().await;
    let token = platform.join("", &id(1), NOWHERE).await;
    platform.join("", &id(2), NOWHERE).await;
    let job = delegated(&platform, &token).await;
    let (status, code) = approve(&platform.http, "", &job).await;
    assert_eq!((status, code.as_deref()), DENIED);
}
