//! Jobs, workers and keys: who may see what, what bad input is told, and that lists page right.

use super::support::{Api, USER};
use reveille_api::jobs::LOOK_THROUGH;
use reveille_core::fleet::Beat;
use reveille_core::id::{TenantId, WorkerId};
use reveille_core::life;
use reveille_core::placement::routing::Routing;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::Rules;
use reveille_roster::Scope;
use reveille_store::{JobStore, Step};
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::test]
async fn another_tenants_job_does_not_exist() {
    let api = Api::open().await;
    let (ann, bob) = (api.key("acme", USER).await, api.key("zeta", USER).await);
    let operator = api.key("default", &[Scope::Admin]).await;
    let (status, reply) = api.submit(&ann, json!({"topic": "job.echo", "context": {}})).await;
    assert_eq!(status, 200);
    let path = format!("/api/v1/jobs/{}", reply["job_id"].as_str().unwrap());
    for (key, expected) in [(&ann, 200), (&bob, 404), (&operator, 200)] {
        assert_eq!(api.call(key, "GET", &path, "").await.0, expected);
        assert_eq!(api.call(key, "GET", &format!("{path}/explain"), "").await.0, expected);
    }
    assert_eq!(api.call(&bob, "POST", &format!("{path}/cancel"), "").await.0, 404);
    let listed = |reply: &Value| reply["items"].as_array().unwrap().len();
    assert_eq!(listed(&api.call(&ann, "GET", "/api/v1/jobs", "").await.1), 1);
    assert_eq!(listed(&api.call(&bob, "GET", "/api/v1/jobs", "").await.1), 0);
    assert_eq!(api.call(&bob, "GET", "/api/v1/jobs?tenant=acme", "").await.0, 403);
    assert_eq!(listed(&api.call(&operator, "GET", "/api/v1/jobs?tenant=acme", "").await.1), 1);
}

#[tokio::test]
async fn an_idempotency_key_gives_the_same_job_within_its_tenant_only() {
    let api = Api::open().await;
    let (ann, bob) = (api.key("acme", USER).await, api.key("zeta", USER).await);
    let body = json!({"topic": "job.echo", "context": {}, "idempotency_key": "once"});
    let (first, second) = (api.submit(&ann, body.clone()).await, api.submit(&ann, body.clone()).await);
    assert_eq!(first, second);
    let other = api.submit(&bob, body).await;
    assert_eq!(other.0, 200);
    assert_ne!(first.1["job_id"], other.1["job_id"]);
}

#[tokio::test]
async fn a_wrong_expired_revoked_or_narrow_key_opens_nothing() {
    let api = Api::open().await;
    let reader = api.key("acme", &[Scope::Read]).await;
    let operator = api.key("default", &[Scope::Admin]).await;
    for key in ["", "vk_wrong", &"x".repeat(10_000)] {
        let (status, reply) = api.submit(key, json!({"context": {}})).await;
        assert_eq!((status, reply["code"].as_str()), (401, Some("unauthorized")));
    }
    let (status, reply) = api.submit(&reader, json!({"context": {}})).await;
    assert_eq!((status, reply["reason"].as_str()), (403, Some("key_scope_insufficient")));
    assert_eq!(api.call(&reader, "GET", "/api/v1/auth/keys", "").await.0, 403);

    let made = api.call(&operator, "POST", "/api/v1/auth/keys", r#"{"name": "ci", "tenant": "acme"}"#).await;
    assert_eq!(made.0, 201);
    let (id, secret) = (made.1["key"]["id"].as_str().unwrap(), made.1["secret"].as_str().unwrap());
    assert_eq!(api.submit(secret, json!({"context": {}})).await.0, 200);
    assert_eq!(api.call(&operator, "DELETE", &format!("/api/v1/auth/keys/{id}"), "").await.0, 204);
    assert_eq!(api.submit(secret, json!({"context": {}})).await.0, 401);
    assert_eq!(api.call(&operator, "DELETE", "/api/v1/auth/keys/nope", "").await.0, 404);
    let expired = api
        .call(
            &operator,
            "POST",
            "/api/v1/auth/keys",
            r#"{"name": "old", "expiresAt": "2001-01-01T00:00:00Z"}"#,
        )
        .await;
    assert_eq!(api.submit(expired.1["secret"].as_str().unwrap(), json!({"context": {}})).await.0, 401);
    let listed = api.call(&operator, "GET", "/api/v1/auth/keys", "").await.1.to_string();
    assert!(!listed.contains(secret), "a secret is shown once");
}

#[tokio::test]
async fn policy_speaks_in_the_references_answers() {
    let api = Api::start(json!({"rules": [
        {"id": "no", "match": {"topics": ["job.no"]}, "decision": "deny", "reason": "never"},
        {"id": "ask", "match": {"topics": ["job.ask"]}, "decision": "require_approval", "reason": "ask first"},
        {"id": "slow", "match": {"topics": ["job.slow"]}, "decision": "throttle", "reason": "later"},
    ]}))
    .await;
    let key = api.key("acme", USER).await;
    let (status, reply) = api.submit(&key, json!({"topic": "job.no", "context": {}})).await;
    assert_eq!(
        (status, reply["error"].as_str(), reply["code"].as_str()),
        (403, Some("never"), Some("safety_denied"))
    );
    let job =
        api.call(&key, "GET", &format!("/api/v1/jobs/{}", reply["job_id"].as_str().unwrap()), "").await.1;
    assert_eq!((job["state"].as_str(), job["safety_rule_id"].as_str()), (Some("DENIED"), Some("no")));
    let (status, reply) = api.submit(&key, json!({"topic": "job.ask", "context": {}})).await;
    assert_eq!(
        (status, reply["status"].as_str(), reply["reason"].as_str()),
        (200, Some("approval_required"), Some("ask first"))
    );
    let (status, reply) = api.submit(&key, json!({"topic": "job.slow", "context": {}})).await;
    assert_eq!((status, reply["code"].as_str()), (429, Some("throttled")));
    let (status, reply) = api.submit(&key, json!({"topic": "job.other", "context": {}})).await;
    assert_eq!(
        (status, reply["code"].as_str()),
        (403, Some("safety_denied")),
        "what no rule allows is denied: {reply}"
    );
    assert_eq!(
        api.call(&key, "GET", "/api/v1/jobs", "").await.1["items"].as_array().unwrap().len(),
        3,
        "a throttled job is not stored"
    );
}

#[tokio::test]
async fn workers_are_paged_by_name() {
    let api = Api::open().await;
    let key = api.key("default", USER).await;
    for number in 0..25 {
        api.engine.fleet().beat(
            &WorkerId::known(format!("w-{:02}", number * 7 % 25)),
            &TenantId::known("default"),
            &Beat::default(),
        );
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.call(&key, "GET", &format!("/api/v1/workers?limit=10&cursor={cursor}"), "").await.1;
        seen.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|worker| worker["worker_id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(seen, (0..25).map(|number| format!("w-{number:02}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_topic_that_no_pool_takes_is_refused_by_name() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    let rules = (*api.engine.rules()).clone();
    let routing = Arc::new(Routing::mapped([("job.echo", vec!["echo"])], [("echo", vec![])]));
    api.engine.use_rules(Rules { routing, ..rules });
    assert_eq!(api.submit(&key, json!({"topic": "job.echo", "context": {}})).await.0, 200);
    let (status, reply) = api.submit(&key, json!({"topic": "job.other", "context": {}})).await;
    assert_eq!((status, reply["code"].as_str()), (400, Some("unknown_topic")));
    assert!(reply["error"].as_str().unwrap().contains("job.other"));
}

#[tokio::test]
async fn pages_neither_skip_nor_repeat_while_jobs_come_in() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    let mut made = Vec::new();
    for number in 0..25 {
        let topic = if number % 2 == 0 { "job.even" } else { "job.odd" };
        made.push(
            api.submit(&key, json!({"topic": topic, "context": {}})).await.1["job_id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api
            .call(&key, "GET", &format!("/api/v1/jobs?topic=job.even&limit=4&cursor={cursor}"), "")
            .await
            .1;
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()),
        );
        api.submit(&key, json!({"topic": "job.even", "context": {}})).await;
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    let expected: Vec<String> = made.into_iter().step_by(2).rev().collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_page_looks_through_so_many_jobs_and_the_next_goes_on_from_there() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    let insert = async |name: String, topic: &str| {
        let request = Request { tenant: TenantId::known("acme"), ..Request::plain(&name, topic) };
        api.world.store.commit(Step::insert(life::submit(request, Millis(1)))).await.unwrap();
    };
    insert("rare".to_owned(), "job.rare").await;
    for number in 0..LOOK_THROUGH {
        insert(format!("plain-{number}"), "job.plain").await;
    }
    let (status, first) = api.call(&key, "GET", "/api/v1/jobs?topic=job.rare", "").await;
    assert_eq!((status, &first["items"]), (200, &json!([])), "it is not among the newest");
    let next = first["next_cursor"].as_str().expect("the looking goes on");
    let path = format!("/api/v1/jobs?topic=job.rare&cursor={next}");
    let second = api.call(&key, "GET", &path, "").await.1;
    assert_eq!((&second["items"][0]["id"], &second["next_cursor"]), (&json!("rare"), &Value::Null));
}

#[tokio::test]
async fn bad_input_is_told_what_is_wrong() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    for (method, path, body, status, words) in [
        ("POST", "/api/v1/jobs", "{", 400, "JSON"),
        ("POST", "/api/v1/jobs", "{} {}", 400, "something follows"),
        ("POST", "/api/v1/jobs", r#"{"labels": "no"}"#, 400, "labels"),
        ("POST", "/api/v1/jobs", r#"{"context": {}, "deadline_ms": -1}"#, 400, "deadline_ms"),
        ("GET", "/api/v1/jobs?limit=x", "", 400, "limit"),
        ("GET", "/api/v1/jobs?cursor=x", "", 400, "cursor"),
        ("GET", "/api/v1/jobs?state=GONE", "", 400, "state"),
        ("GET", "/api/v1/jobs/none", "", 404, "no such job"),
        ("GET", "/api/v1/workers/none", "", 404, "no such worker"),
        ("DELETE", "/api/v1/jobs", "", 405, "method"),
        ("GET", "/api/v2/jobs", "", 404, "nothing here"),
    ] {
        let (got, reply) = api.call(&key, method, path, body).await;
        let error = reply["error"].as_str().unwrap_or_default();
        assert!(got == status && error.contains(words), "{method} {path} {body}: {got} {error}");
        assert_eq!(reply["status"].as_u64(), Some(u64::from(status)));
    }
    let long = format!(r#"{{"context": "{}"}}"#, "x".repeat(2 * 1024 * 1024));
    assert_eq!(api.call(&key, "POST", "/api/v1/jobs", &long).await.0, 413);
}

#[tokio::test]
async fn a_waiting_job_says_why_and_a_cancelled_one_stays_cancelled() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    let id = api.submit(&key, json!({"topic": "job.nobody", "context": {"x": 1}})).await.1["job_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/v1/jobs/{id}");
    let why = api.call(&key, "GET", &format!("{path}/explain"), "").await.1;
    assert_eq!((why["code"].as_str(), why["state"].as_str()), (Some("no_workers"), Some("SCHEDULED")));
    assert!(why["unblock"].as_str().unwrap().contains("job.nobody"));
    let job = api.call(&key, "GET", &format!("{path}?wait=10ms"), "").await.1;
    assert_eq!((job["state"].as_str(), &job["context"]), (Some("SCHEDULED"), &json!({"x": 1})));
    assert_eq!(api.call(&key, "POST", &format!("{path}/cancel"), "").await.1["state"], "CANCELLED");
    let again = api.call(&key, "POST", &format!("{path}/cancel"), "").await;
    assert_eq!((again.0, again.1["reason"].as_str()), (200, Some("the job has already ended")));
}
