//! `/ws`, over a real socket.

use super::platform::{NOWHERE, Platform, id};
use axum::http::HeaderValue;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

struct Server {
    address: String,
    task: JoinHandle<()>,
}

impl Server {
    async fn of(platform: &Platform) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = platform.http.router.clone();
        Self { address, task: tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }) }
    }

    async fn open(&self, headers: &[(&'static str, &str)]) -> Result<Client, u16> {
        let mut request = format!("ws://{}/ws", self.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let socket = TcpStream::connect(&self.address).await.unwrap();
        match client_async(request, socket).await {
            Ok((socket, response)) => {
                let protocol = response.headers().get("sec-websocket-protocol");
                Ok(Client { socket, protocol: protocol.map(|value| value.to_str().unwrap().to_owned()) })
            }
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(other) => panic!("{other}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Client {
    socket: WebSocketStream<TcpStream>,
    protocol: Option<String>,
}

impl Client {
    /// The next frame; nothing when the socket is closed.
    async fn next(&mut self) -> Option<Value> {
        let wait = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                    Some(Ok(_)) => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_mins(1), wait).await.unwrap()
    }
}

fn bearer(secret: &str) -> String {
    format!("Bearer {secret}")
}

#[tokio::test]
async fn a_socket_tells_of_its_tenants_workspaces_and_no_others() {
    let platform = Platform::open().await;
    let (ann, bob) = (platform.user("acme").await, platform.user("zeta").await);
    let one = platform.join(&ann, &id(1), NOWHERE).await;
    let foreign = platform.join(&bob, &id(2), NOWHERE).await;
    let server = Server::of(&platform).await;
    assert_eq!(server.open(&[]).await.err(), Some(401));
    assert_eq!(server.open(&[("authorization", &bearer("wrong"))]).await.err(), Some(401));
    assert_eq!(
        server.open(&[("authorization", &bearer(&foreign)), ("x-workspace-id", &id(1))]).await.err(),
        Some(404)
    );
    let mut watching = server.open(&[("x-api-key", &ann)]).await.unwrap();
    let mut browser =
        server.open(&[("sec-websocket-protocol", &format!("bearer.{bob}, canvas"))]).await.unwrap();
    assert_eq!(
        browser.protocol.as_deref(),
        Some("canvas"),
        "the secret is not repeated where it need not be"
    );
    let only = format!("bearer.{ann}");
    let lone = server.open(&[("sec-websocket-protocol", &only)]).await.unwrap();
    assert_eq!(lone.protocol, Some(only));

    platform.beat(&foreign, &id(2), json!({ "current_task": "theirs" })).await.ok();
    platform.beat(&one, &id(1), json!({ "current_task": "ours" })).await.ok();
    let frame = watching.next().await.unwrap();
    assert_eq!(frame["event"], "TASK_UPDATED");
    assert_eq!(frame["workspace_id"], id(1));
    assert_eq!(frame["payload"], json!({ "current_task": "ours", "active_tasks": 0 }));
    assert!(frame["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(frame.as_object().unwrap().len(), 4);
    assert_eq!(browser.next().await.unwrap()["workspace_id"], id(2));
}

#[tokio::test]
async fn a_workspace_sees_whom_it_may_talk_to_and_hears_of_its_childs_end() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let lead = platform.join(&key, &id(1), NOWHERE).await;
    let other = platform.join(&key, &id(2), NOWHERE).await;
    let child = platform.post(&key, "/workspaces", json!({ "name": "dev", "parent_id": id(1) })).await.ok();
    let child = child["id"].as_str().unwrap();
    let child_token = platform.join(&key, child, NOWHERE).await;
    let server = Server::of(&platform).await;
    let mut parent =
        server.open(&[("authorization", &bearer(&lead)), ("x-workspace-id", &id(1))]).await.unwrap();
    let mut uncle = server.open(&[("authorization", &bearer(&other))]).await.unwrap();
    let mut own = server.open(&[("authorization", &bearer(&child_token))]).await.unwrap();
    platform.beat(&child_token, child, json!({ "current_task": "build" })).await.ok();
    platform.send(&key, "DELETE", &format!("/workspaces/{child}"), Value::Null).await.ok();
    platform.beat(&lead, &id(1), json!({ "current_task": "lead" })).await.ok();
    for event in ["TASK_UPDATED", "WORKSPACE_REMOVED"] {
        let frame = parent.next().await.unwrap();
        assert_eq!((&frame["event"], &frame["workspace_id"]), (&json!(event), &json!(child)));
    }
    assert_eq!(
        uncle.next().await.unwrap()["payload"]["current_task"],
        "lead",
        "nephews are none of its business"
    );
    assert_eq!(own.next().await.unwrap()["event"], "TASK_UPDATED");
    while let Some(frame) = own.next().await {
        assert_eq!(frame["event"], "WORKSPACE_REMOVED", "and then its socket ends");
    }
}

#[tokio::test]
async fn whoever_missed_something_is_told_to_look_again() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    platform.join(&key, &id(1), NOWHERE).await;
    let server = Server::of(&platform).await;
    let mut client = server.open(&[("x-api-key", &key)]).await.unwrap();
    let acme = reveille_core::id::TenantId::known("acme");
    let workspace = platform.engine.workspaces().workspaces_of(&acme).remove(0).workspace;
    // More than is kept, faster than anybody reads: nothing awaits in between.
    for number in 0..20_000 {
        platform.engine.workspaces().notify(&workspace, json!({ "message": number }));
    }
    let mut frames = 0;
    loop {
        let frame = client.next().await.unwrap();
        frames += 1;
        if frame["event"] == "RESYNC" {
            break;
        }
    }
    assert!(frames < 5_000, "it was not all kept for it");
    platform.engine.workspaces().notify(&workspace, json!({ "message": "after" }));
    assert_eq!(client.next().await.unwrap()["payload"]["message"], "after");
}

#[tokio::test]
async fn what_clients_say_is_thrown_away_and_too_much_of_it_ends_them() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    let server = Server::of(&platform).await;
    let mut client = server.open(&[("x-api-key", &key)]).await.unwrap();
    client.socket.send(Message::text("hello?")).await.unwrap();
    platform.beat(&token, &id(1), json!({ "current_task": "still here" })).await.ok();
    assert_eq!(client.next().await.unwrap()["event"], "TASK_UPDATED");
    // The server may hang up before all of it is written.
    let _ = client.socket.send(Message::text("x".repeat(100_000))).await;
    assert_eq!(client.next().await, None);
    let mut chatty = server.open(&[("x-api-key", &key)]).await.unwrap();
    for _ in 0..2_000 {
        if chatty.socket.send(Message::text("x")).await.is_err() {
            break;
        }
    }
    assert_eq!(chatty.next().await, None);
}

#[tokio::test]
async fn a_socket_ends_with_its_key_and_with_the_server() {
    let platform = Platform::open().await;
    let (ann, bob) = (platform.user("acme").await, platform.user("zeta").await);
    let server = Server::of(&platform).await;
    let mut revoked = server.open(&[("x-api-key", &ann)]).await.unwrap();
    let mut lasting = server.open(&[("x-api-key", &bob)]).await.unwrap();
    let key =
        platform.engine.access().list_keys().into_iter().find(|key| key.tenant.as_str() == "acme").unwrap();
    platform.engine.access().revoke_key(&key.id, "test").await.unwrap();
    assert_eq!(revoked.next().await, None);
    platform.engine.drain(Duration::from_secs(5)).await;
    assert_eq!(lasting.next().await, None);
}
