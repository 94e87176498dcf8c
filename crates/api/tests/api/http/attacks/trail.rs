//! Saying that one is somebody else.

use crate::http::support::{Api, USER};
use reveille_bus::{Bus, Message, MessageOrigin, MessageSender};
use reveille_core::id::TenantId;
use reveille_core::job::State;
use reveille_test_kit::{packet, wait_for_state};
use reveille_wire::cap::JobRequest;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::subject;
use serde_json::{Value, json};

async fn api() -> Api {
    Api::start(json!({"rules": [{"id": "ask", "decision": "require_approval"}]})).await
}

/// The newest entry about a job.
async fn entry(api: &Api, key: &str, job: &str) -> Value {
    let path = format!("/api/v1/audit/events?job_id={job}&event_type=safety.decision");
    let (status, page) = api.call(key, "GET", &path, "").await;
    assert_eq!(status, 200, "{page}");
    page["items"][0].clone()
}

#[tokio::test]
async fn a_submitter_claims_anothers_name_to_stand_in_the_trail_and_lock_them_out() {
    let api = api().await;
    let ann = api.named_key("ann", "acme", USER).await;
    let bob = api.named_key("bob", "acme", USER).await;
    let body = json!({"topic": "job.pay", "context": {}, "principal_id": "bob"});
    let (_, reply) = api.submit(&ann, body).await;
    let job = reply["job_id"].as_str().unwrap();
    let told = entry(&api, &bob, job).await;
    assert_eq!(told["identity"], "ann", "{told}");
    assert_eq!(told["extra"]["actor.principal_id"], "bob", "the claim is kept as one");
    let (_, shown) = api.call(&ann, "GET", &format!("/api/v1/jobs/{job}"), "").await;
    assert_eq!(shown["principal"], "bob");
    let path = format!("/api/v1/approvals/{job}/approve");
    assert_eq!(api.call(&ann, "POST", &path, "").await.0, 403, "it is still ann's own");
    assert_eq!(api.call(&bob, "POST", &path, "").await.0, 200, "bob has asked for nothing");
}

#[tokio::test]
async fn a_packet_claims_a_name_for_the_trail() {
    let api = api().await;
    let job = JobRequest {
        job_id: "sent".into(),
        topic: "job.pay".into(),
        principal_id: "bob".into(),
        ..JobRequest::default()
    };
    let origin = MessageOrigin::Worker(MessageSender { tenant: TenantId::known("default"), key: None });
    let packet = packet("client", Payload::JobRequest(job));
    api.bus.publish(Message { origin, ..Message::new(subject::JOB_SUBMIT, packet) }).await.unwrap();
    wait_for_state(&api.engine, "sent", State::ApprovalRequired).await;
    let bob = api.named_key("bob", "default", USER).await;
    let told = entry(&api, &bob, "sent").await;
    assert_eq!(
        (&told["identity"], &told["extra"]["actor.principal_id"]),
        (&json!(""), &json!("bob")),
        "{told}"
    );
}

#[tokio::test]
async fn a_revoked_key_leaves_its_name_to_a_second_one_that_approves() {
    let api = api().await;
    let ann = api.named_key("ann", "acme", USER).await;
    let anns_other = api.named_key("ann", "acme", USER).await;
    let body = json!({"topic": "job.pay", "context": {}, "principal_id": "somebody"});
    let (_, reply) = api.submit(&ann, body).await;
    let job = reply["job_id"].as_str().unwrap();
    let key = api.engine.access().authenticate(&ann).unwrap().key.clone();
    assert!(api.engine.access().revoke_key(&key, "root").await.unwrap());
    let path = format!("/api/v1/approvals/{job}/approve");
    assert_eq!(api.call(&anns_other, "POST", &path, "").await.0, 403);
}
