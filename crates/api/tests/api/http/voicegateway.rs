//! The VoiceGateway contract: what is accepted and what is not, batches, and keys.

mod rules;

use super::support::USER;
use super::watched::{self, payload};
use reveille_core::id::TenantId;
use reveille_engine::Settings;
use reveille_roster::Scope;
use reveille_test_kit::NOON;
use serde_json::{Value, json};

const AGENT: &[Scope] = &[Scope::Ingest, Scope::Read];

#[tokio::test(start_paused = true)]
async fn a_beat_is_accepted_as_voicegateway_accepts_it() {
    let api = watched::start().await;
    let key = api.key("acme", &[Scope::Ingest]).await;
    let path = "/v1/agents/heartbeat";
    let body = payload("w1", json!({})).to_string();
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let header = format!("{scheme} {key}");
        let sent = [("authorization", header.as_str()), ("content-type", "text/plain")];
        let reply = api.send("POST", path, &sent, body.clone()).await;
        assert_eq!(reply.status_and_json(), (202, json!({"status": "accepted", "next_beat_s": 15})));
        assert_eq!(reply.header("content-type"), "application/json");
    }
    let newer = payload(
        "w2",
        json!({
            "dispatch_name": null, "memory_rss_bytes": 250, "memory_total_bytes": 1000, "cpu_pct": null, "what": [1],
        }),
    );
    assert_eq!(api.beat(&key, &newer).await, 202);
    assert_eq!(api.beat(&key, &json!({"agent_id": "w3", "agent_name": "bare"})).await, 202);
    let (status, reply) = api.call(&key, "GET", path, "").await;
    assert_eq!((status, reply["code"].as_str()), (405, Some("method_not_allowed")));
    for scopes in [&[Scope::Write][..], &[Scope::Admin]] {
        let key = api.key("acme", scopes).await;
        assert_eq!(api.beat(&key, &payload("w1", json!({}))).await, 202);
    }

    let row = api.agents(&key).await.into_iter().find(|row| row["agent_id"] == "w2").unwrap();
    assert_eq!(
        row,
        json!({
            "agent_id": "w2", "agent_name": "myvoiceagents", "project": "mahimai-realty", "region": "iad",
            "version": "0.13.0", "host": "worker-host-1", "active_sessions": 0, "status": "idle",
            "started_at": 1_783_200_000.0, "last_seen": NOON.0 as f64 / 1000.0,
            "memory_rss_bytes": 250, "memory_total_bytes": 1000, "memory_pct": 25.0,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn who_may_not_is_told_in_voicegateways_words() {
    let api = watched::start().await;
    let reader = api.key("acme", &[Scope::Read]).await;
    let body = payload("w1", json!({})).to_string();
    let check = async |headers: &[(&str, &str)], status: u16, detail: &str| {
        let sent = api.send("POST", "/v1/agents/heartbeat", headers, body.clone()).await;
        assert_eq!(sent.status_and_json(), (status, json!({"detail": detail})));
    };
    check(&[], 401, "Authentication required").await;
    check(&[("authorization", "Basic dTpw")], 401, "Authentication required").await;
    check(&[("authorization", "Bearer vk_wrong")], 401, "Invalid virtual key").await;
    check(&[("authorization", "Bearer wrong")], 401, "Invalid token").await;
    check(&[("x-api-key", &reader)], 403, "Token missing required scope: ingest").await;
    assert!(api.agents(&reader).await.is_empty(), "nothing was stored");

    let open = Settings { open_tenant: Some(TenantId::known("local")), ..Settings::default() };
    let api = watched::start_with(open).await;
    let sent = api.send("POST", "/v1/agents/heartbeat", &[], body).await;
    assert_eq!(sent.status, 202, "whoever needs no key gets a tenant of its own");
    let local = api.key("local", AGENT).await;
    assert_eq!(api.agents(&local).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_bad_body_is_422_and_names_the_field() {
    let api = watched::start().await;
    let key = api.key("acme", AGENT).await;
    let with = |changes: Value| payload("w1", changes).to_string();
    let long = "x".repeat(257);
    let table = [
        (String::new(), "body"),
        ("not json".to_owned(), "body"),
        ("[1]".to_owned(), "body"),
        ("\"w1\"".to_owned(), "body"),
        (r#"{"agent_id":"w1","agent_name":"a"} x"#.to_owned(), "body"),
        (r#"{"agent_id":"w1""#.to_owned(), "body"),
        (r#"{"agent_name":"a"}"#.to_owned(), "agent_id"),
        (r#"{"agent_id":"w1"}"#.to_owned(), "agent_name"),
        (with(json!({"agent_id": ""})), "agent_id"),
        (with(json!({"agent_id": 7})), "agent_id"),
        (with(json!({"agent_id": {"$ne": 1}})), "agent_id"),
        (with(json!({"agent_id": null})), "agent_id"),
        (with(json!({"agent_id": "a b"})), "agent_id"),
        (with(json!({"agent_name": "x".repeat(60_000)})), "agent_name"),
        (with(json!({"agent_name": "a\u{0}b"})), "agent_name"),
        (with(json!({"active_sessions": null})), "active_sessions"),
        (with(json!({"active_sessions": "many"})), "active_sessions"),
        (with(json!({"active_sessions": -5})), "active_sessions"),
        (with(json!({"active_sessions": 1.5})), "active_sessions"),
        (with(json!({"active_sessions": 9_000_000_000_u64})), "active_sessions"),
        (with(json!({"active_sessions": 1_000_001})), "active_sessions"),
        (with(json!({"status": null})), "status"),
        (with(json!({"project": null})), "project"),
        (with(json!({"host": long})), "host"),
        (with(json!({"region": 3})), "region"),
        (with(json!({"started_at": "yesterday"})), "started_at"),
        (with(json!({"started_at": -1})), "started_at"),
        (with(json!({"memory_rss_bytes": -1})), "memory_rss_bytes"),
        (with(json!({"cpu_pct": 101})), "cpu_pct"),
    ];
    for (body, field) in table {
        let (status, reply) = api.call(&key, "POST", "/v1/agents/heartbeat", &body).await;
        let shown = &body[..body.len().min(200)];
        assert_eq!((status, reply["field"].as_str()), (422, Some(field)), "{shown} {reply}");
        assert!(reply["detail"].as_str().unwrap().starts_with(&format!("{field}: ")), "{reply}");
    }
    let huge = "x".repeat(100_000);
    assert_eq!(api.call(&key, "POST", "/v1/agents/heartbeat", &huge).await.0, 413);
    assert!(api.agents(&key).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_batch_takes_the_good_and_names_the_bad() {
    let api = watched::start().await;
    let (key, reader) = (api.key("acme", AGENT).await, api.key("acme", &[Scope::Read]).await);
    let path = "/api/v1/presence";
    let send = async |beats: Value| {
        api.call(&key, "POST", path, &json!({"beats": beats, "more": 1}).to_string()).await
    };
    let good = |number: usize| payload(&format!("w{number}"), json!({}));
    let all: Vec<Value> = (0..1_000).map(good).collect();
    assert_eq!(send(json!(all)).await, (202, json!({"accepted": 1_000, "rejected": [], "next_beat_s": 15})));
    assert_eq!(api.agents(&key).await.len(), 1_000);
    // One that is beyond a limit, found in the fast pass.
    let (status, reply) = send(json!([good(1), payload("", json!({})), good(2)])).await;
    assert_eq!((status, reply["accepted"].as_u64()), (202, Some(2)));
    assert_eq!(reply["rejected"], json!([{"index": 1, "field": "agent_id", "error": "is empty"}]));
    // And those that cannot be read at all, among them.
    let mixed =
        json!([good(1), payload("x", json!({"status": "on fire"})), 7, payload("", json!({})), good(2)]);
    let (status, reply) = send(mixed).await;
    assert_eq!((status, reply["accepted"].as_u64()), (202, Some(2)));
    let rejected: Vec<_> =
        reply["rejected"].as_array().unwrap().iter().map(|r| (&r["index"], &r["field"])).collect();
    let expected = [(json!(1), json!("status")), (json!(2), json!("body")), (json!(3), json!("agent_id"))];
    assert_eq!(rejected, expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>());

    let many: Vec<Value> = (0..1_001).map(good).collect();
    assert_eq!(send(json!(many)).await.0, 400);
    for body in ["", "{}", "[]", r#"{"beats": 7}"#] {
        assert_eq!(api.call(&key, "POST", path, body).await.0, 400, "{body}");
    }
    assert_eq!(api.call(&reader, "POST", path, r#"{"beats": []}"#).await.0, 403);
    assert_eq!(api.call("", "POST", path, r#"{"beats": []}"#).await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn keys_are_made_by_operators_only_and_belong_to_a_tenant() {
    let open = Settings { open_tenant: Some(TenantId::known("local")), ..Settings::default() };
    let api = watched::start_with(open).await;
    let (user, operator) = (api.key("acme", USER).await, api.key("ops", &[Scope::Admin]).await);
    let path = "/v1/api-keys";
    for method in ["GET", "POST"] {
        let body = r#"{"name": "x", "scopes": ["ingest"]}"#;
        for key in [&[][..], &[("x-api-key", user.as_str())]] {
            let sent = api.send(method, path, key, body).await;
            assert_eq!(
                sent.status_and_json(),
                (403, json!({"detail": "Token missing required scope: admin"}))
            );
        }
    }
    let mint = async |body: Value| api.call(&operator, "POST", path, &body.to_string()).await;
    let (status, made) =
        mint(json!({"name": "agents", "scopes": ["ingest", "mcp:read"], "tenant_id": "acme"})).await;
    assert_eq!(status, 201);
    let (secret, key) = (made["plaintext"].as_str().unwrap(), &made["key"]);
    assert!(secret.starts_with("vk_") && secret.starts_with(key["key_prefix"].as_str().unwrap()));
    assert_eq!((&key["tenant_id"], &key["scopes"]), (&json!("acme"), &json!(["ingest", "read"])));
    assert_eq!((&key["issued_by"], &key["revoked_at"]), (&json!("ops"), &Value::Null));
    assert_eq!(api.beat(secret, &payload("w1", json!({}))).await, 202);
    assert_eq!(api.agents(&user).await.len(), 1, "the beat went to the key's tenant");
    let own = mint(json!({"name": "own", "scopes": ["read"], "tenant_id": null})).await;
    assert_eq!(own.1["key"]["tenant_id"], "ops", "never null");

    for (bad, field) in [
        (json!({"name": "x", "scopes": ["*"]}), "scopes"),
        (json!({"name": "x", "scopes": []}), "scopes"),
        (json!({"name": "", "scopes": ["read"]}), "name"),
        (json!({"name": "x".repeat(129), "scopes": ["read"]}), "name"),
        (json!({"name": 7}), "name"),
        (json!({"name": "x", "tenant_id": "a b"}), "tenant_id"),
        (json!([]), "body"),
    ] {
        let (status, reply) = mint(bad).await;
        assert_eq!((status, reply["field"].as_str()), (422, Some(field)), "{reply}");
    }

    let (_, listed) = api.call(&operator, "GET", path, "").await;
    assert_eq!(listed["total"].as_u64(), Some(listed["items"].as_array().unwrap().len() as u64));
    assert!(!listed.to_string().contains(secret), "a secret is shown once");
    let one = format!("{path}/{}", key["id"].as_str().unwrap());
    assert_eq!(api.call(&operator, "GET", &one, "").await.1["name"], "agents");
    assert_eq!(api.call(&operator, "DELETE", &one, "").await.0, 204);
    assert!(api.call(&operator, "GET", &one, "").await.1["revoked_at"].is_f64());
    assert_eq!(api.beat(secret, &payload("w1", json!({}))).await, 401);
    for method in ["GET", "DELETE"] {
        assert_eq!(api.call(&operator, method, "/v1/api-keys/nope", "").await.0, 404);
    }
}
