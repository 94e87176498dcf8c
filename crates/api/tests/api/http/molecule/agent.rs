//! A workspace's agent: an A2A server on a free port, doing as it is told.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

#[derive(Clone)]
pub enum Manner {
    Answers(&'static str),
    /// Refuses the task in JSON-RPC's words.
    Fails(&'static str),
    Status(u16),
    /// Takes the task and thinks until it is let go.
    Thinks(Arc<Notify>),
    /// Takes the task for later.
    Queues,
}

pub struct Agent {
    pub url: String,
    state: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    manner: Mutex<Manner>,
    got: Mutex<Vec<(HeaderMap, Value)>>,
    came: Notify,
}

impl Agent {
    pub async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, manner)
    }

    pub fn on(listener: TcpListener, manner: Manner) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state =
            Arc::new(Shared { manner: Mutex::new(manner), got: Mutex::default(), came: Notify::new() });
        let router = axum::Router::new().fallback(answer).with_state(state.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, state, server }
    }

    pub fn behave(&self, manner: Manner) {
        *self.state.manner.lock().unwrap() = manner;
    }

    /// What it was sent so far.
    pub fn got(&self) -> Vec<(HeaderMap, Value)> {
        self.state.got.lock().unwrap().clone()
    }

    /// Until it was sent so much.
    pub async fn has_got(&self, count: usize) {
        let wait = async {
            loop {
                let came = self.state.came.notified();
                tokio::pin!(came);
                came.as_mut().enable();
                if self.got().len() >= count {
                    return;
                }
                came.await;
            }
        };
        let waited = tokio::time::timeout(std::time::Duration::from_secs(20), wait).await;
        assert!(waited.is_ok(), "the agent got {} of {count} messages", self.got().len());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(State(state): State<Arc<Shared>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let id = body["id"].clone();
    state.got.lock().unwrap().push((headers, body));
    state.came.notify_waiters();
    let manner = state.manner.lock().unwrap().clone();
    let said = |text: &str| {
        let parts = json!([{ "kind": "text", "text": text }]);
        Json(json!({ "jsonrpc": "2.0", "id": id, "result": { "role": "agent", "parts": parts } }))
            .into_response()
    };
    match manner {
        Manner::Answers(text) => said(text),
        Manner::Fails(words) => {
            let error = json!({ "code": -32602, "message": words });
            Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_response()
        }
        Manner::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Manner::Thinks(until) => {
            until.notified().await;
            said("thought it through")
        }
        Manner::Queues => (StatusCode::ACCEPTED, Json(json!({ "queued": true }))).into_response(),
    }
}
