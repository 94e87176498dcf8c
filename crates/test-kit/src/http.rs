//! A client that calls a router without a socket, and a router behind one.

use crate::sse::Sse;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tower::ServiceExt;

/// Sees every answer: method, path, status, body.
type AnswerCheck = fn(&str, &str, u16, &Value);

#[derive(Clone)]
pub struct TestHttp {
    pub router: Router,
    check: AnswerCheck,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    /// The first of these headers, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn status_and_json(&self) -> (u16, Value) {
        (self.status, self.json())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl TestHttp {
    pub fn new(router: Router) -> Self {
        Self::checked(router, |_, _, _, _| {})
    }

    /// Every answer is also looked at by `check`.
    pub fn checked(router: Router, check: AnswerCheck) -> Self {
        Self { router, check }
    }

    /// A request with exactly these headers.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let reply = Reply { status: parts.status.as_u16(), headers: parts.headers, body };
        (self.check)(method, path, reply.status, &reply.json());
        reply
    }

    /// A call of the API with a key.
    pub async fn call(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.send(method, path, &[("x-api-key", key)], body.to_owned()).await.status_and_json()
    }

    /// A stream of events that lasts.
    pub async fn open(&self, key: &str, path: &str, headers: &[(&str, &str)]) -> Sse {
        let mut request = Request::builder().uri(path).header("x-api-key", key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        let (parts, body) = response.into_parts();
        Sse::new(parts.headers, body)
    }
}

/// Serves on a free port for as long as the runtime lasts; returns where.
pub async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}
