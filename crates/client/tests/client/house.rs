//! The server that is asked. It ends with the value that stands for it.

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use reveille_client::Client;
use reveille_core::fleet::Load;
use reveille_core::id::TenantId;
use reveille_engine::Engine;
use reveille_roster::Scope;
use reveille_test_kit::{TestWorld, beat, create_key, serve};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Runtime;

pub const USER: &[Scope] = &[Scope::Read, Scope::Write];

pub struct House {
    engine: Engine,
    url: String,
    asked: Arc<AtomicUsize>,
    runtime: Runtime,
}

impl House {
    /// `job.no` is denied and `job.ask` wants a person; the rest is allowed.
    pub fn open() -> Self {
        let runtime = Runtime::new().unwrap();
        let engine =
            runtime.block_on(async { TestWorld::new().engine().policy_of(policy()).start().await.engine });
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let router =
            reveille_api::router(engine.clone()).layer(from_fn(move |request: Request, next: Next| {
                count.fetch_add(1, Ordering::Relaxed);
                next.run(request)
            }));
        let url = runtime.block_on(serve(router));
        Self { engine, url, asked, runtime }
    }

    /// Somebody of a tenant, with a key of their own.
    pub fn client(&self, name: &str, tenant: &str, scopes: &[Scope]) -> Client {
        let secret = self.runtime.block_on(create_key(&self.engine, name, tenant, scopes));
        Client::new(&self.url, secret).unwrap()
    }

    pub fn with_key(&self, key: &str) -> Client {
        Client::new(&self.url, key).unwrap()
    }

    /// A CAP worker of the tenant is heard.
    pub fn worker(&self, id: &str, tenant: &str) {
        let _inside = self.runtime.enter();
        beat(&self.engine, &TenantId::known(tenant), id, Load::default());
    }

    /// How many requests came in meanwhile.
    pub fn asked_during<T>(&self, ask: impl FnOnce() -> T) -> (usize, T) {
        let before = self.asked.load(Ordering::Relaxed);
        let answer = ask();
        (self.asked.load(Ordering::Relaxed) - before, answer)
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.engine.kill();
    }
}

fn policy() -> Value {
    json!({"version": "test", "rules": [
        {"id": "no", "match": {"topics": ["job.no"]}, "decision": "deny", "reason": "hands off"},
        {"id": "ask", "match": {"topics": ["job.ask"]}, "decision": "require_approval", "reason": "it costs money"},
        {"id": "rest", "decision": "allow"},
    ]})
}
