//! A real engine behind a router, without a socket.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use reveille_bus::{Bus, LocalBus};
use reveille_core::id::TenantId;
use reveille_core::policy::{Document, Policy};
use reveille_courier::{AddressRules, HttpCourier};
use reveille_engine::{Clock, Engine, NewKey, Parts, Rules, SeededDice, Settings, SystemClock};
use reveille_roster::{MemoryRoster, Scope};
use reveille_store::MemoryStore;
use serde_json::{Value, json};
use std::sync::Arc;
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
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let now = clock.clone();
        let document: Document = serde_json::from_value(policy).unwrap();
        let policy = Policy::new(document, b"test").unwrap();
        let engine = Engine::start(Parts {
            store: Arc::new(MemoryStore::new(Arc::new(move || now.now()))),
            roster: Arc::new(MemoryRoster::default()),
            bus: Arc::new(LocalBus::default()) as Arc<dyn Bus>,
            courier: Arc::new(HttpCourier::new(AddressRules::parse(&["loopback".to_owned()]).unwrap())),
            clock,
            dice: Arc::new(SeededDice::new(1)),
            rules: Rules { policy, ..Rules::default() },
            settings,
        })
        .await
        .unwrap();
        Self { router: reveille_api::router(engine.clone()), engine }
    }

    pub async fn open() -> Self {
        Self::start(json!({"rules": [{"id": "all", "decision": "allow"}]})).await
    }

    pub async fn key(&self, tenant: &str, scopes: &[Scope]) -> String {
        let new = NewKey {
            name: tenant.to_owned(),
            tenant: TenantId::known(tenant),
            scopes: scopes.to_vec(),
            expires_at: None,
            issued_by: None,
            project_ids: None,
        };
        self.engine.create_key(new).await.unwrap().1
    }

    pub async fn call(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("x-api-key", key);
        let response =
            self.router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    pub async fn submit(&self, key: &str, body: Value) -> (u16, Value) {
        self.call(key, "POST", "/api/v1/jobs", &body.to_string()).await
    }
}

pub const USER: &[Scope] = &[Scope::Read, Scope::Write];
