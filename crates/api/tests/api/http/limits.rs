//! Who asks for too much is told so, and when to come back.

use super::support::{Api, USER};
use reveille_core::id::TenantId;
use reveille_core::rate::Rate;
use reveille_engine::{LimitSettings, Settings};
use reveille_roster::Scope;
use serde_json::{Value, json};

async fn api(limits: LimitSettings, open_tenant: Option<&str>) -> Api {
    let open_tenant = open_tenant.map(TenantId::known);
    let settings = Settings { limits, open_tenant, ..Settings::default() };
    Api::start_with(json!({"rules": [{"id": "all", "decision": "allow"}]}), settings).await
}

fn two_calls() -> LimitSettings {
    LimitSettings { calls: Some(Rate::new(1, 2)), ..LimitSettings::default() }
}

/// The status and what `Retry-After` says.
async fn asked(api: &Api, key: Option<&str>, method: &str, path: &str) -> (u16, Option<u64>) {
    let headers: Vec<_> = key.map(|key| ("x-api-key", key)).into_iter().collect();
    let reply = api.send(method, path, &headers, "").await;
    (reply.status, reply.header("retry-after").parse().ok())
}

/// Calls until it is turned away; a slow machine gives some of the calls back.
async fn refused(api: &Api, key: &str, path: &str) -> Value {
    for _ in 0..100 {
        let (status, reply) = api.call(key, "GET", path, "").await;
        if status == 429 {
            return reply;
        }
    }
    panic!("{path} was never refused");
}

#[tokio::test]
async fn a_full_queue_names_the_tenant_its_jobs_and_its_bound() {
    let api = api(LimitSettings { queued_per_tenant: 2, ..LimitSettings::default() }, None).await;
    let (acme, zeta) = (api.key("acme", USER).await, api.key("zeta", USER).await);
    for _ in 0..2 {
        assert_eq!(api.submit(&acme, json!({"prompt": "p", "topic": "job.echo"})).await.0, 200);
    }
    let (status, reply) = api.submit(&acme, json!({"prompt": "p", "topic": "job.echo"})).await;
    assert_eq!((status, &reply["code"]), (429, &json!("queue_full")), "{reply}");
    assert_eq!((&reply["tenant"], &reply["live"], &reply["max"]), (&json!("acme"), &json!(2), &json!(2)));
    assert_eq!(
        api.submit(&zeta, json!({"prompt": "p", "topic": "job.echo"})).await.0,
        200,
        "others have room"
    );
}

#[tokio::test]
async fn a_key_that_calls_too_often_is_told_when_to_come_back() {
    let api = api(two_calls(), None).await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let mut seen = Vec::new();
    for _ in 0..50 {
        seen.push(asked(&api, Some(&ann), "GET", "/api/v1/jobs").await);
    }
    assert_eq!(seen[..2], [(200, None), (200, None)]);
    assert!(seen.contains(&(429, Some(1))), "{seen:?}");
    assert_eq!(asked(&api, Some(&bob), "GET", "/api/v1/jobs").await.0, 200, "each key has its own share");
    assert_eq!(refused(&api, &ann, "/api/v1/workers").await["code"], "rate_limited");
    let detail = refused(&api, &ann, "/v1/agents").await;
    assert!(detail["detail"].is_string(), "in the words of the surface: {detail}");
    for path in ["/healthz", "/metrics"] {
        assert_eq!(asked(&api, Some(&ann), "GET", path).await.0, 200);
    }
    assert_eq!(asked(&api, Some("vk_wrong"), "GET", "/api/v1/jobs").await.0, 401);
}

#[tokio::test]
async fn beats_count_like_any_other_call() {
    let beat = r#"{"agent_id": "a", "agent_name": "a"}"#;
    for (path, body) in [
        ("/v1/agents/heartbeat", beat),
        ("/api/v1/presence", r#"{"beats": []}"#),
        ("/registry/heartbeat", "{}"),
    ] {
        let api = api(two_calls(), None).await;
        let key = api.key("acme", &[Scope::Ingest]).await;
        let mut statuses = Vec::new();
        for _ in 0..50 {
            statuses.push(api.call(&key, "POST", path, body).await.0);
        }
        assert!(statuses[..2].iter().all(|status| *status != 429), "{path}: {statuses:?}");
        assert!(statuses[2..].contains(&429), "{path} ignores the limit: {statuses:?}");
    }
}

#[tokio::test]
async fn those_without_a_key_share_one_bucket() {
    let api = api(two_calls(), Some("everybody")).await;
    let key = api.key("acme", USER).await;
    let mut seen = Vec::new();
    for _ in 0..50 {
        seen.push(asked(&api, None, "GET", "/api/v1/jobs").await.0);
    }
    assert!(seen[..2] == [200, 200] && seen[2..].contains(&429), "{seen:?}");
    assert_eq!(asked(&api, Some(&key), "GET", "/api/v1/jobs").await.0, 200);
}
