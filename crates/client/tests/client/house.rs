//! The server that is asked. It ends with the value that stands for it.

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use reveille_a2a::{AddressRules, HttpA2aClient};
use reveille_bus::LocalBus;
use reveille_client::Client;
use reveille_core::fleet::Beat;
use reveille_core::id::{TenantId, WorkerId};
use reveille_core::policy::{Document, Policy};
use reveille_engine::{Clock, Engine, NewKey, Parts, Rules, SeededRng, Settings, SystemClock};
use reveille_roster::{MemoryRoster, Scope};
use reveille_store::MemoryStore;
use reveille_store::workflows::MemoryWorkflows;
use reveille_traces::Nowhere;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
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
        let engine = runtime.block_on(async { Engine::start(parts()).await }).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let router =
            reveille_api::router(engine.clone()).layer(from_fn(move |request: Request, next: Next| {
                count.fetch_add(1, Ordering::Relaxed);
                next.run(request)
            }));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { engine, url, asked, runtime }
    }

    /// Somebody of a tenant, with a key of their own.
    pub fn client(&self, name: &str, tenant: &str, scopes: &[Scope]) -> Client {
        let new = NewKey {
            name: name.to_owned(),
            tenant: TenantId::known(tenant),
            scopes: scopes.to_vec(),
            expires_at: None,
            created_by: "test".to_owned(),
            issued_by: None,
            project_ids: None,
        };
        let (_, secret) = self.runtime.block_on(self.engine.access().create_key(new)).unwrap();
        Client::new(&self.url, secret).unwrap()
    }

    pub fn with_key(&self, key: &str) -> Client {
        Client::new(&self.url, key).unwrap()
    }

    /// A CAP worker of the tenant is heard.
    pub fn worker(&self, id: &str, tenant: &str) {
        let _inside = self.runtime.enter();
        self.engine.fleet().beat(&WorkerId::known(id), &TenantId::known(tenant), &Beat::default());
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

fn parts() -> Parts {
    let clock = SystemClock::start();
    let policy = json!({"version": "test", "rules": [
        {"id": "no", "match": {"topics": ["job.no"]}, "decision": "deny", "reason": "hands off"},
        {"id": "ask", "match": {"topics": ["job.ask"]}, "decision": "require_approval", "reason": "it costs money"},
        {"id": "rest", "decision": "allow"},
    ]});
    let document: Document = serde_json::from_value(policy.clone()).unwrap();
    Parts {
        store: Arc::new(MemoryStore::new(Arc::new(move || clock.now()))),
        roster: Arc::new(MemoryRoster::default()),
        workflows: Arc::new(MemoryWorkflows::default()),
        bus: Arc::new(LocalBus::default()),
        courier: Arc::new(HttpA2aClient::new(AddressRules::parse(&[]).unwrap())),
        kernel: None,
        traces: Arc::new(Nowhere),
        clock: Arc::new(SystemClock::start()),
        rng: Arc::new(SeededRng::new(1)),
        rules: Rules {
            policy: Policy::new(document, policy.to_string().as_bytes()).unwrap(),
            ..Rules::default()
        },
        settings: Settings::default(),
    }
}
