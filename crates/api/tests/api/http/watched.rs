//! A server that some people watch and some agents beat at.

use super::support::Api;
use reveille_engine::Settings;
use serde_json::{Value, json};

pub async fn start() -> Api {
    start_with(Settings::default()).await
}

/// `job.ask` waits for a person; everything else is allowed.
pub async fn start_with(settings: Settings) -> Api {
    let policy = json!({"rules": [
        {"id": "ask-first", "match": {"topics": ["job.ask"]}, "decision": "require_approval",
         "reason": "it costs money"},
        {"id": "all", "decision": "allow"},
    ]});
    Api::start_with(policy, settings).await
}

impl Api {
    pub async fn beat(&self, key: &str, body: &Value) -> u16 {
        self.call(key, "POST", "/v1/agents/heartbeat", &body.to_string()).await.0
    }

    /// The roster as this key sees it.
    pub async fn agents(&self, key: &str) -> Vec<Value> {
        let (status, reply) = self.call(key, "GET", "/v1/agents", "").await;
        assert_eq!(status, 200);
        reply["workers"].as_array().unwrap().clone()
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
