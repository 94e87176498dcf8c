//! A real engine behind a router, without a socket. Its clock is tokio's, so that a test on paused time decides how
//! late it is.

use super::described;
use reveille_bus::LocalBus;
use reveille_engine::{Engine, Rules, Settings};
use reveille_roster::Scope;
use reveille_test_kit::{TestHttp, TestWorld, create_key, policy};
use serde_json::{Value, json};
use std::ops::Deref;

pub use reveille_test_kit::eventually;

pub struct Api {
    pub world: TestWorld,
    pub engine: Engine,
    pub bus: LocalBus,
    http: TestHttp,
}

impl Deref for Api {
    type Target = TestHttp;
    fn deref(&self) -> &TestHttp {
        &self.http
    }
}

impl Api {
    pub async fn start(policy: Value) -> Self {
        Self::start_with(policy, Settings::default()).await
    }

    pub async fn start_with(policy: Value, settings: Settings) -> Self {
        Self::on(TestWorld::new(), policy, settings, 1).await
    }

    /// Another server on the same jobs, after this one was killed; nobody has a key yet.
    pub async fn restarted(&self, policy: Value) -> Self {
        self.engine.kill();
        let kept = TestWorld::new();
        let world = TestWorld { roster: kept.roster, workflows: kept.workflows, ..self.world.clone() };
        Self::on(world, policy, self.engine.settings().clone(), 2).await
    }

    async fn on(world: TestWorld, policy: Value, settings: Settings, seed: u64) -> Self {
        let engine = world.engine().loopback_agents().policy_of(policy).settings(settings).seed(seed);
        let server = engine.start().await;
        let http = TestHttp::checked(reveille_api::router(server.engine.clone()), described::check);
        Self { world, engine: server.engine, bus: server.bus, http }
    }

    pub async fn open() -> Self {
        Self::start(json!({"rules": [{"id": "all", "decision": "allow"}]})).await
    }

    /// From now on this policy holds, once everything is picked up.
    pub async fn reload(&self, document: Value) {
        eventually(async || self.engine.is_recovered()).await;
        let rules = (*self.engine.rules()).clone();
        self.engine.use_rules(Rules { policy: policy(document), ..rules });
    }

    pub async fn key(&self, tenant: &str, scopes: &[Scope]) -> String {
        self.named_key(tenant, tenant, scopes).await
    }

    pub async fn named_key(&self, name: &str, tenant: &str, scopes: &[Scope]) -> String {
        create_key(&self.engine, name, tenant, scopes).await
    }

    /// What is there in the form that is asked for: status, content type, body.
    pub async fn fetch(&self, key: &str, path: &str, accept: &str) -> (u16, String, String) {
        let headers = [("x-api-key", key), ("accept", accept)];
        let reply = TestHttp::new(self.router.clone()).send("GET", path, &headers, "").await;
        (reply.status, reply.header("content-type").to_owned(), reply.text().to_owned())
    }

    pub async fn submit(&self, key: &str, body: Value) -> (u16, Value) {
        self.call(key, "POST", "/api/v1/jobs", &body.to_string()).await
    }
}

pub const USER: &[Scope] = &[Scope::Read, Scope::Write];
