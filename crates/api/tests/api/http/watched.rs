//! A real engine whose clock is tokio's, so that a test on paused time decides how late it is; and a
//! reader of server-sent events.

use super::described;
use super::support::Api;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use http_body_util::BodyExt;
use reveille_a2a::{AddressRules, HttpA2aClient};
use reveille_bus::{Bus, LocalBus};
use reveille_core::policy::{Document, Policy};
use reveille_core::time::Millis;
use reveille_engine::{Clock, Engine, Parts, Rules, SeededRng, Settings};
use reveille_roster::MemoryRoster;
use reveille_store::MemoryStore;
use reveille_traces::Nowhere;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

/// Where the clock starts: 2026-11-15T12:00:00Z.
pub const NOON: Millis = Millis(1_794_744_000_000);

struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Millis {
        NOON + self.0.elapsed().as_millis() as i64
    }
}

/// An [`Api`] on tokio's time.
pub struct Watched {
    api: Api,
    pub bus: LocalBus,
    pub roster: MemoryRoster,
}

impl Deref for Watched {
    type Target = Api;
    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Watched {
    pub async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    pub async fn start_with(settings: Settings) -> Self {
        let clock = Arc::new(TokioClock(Instant::now()));
        let now = clock.clone();
        let document: Document = serde_json::from_value(json!({"rules": [
            {"id": "ask-first", "match": {"topics": ["job.ask"]}, "decision": "require_approval",
             "reason": "it costs money"},
            {"id": "all", "decision": "allow"},
        ]}))
        .unwrap();
        let (roster, bus) = (MemoryRoster::default(), LocalBus::default());
        let engine = Engine::start(Parts {
            store: Arc::new(MemoryStore::new(Arc::new(move || now.now()))),
            roster: Arc::new(roster.clone()),
            workflows: Arc::new(reveille_store::workflows::MemoryWorkflows::default()),
            bus: Arc::new(bus.clone()) as Arc<dyn Bus>,
            courier: Arc::new(HttpA2aClient::new(AddressRules::parse(&["loopback".to_owned()]).unwrap())),
            kernel: None,
            traces: Arc::new(Nowhere),
            clock,
            rng: Arc::new(SeededRng::new(1)),
            rules: Rules { policy: Policy::new(document, b"test").unwrap(), ..Rules::default() },
            settings,
        })
        .await
        .unwrap();
        let api = Api { router: reveille_api::router(engine.clone()), engine };
        Self { api, bus, roster }
    }

    /// A request with exactly these headers.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, HeaderMap, Value) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let (status, answer) = (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap_or(Value::Null));
        described::check(method, path, status, &answer);
        (status, parts.headers, answer)
    }

    pub async fn beat(&self, key: &str, body: &Value) -> u16 {
        self.call(key, "POST", "/v1/agents/heartbeat", &body.to_string()).await.0
    }

    /// The roster as this key sees it.
    pub async fn agents(&self, key: &str) -> Vec<Value> {
        let (status, reply) = self.call(key, "GET", "/v1/agents", "").await;
        assert_eq!(status, 200);
        reply["workers"].as_array().unwrap().clone()
    }

    pub async fn open(&self, key: &str, path: &str, headers: &[(&str, &str)]) -> Sse {
        let mut request = Request::builder().uri(path).header("x-api-key", key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        let (parts, body) = response.into_parts();
        Sse { headers: parts.headers, body, frames: VecDeque::new(), read: Vec::new() }
    }
}

/// The canonical payload, with some fields changed.
pub fn payload(agent_id: &str, changes: Value) -> Value {
    let mut body = json!({
        "agent_id": agent_id, "agent_name": "myvoiceagents", "status": "idle", "active_sessions": 0,
        "version": "0.13.0", "project": "mahimai-realty", "tenant_id": null, "region": "iad",
        "host": "worker-host-1", "started_at": 1_783_200_000.0, "ts": 1_783_200_015.0,
    });
    let Value::Object(changes) = changes else { panic!("{changes}") };
    for (key, value) in changes {
        body[key] = value;
    }
    body
}

/// A client that reads when it is asked to, and not before.
pub struct Sse {
    pub headers: HeaderMap,
    body: Body,
    frames: VecDeque<String>,
    read: Vec<u8>,
}

impl Sse {
    /// The next frame as it came, if one comes within this time.
    pub async fn raw_within(&mut self, patience: Duration) -> Option<String> {
        while self.frames.is_empty() {
            let frame = timeout(patience, self.body.frame()).await.ok()??;
            self.read.extend_from_slice(frame.unwrap().data_ref().unwrap());
            while let Some(end) = self.read.windows(2).position(|pair| pair == b"\n\n") {
                let rest = self.read.split_off(end + 2);
                let frame = std::mem::replace(&mut self.read, rest);
                self.frames.push_back(String::from_utf8(frame).unwrap().trim_end().to_owned());
            }
        }
        self.frames.pop_front()
    }

    pub async fn raw(&mut self) -> String {
        self.raw_within(Duration::from_mins(1)).await.unwrap()
    }

    /// The next frame of the console's stream: one line of data and nothing else.
    pub async fn data(&mut self) -> Value {
        let raw = self.raw().await;
        let json = raw.strip_prefix("data: ").unwrap_or_else(|| panic!("{raw}"));
        assert!(!json.contains('\n'), "{raw}");
        serde_json::from_str(json).unwrap()
    }

    /// The next frame of this type; others may come before it.
    pub async fn until(&mut self, kind: &str) -> Value {
        for _ in 0..50 {
            let frame = self.data().await;
            if frame["type"] == kind {
                return frame;
            }
        }
        panic!("no {kind}");
    }

    /// The next event of our own stream: its id, its name, its data.
    pub async fn event(&mut self) -> (String, String, Value) {
        loop {
            let raw = self.raw().await;
            let line = |name: &str| {
                let found = raw.lines().find_map(|line| line.strip_prefix(name));
                found.unwrap_or_default().to_owned()
            };
            if !raw.starts_with(':') {
                return (line("id: "), line("event: "), serde_json::from_str(&line("data: ")).unwrap());
            }
        }
    }

    pub async fn has_ended(&mut self) -> bool {
        timeout(Duration::from_secs(5), self.body.frame()).await.is_ok_and(|frame| frame.is_none())
    }
}
