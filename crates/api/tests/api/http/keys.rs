//! Keys that are given a new secret.

use super::support::{Api, USER};
use reveille_core::id::KeyId;
use reveille_roster::{Roster, Scope};
use serde_json::{Value, json};

const ADMIN: &[Scope] = &[Scope::Admin];

async fn rotate(api: &Api, root: &str, id: &str, body: Value) -> (u16, Value) {
    api.call(root, "POST", &format!("/api/v1/auth/keys/{id}/rotate"), &body.to_string()).await
}

fn id_of(api: &Api, secret: &str) -> String {
    api.engine.access().authenticate(secret).unwrap().key.to_string()
}

async fn listed(api: &Api, root: &str, id: &str) -> Value {
    let (_, list) = api.call(root, "GET", "/api/v1/auth/keys", "").await;
    list["items"].as_array().unwrap().iter().find(|key| key["id"] == id).unwrap().clone()
}

async fn opens(api: &Api, secret: &str) -> u16 {
    api.call(secret, "GET", "/api/v1/jobs", "").await.0
}

#[tokio::test(start_paused = true)]
async fn a_rotated_key_goes_on_until_the_overlap_is_over() {
    let api = Api::start(json!({"rules": [{"id": "ask", "decision": "require_approval"}]})).await;
    let root = api.named_key("root", "ops", ADMIN).await;
    let old = api.named_key("ann", "acme", USER).await;
    let (_, reply) = api.submit(&old, json!({"topic": "job.pay", "context": {}})).await;
    let job = reply["job_id"].as_str().unwrap();

    let (status, answer) = rotate(&api, &root, &id_of(&api, &old), json!({"overlapSec": 600})).await;
    assert_eq!(status, 201, "{answer}");
    let (new, key) = (answer["secret"].as_str().unwrap().to_owned(), &answer["key"]);
    assert_eq!(
        (&key["name"], &key["tenant"], &key["scopes"], &key["expiresAt"]),
        (&json!("ann"), &json!("acme"), &json!(["read", "write"]), &Value::Null)
    );
    assert_eq!(key["replaces"], id_of(&api, &old));
    assert_eq!((opens(&api, &old).await, opens(&api, &new).await), (200, 200));
    let shown = listed(&api, &root, &id_of(&api, &old)).await;
    assert_eq!((&shown["replacedBy"], &shown["expiresAt"]), (&key["id"], &answer["oldExpiresAt"]));
    assert!(shown["lastUsedAt"].is_string() && shown["revokedAt"].is_null(), "{shown}");
    let approved = api.call(&new, "POST", &format!("/api/v1/approvals/{job}/approve"), "").await;
    assert_eq!(approved.0, 403, "it is the same submitter: {}", approved.1);

    api.world.clock.shift(601_000);
    assert_eq!((opens(&api, &old).await, opens(&api, &new).await), (401, 200));
    let kept = api.world.roster.keys().await.unwrap();
    let old_id = shown["id"].as_str().unwrap();
    assert!(
        kept.iter().any(|key| key.id.as_str() == old_id && key.replaced_by.is_some()),
        "it is written down"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rotation_without_overlap_revokes_and_says_who_did_it() {
    let api = Api::open().await;
    let root = api.named_key("root", "ops", ADMIN).await;
    let old = api.named_key("ann", "acme", USER).await;
    let id = id_of(&api, &old);
    let (_, answer) = rotate(&api, &root, &id, json!({"overlapSec": 0})).await;
    assert_eq!(opens(&api, &old).await, 401);
    assert_eq!(opens(&api, answer["secret"].as_str().unwrap()).await, 200);
    let headers = [("x-api-key", root.as_str()), ("x-tenant-id", "acme")];
    let page = api.send("GET", "/api/v1/audit/events?event_type=system.auth", &headers, "").await.json();
    let told: Vec<_> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap(), entry["identity"].as_str().unwrap()))
        .collect();
    assert!(told.contains(&("key_rotated", "root")) && told.contains(&("key_revoked", "root")), "{page}");
    assert!(!page.to_string().contains(answer["secret"].as_str().unwrap()));
    let entry =
        page["items"].as_array().unwrap().iter().find(|entry| entry["action"] == "key_rotated").unwrap();
    assert_eq!(entry["extra"]["replaces"], id);
}

#[tokio::test(start_paused = true)]
async fn a_key_with_a_lifetime_is_followed_by_one_for_as_long() {
    let api = Api::open().await;
    let root = api.named_key("root", "ops", ADMIN).await;
    let end = (api.engine.now() + 86_400_000).rfc3339();
    let body = json!({"name": "ci", "tenant": "acme", "expiresAt": end}).to_string();
    let (_, made) = api.call(&root, "POST", "/api/v1/auth/keys", &body).await;
    api.world.clock.shift(86_000_000);
    let (status, answer) = rotate(&api, &root, made["key"]["id"].as_str().unwrap(), json!({})).await;
    assert_eq!(status, 201, "{answer}");
    let new = KeyId::parse(answer["key"]["id"].as_str().unwrap()).unwrap();
    let new = api.engine.access().list_keys().into_iter().find(|key| key.id == new).unwrap();
    assert_eq!(new.expires_at, Some(new.created_at + 86_400_000));
    assert_eq!(answer["oldExpiresAt"], end, "an overlap makes no key last longer");
}

#[tokio::test(start_paused = true)]
async fn a_rotation_is_refused_where_it_would_mislead() {
    let api = Api::open().await;
    let root = api.named_key("root", "ops", ADMIN).await;
    let user = api.named_key("ann", "acme", USER).await;
    let id = id_of(&api, &user);
    assert_eq!(rotate(&api, &user, &id, json!({})).await.0, 403, "not by itself");
    let check = async |id: &str, body: Value, status: u16, code: &str| {
        let (got, answer) = rotate(&api, &root, id, body).await;
        assert_eq!((got, answer["code"].as_str()), (status, Some(code)), "{answer}");
    };
    check("key_nobody", json!({}), 404, "not_found").await;
    for overlap in [604_801, u64::MAX] {
        check(&id, json!({"overlapSec": overlap}), 400, "invalid_request").await;
    }
    assert_eq!(rotate(&api, &root, &id, json!({"overlapSec": 604_800})).await.0, 201);
    check(&id, json!({}), 409, "key_replaced").await;
    let gone = api.named_key("bob", "acme", USER).await;
    let gone = id_of(&api, &gone);
    assert!(api.engine.access().revoke_key(&KeyId::known(gone.clone()), "root").await.unwrap());
    check(&gone, json!({}), 409, "key_ended").await;
    let set = api.named_key(reveille_engine::ENVIRONMENT_KEY, "ops", ADMIN).await;
    check(&id_of(&api, &set), json!({}), 409, "key_from_environment").await;
}

/// The public half of a pair that nobody uses, as `reveille worker-key pair` writes it.
fn public_pem(seed: u8) -> String {
    let key = reveille_wire::key::signing_key_of(&[seed; 32]).unwrap();
    reveille_wire::key::public_pem(key.verifying_key()).unwrap()
}

#[tokio::test]
async fn a_workers_public_key_is_registered_rotated_listed_and_revoked() {
    let api = Api::start(json!({})).await;
    let (root, user) = (api.named_key("root", "ops", ADMIN).await, api.named_key("ann", "acme", USER).await);
    let body = json!({"worker": "w1", "publicKey": public_pem(1), "tenant": "acme", "proofKeyId": "proof-1"});
    let register = |by: String, body: Value| {
        let api = &api;
        async move { api.call(&by, "POST", "/api/v1/auth/worker-keys", &body.to_string()).await }
    };
    assert_eq!(register(user.clone(), body.clone()).await.0, 403);
    let (status, key) = register(root.clone(), body.clone()).await;
    assert_eq!(status, 201, "{key}");
    assert_eq!(
        (&key["name"], &key["tenant"], &key["scopes"]),
        (&json!("w1"), &json!("acme"), &json!(["worker"]))
    );
    assert_eq!(key["worker"]["serves"], json!(["acme"]), "its own tenant unless told");
    let public = &key["publicKey"];
    assert_eq!(
        (&public["worker"], &public["agent"], &public["proofKeyId"]),
        (&json!("w1"), &json!("w1"), &json!("proof-1"))
    );
    assert_eq!(public["pem"], json!(public_pem(1)));
    let (status, again) = register(root.clone(), body).await;
    assert_eq!((status, again["code"].as_str()), (409, Some("key_registered")), "{again}");
    for (field, value) in [("publicKey", json!("-----BEGIN")), ("agent", json!("a b")), ("worker", json!(""))]
    {
        let mut bad = json!({"worker": "w2", "publicKey": public_pem(2)});
        bad[field] = value;
        assert_eq!(register(root.clone(), bad).await.0, 400, "{field}");
    }

    let id = key["id"].as_str().unwrap();
    assert_eq!(rotate(&api, &root, id, json!({})).await.0, 409, "it has no secret");
    let turn = json!({"publicKey": public_pem(3), "overlapSec": 0}).to_string();
    let (status, next) =
        api.call(&root, "POST", &format!("/api/v1/auth/worker-keys/{id}/rotate"), &turn).await;
    assert_eq!(status, 201, "{next}");
    assert_eq!(next["key"]["replaces"], json!(id));
    assert!(listed(&api, &root, id).await["revokedAt"].is_string(), "there was no overlap");
    let next = next["key"]["id"].as_str().unwrap();
    assert_eq!(api.call(&root, "DELETE", &format!("/api/v1/auth/keys/{next}"), "").await.0, 204);

    let (status, off) = api.call(&user, "GET", "/api/v1/auth/worker-keys/server", "").await;
    assert_eq!(status, 404, "signatures are off: {off}");
}
