//! The platform under test, its clients, and what they hear.

use crate::http::described;
use axum::body::Body;
use reveille_a2a::A2aClient;
use reveille_core::id::TenantId;
use reveille_core::presence::Ttls;
use reveille_engine::{Audience, Engine, NextEvents, Reader, Settings, What};
use reveille_roster::{MemoryRoster, Scope};
use reveille_test_kit::{Reply, TestHttp, TestWorld, create_key};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// What a platform is started with; the world outlives it.
#[derive(Clone)]
pub struct Setup {
    pub policy: Value,
    pub settings: Settings,
    pub networks: Vec<String>,
    /// Instead of real connections, where a test owns the time.
    pub a2a: Option<Arc<dyn A2aClient>>,
    world: TestWorld,
    seed: u64,
}

impl Setup {
    pub fn new() -> Self {
        Self {
            policy: json!({"rules": [{"id": "all", "decision": "allow"}]}),
            settings: Settings::default(),
            networks: vec!["loopback".to_owned()],
            a2a: None,
            world: TestWorld::new(),
            seed: 1,
        }
    }

    pub fn ttl_ms(mut self, molecule_ms: i64) -> Self {
        self.settings.ttls = Ttls { molecule_ms, ..Ttls::default() };
        self
    }

    pub async fn start(&mut self) -> Platform {
        self.seed += 1;
        let engine = self.world.engine().policy_of(self.policy.clone()).settings(self.settings.clone());
        let engine = match &self.a2a {
            Some(client) => engine.a2a(client.clone()),
            None => engine.networks(&self.networks),
        };
        let engine = engine.seed(self.seed).start().await.engine;
        Platform { http: TestHttp::checked(reveille_api::router(engine.clone()), described::check), engine }
    }

    pub fn roster(&self) -> &MemoryRoster {
        &self.world.roster
    }
}

pub struct Platform {
    pub engine: Engine,
    pub http: TestHttp,
}

pub struct Answer {
    reply: Reply,
    pub body: Value,
}

impl Deref for Answer {
    type Target = Reply;
    fn deref(&self) -> &Reply {
        &self.reply
    }
}

impl Answer {
    pub fn error(&self) -> &str {
        self.body["error"].as_str().unwrap_or_default()
    }

    /// The body, if it went well.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.body);
        self.body
    }

    #[track_caller]
    pub fn is(&self, status: u16, error: &str) {
        assert_eq!((self.status, self.error()), (status, error), "{}", self.body);
    }
}

impl Platform {
    pub async fn open() -> Self {
        Setup::new().start().await
    }

    /// As kill -9, with everything that was about to happen.
    pub async fn die(self) {
        self.engine.kill();
        // Its tasks end when they are looked at next, and until then they are still there.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }

    pub async fn key(&self, tenant: &str, scopes: &[Scope]) -> String {
        create_key(&self.engine, tenant, tenant, scopes).await
    }

    pub async fn user(&self, tenant: &str) -> String {
        self.key(tenant, &[Scope::Read, Scope::Write]).await
    }

    pub async fn send(&self, bearer: &str, method: &str, path: &str, body: Value) -> Answer {
        self.send_as(None, bearer, method, path, body).await
    }

    pub async fn send_as(
        &self,
        workspace: Option<&str>,
        bearer: &str,
        method: &str,
        path: &str,
        body: Value,
    ) -> Answer {
        let bearer =
            Some(bearer).filter(|bearer| !bearer.is_empty()).map(|bearer| format!("Bearer {bearer}"));
        let headers = [("authorization", bearer.as_deref()), ("x-workspace-id", workspace)];
        let headers: Vec<_> = headers.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let reply = self.http.send(method, path, &headers, body).await;
        Answer { body: reply.json(), reply }
    }

    pub async fn get(&self, bearer: &str, path: &str) -> Answer {
        self.send(bearer, "GET", path, Value::Null).await
    }

    pub async fn post(&self, bearer: &str, path: &str, body: Value) -> Answer {
        self.send(bearer, "POST", path, body).await
    }

    pub async fn register(&self, bearer: &str, id: &str, url: &str) -> Answer {
        let card = json!({ "name": format!("agent {}", &id[30..]), "x-extra": [1, { "deep": null }] });
        self.post(bearer, "/registry/register", json!({ "id": id, "url": url, "agent_card": card })).await
    }

    /// Registers and returns the token.
    pub async fn join(&self, key: &str, id: &str, url: &str) -> String {
        self.register(key, id, url).await.ok()["auth_token"].as_str().unwrap().to_owned()
    }

    pub async fn beat(&self, bearer: &str, id: &str, more: Value) -> Answer {
        let mut body = json!({ "workspace_id": id, "error_rate": 0.0, "sample_error": "", "active_tasks": 0,
            "uptime_seconds": 30, "current_task": "" });
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        self.post(bearer, "/registry/heartbeat", body).await
    }

    pub async fn status(&self, key: &str, id: &str) -> String {
        let body = self.get(key, &format!("/workspaces/{id}")).await.body;
        body["status"].as_str().unwrap_or_default().to_owned()
    }

    pub fn watch(&self, tenant: &str) -> Watcher {
        let mut reader = self.engine.subscribe(Audience::Tenant(TenantId::known(tenant)), None).unwrap();
        reader.poll();
        Watcher { reader, heard: Vec::new() }
    }
}

/// Somebody who hears what a tenant's workspaces are said to do.
pub struct Watcher {
    reader: Reader,
    pub heard: Vec<(String, String, Value)>,
}

impl Watcher {
    fn take(&mut self, news: NextEvents) {
        let NextEvents::Events(events) = news else { panic!("it missed something") };
        for (_, event) in events {
            if let What::Workspace { id, name, payload } = &event.what {
                self.heard.push((id.to_string(), name.to_string(), (**payload).clone()));
            }
        }
    }

    /// The names of what was heard by now.
    pub fn names(&mut self) -> Vec<&str> {
        while let Some(news) = self.reader.poll() {
            self.take(news);
        }
        self.heard.iter().map(|(_, name, _)| name.as_str()).collect()
    }

    pub fn forget(&mut self) {
        self.names();
        self.heard.clear();
    }

    /// Waits for an event; returns its payload.
    pub async fn until(&mut self, name: &str) -> Value {
        self.until_nth(name, 1).await
    }

    pub async fn until_nth(&mut self, name: &str, count: usize) -> Value {
        let wait = async {
            loop {
                let found = self.heard.iter().filter(|(_, heard, _)| heard == name).nth(count - 1);
                if let Some((_, _, payload)) = found {
                    return payload.clone();
                }
                let news = self.reader.next().await;
                self.take(news);
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(100), wait).await.ok();
        waited.unwrap_or_else(|| panic!("no {name} among {:?}", self.heard))
    }

    /// The rungs that were told, in order.
    pub fn rungs(&mut self) -> Vec<String> {
        self.names();
        let told = self.heard.iter().filter(|(_, name, _)| name == "DELEGATION_STATUS");
        told.map(|(_, _, payload)| payload["status"].as_str().unwrap().to_owned()).collect()
    }
}

pub fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// An address that may be registered and where nobody is.
pub const NOWHERE: &str = "http://127.0.0.1:9/";
