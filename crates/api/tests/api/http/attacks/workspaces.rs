//! Knowing a workspace's id and nothing else.

use crate::http::support::{Api, USER};
use reveille_test_kit::Reply;
use serde_json::{Value, json};

const OURS: &str = "http://127.0.0.1:9/ours";
const THEIRS: &str = "http://127.0.0.1:9/theirs";

/// A workspace of acme that was set up, and one that runs beside it.
async fn set_up(api: &Api, key: &str) -> (String, String) {
    let made = json!({"name": "waits", "role": "a secret role"}).to_string();
    let waiting = api.call(key, "POST", "/workspaces", &made).await.1["id"].as_str().unwrap().to_owned();
    let made = json!({"name": "peer with a secret name"}).to_string();
    let peer = api.call(key, "POST", "/workspaces", &made).await.1["id"].as_str().unwrap().to_owned();
    let (status, _) = register(api, key, &peer, OURS).await;
    assert_eq!(status, 200);
    (waiting, peer)
}

async fn register(api: &Api, bearer: &str, id: &str, url: &str) -> (u16, Value) {
    let body = json!({"id": id, "url": url, "agent_card": {"name": "x"}}).to_string();
    let bearer = format!("Bearer {bearer}");
    let headers: &[_] = if bearer.len() > 7 { &[("authorization", bearer.as_str())] } else { &[] };
    api.send("POST", "/registry/register", headers, body).await.status_and_json()
}

/// Everything that somebody can ask of the registry in a workspace's name, with a secret or without.
async fn everything(api: &Api, secret: Option<&str>, id: &str, peer: &str) -> Vec<Reply> {
    let bearer = format!("Bearer {}", secret.unwrap_or_default());
    let mut headers = vec![("x-workspace-id", id)];
    headers.extend(secret.map(|_| ("authorization", bearer.as_str())));
    let card = json!({"workspace_id": id, "agent_card": {}}).to_string();
    let registration = json!({"id": id, "url": THEIRS, "agent_card": {}}).to_string();
    let calls = [
        ("GET", format!("/registry/{id}/peers"), String::new()),
        ("GET", format!("/registry/discover/{peer}"), String::new()),
        ("GET", format!("/registry/discover/{id}"), String::new()),
        ("POST", "/registry/register".to_owned(), registration),
        ("POST", "/registry/heartbeat".to_owned(), json!({"workspace_id": id}).to_string()),
        ("POST", "/registry/update-card".to_owned(), card),
        ("GET", format!("/workspaces/{id}"), String::new()),
        ("GET", format!("/workspaces/{id}/state"), String::new()),
        ("GET", format!("/workspaces/{id}/delegations"), String::new()),
        ("POST", format!("/workspaces/{id}/a2a"), json!({"method": "message/send"}).to_string()),
    ];
    let mut replies = Vec::new();
    for (method, path, body) in calls {
        replies.push(api.send(method, &path, &headers, body).await);
    }
    replies
}

fn tells_nothing(reply: &Reply) {
    for told in ["secret", "127.0.0.1", "auth_token", "forwarded_to", "role", "peer"] {
        assert!(!reply.text().contains(told), "{told}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_workspace_that_has_not_registered_answers_whoever_knows_its_id() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    let (waiting, peer) = set_up(&api, &key).await;
    for secret in [None, Some("guessed")] {
        for reply in everything(&api, secret, &waiting, &peer).await {
            assert_eq!(reply.status, 401, "{}", reply.text());
            tells_nothing(&reply);
        }
    }
    let foreign = api.key("zeta", USER).await;
    for reply in everything(&api, Some(&foreign), &waiting, &peer).await {
        assert_eq!(reply.status, 404, "{}", reply.text());
        tells_nothing(&reply);
    }
    let (status, answer) = register(&api, &key, &waiting, OURS).await;
    assert_eq!(
        (status, answer["auth_token"].is_string()),
        (200, true),
        "its tenant's key still registers it"
    );
}

#[tokio::test]
async fn a_token_that_an_operator_hands_out_registers_a_workspace_that_was_set_up() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    let (waiting, _) = set_up(&api, &key).await;
    let path = format!("/workspaces/{waiting}/tokens");
    let token = api.call(&key, "POST", &path, "").await.1["auth_token"].as_str().unwrap().to_owned();
    assert_eq!(register(&api, &token, &waiting, OURS).await, (200, json!({"status": "registered"})));
    assert_eq!(register(&api, "", &waiting, THEIRS).await.0, 401);
}

#[tokio::test]
async fn a_retired_workspace_tells_whoever_knows_its_id_who_took_its_place() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    let (waiting, peer) = set_up(&api, &key).await;
    let (_, answer) = register(&api, &key, &waiting, OURS).await;
    let token = answer["auth_token"].as_str().unwrap();
    let path = format!("/workspaces/{waiting}?forwarded_to={peer}");
    assert_eq!(api.call(&key, "DELETE", &path, "").await.0, 200);
    for secret in [None, Some("guessed")] {
        for reply in everything(&api, secret, &waiting, &peer).await {
            assert!(matches!(reply.status, 401 | 410), "{}", reply.text());
            tells_nothing(&reply);
        }
    }
    let own = &everything(&api, Some(token), &waiting, &peer).await;
    for reply in &own[..6] {
        assert_eq!(reply.status, 410, "{}", reply.text());
        assert_eq!(reply.json()["forwarded_to"], peer, "its own token still finds the way: {}", reply.text());
    }
    for reply in &own[6..] {
        assert_eq!(reply.status, 401, "and opens nothing else: {}", reply.text());
    }
    assert_eq!(register(&api, &key, &waiting, THEIRS).await.0, 410, "nobody revives it");
}
