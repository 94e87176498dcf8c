//! A real engine behind a router, without a socket.

use super::described;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use reveille_a2a::{AddressRules, HttpA2aClient};
use reveille_bus::{Bus, LocalBus};
use reveille_core::id::TenantId;
use reveille_core::policy::{Document, Policy};
use reveille_engine::{Clock, Engine, NewKey, Parts, Rules, SeededRng, Settings, SystemClock};
use reveille_roster::{MemoryRoster, Scope};
use reveille_store::{MemoryStore, Store};
use reveille_traces::Nowhere;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

pub struct Api {
    pub engine: Engine,
    pub router: Router,
}

impl Api {
    pub async fn start(policy: Value) -> Self {
        Self::start_with(policy, Settings::default()).await
    }

    pub async fn start_with(policy: Value, settings: Settings) -> Self {
        let clock = SystemClock::start();
        let store = Arc::new(MemoryStore::new(Arc::new(move || clock.now())));
        Self::on(store, policy, settings, 1).await
    }

    /// Another server on the same data, after this one was killed; nobody has a key yet.
    pub async fn restarted(&self, policy: Value) -> Self {
        self.engine.kill();
        Self::on(self.engine.store().clone(), policy, self.engine.settings().clone(), 2).await
    }

    async fn on(store: Arc<dyn Store>, policy: Value, settings: Settings, seed: u64) -> Self {
        let engine = Engine::start(Parts {
            store,
            roster: Arc::new(MemoryRoster::default()),
            workflows: Arc::new(reveille_store::workflows::MemoryWorkflows::default()),
            bus: Arc::new(LocalBus::default()) as Arc<dyn Bus>,
            courier: Arc::new(HttpA2aClient::new(AddressRules::parse(&["loopback".to_owned()]).unwrap())),
            kernel: None,
            traces: Arc::new(Nowhere),
            clock: Arc::new(SystemClock::start()),
            rng: Arc::new(SeededRng::new(seed)),
            rules: Rules { policy: policy_of(policy), ..Rules::default() },
            settings,
        })
        .await
        .unwrap();
        Self { router: reveille_api::router(engine.clone()), engine }
    }

    pub async fn open() -> Self {
        Self::start(json!({"rules": [{"id": "all", "decision": "allow"}]})).await
    }

    /// From now on this policy holds, once everything is picked up.
    pub async fn reload(&self, policy: Value) {
        eventually(async || self.engine.is_recovered()).await;
        let rules = (*self.engine.rules()).clone();
        self.engine.use_rules(Rules { policy: policy_of(policy), ..rules });
    }

    pub async fn key(&self, tenant: &str, scopes: &[Scope]) -> String {
        self.named_key(tenant, tenant, scopes).await
    }

    pub async fn named_key(&self, name: &str, tenant: &str, scopes: &[Scope]) -> String {
        let new = NewKey {
            name: name.to_owned(),
            tenant: TenantId::known(tenant),
            scopes: scopes.to_vec(),
            expires_at: None,
            created_by: "test".to_owned(),
            issued_by: None,
            project_ids: None,
        };
        self.engine.access().create_key(new).await.unwrap().1
    }

    pub async fn call(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("x-api-key", key);
        let response =
            self.router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let answer = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        described::check(method, path, status, &answer);
        (status, answer)
    }

    /// What is there in the form that is asked for: status, content type, body.
    pub async fn fetch(&self, key: &str, path: &str, accept: &str) -> (u16, String, String) {
        let request = Request::builder().uri(path).header("x-api-key", key).header("accept", accept);
        let response = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let kind = headers.get("content-type").map_or("", |kind| kind.to_str().unwrap()).to_owned();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, kind, String::from_utf8(bytes.to_vec()).unwrap())
    }

    pub async fn submit(&self, key: &str, body: Value) -> (u16, Value) {
        self.call(key, "POST", "/api/v1/jobs", &body.to_string()).await
    }
}

/// A policy whose snapshot is its content.
fn policy_of(document: Value) -> Policy {
    let source = document.to_string();
    let document: Document = serde_json::from_value(document).unwrap();
    Policy::new(document, source.as_bytes()).unwrap()
}

/// Other threads get their turn, however busy the machine is.
#[expect(
    clippy::disallowed_methods,
    reason = "the test's own clock may stand still, and no timer of it would end"
)]
fn give_way() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Lets everything else go on until it is so.
pub async fn eventually(is_so: impl AsyncFn() -> bool) {
    for round in 1..=100_000 {
        if is_so().await {
            return;
        }
        tokio::task::yield_now().await;
        if round % 10 == 0 {
            give_way();
        }
    }
    panic!("it did not come to that");
}

pub const USER: &[Scope] = &[Scope::Read, Scope::Write];
