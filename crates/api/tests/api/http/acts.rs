//! What people and programs do, on every surface, is in the audit trail with whose key it was.

use super::support::{Api, USER};
use reveille_core::audit::Action;
use reveille_core::id::{TenantId, WorkerId};
use reveille_roster::Scope;
use reveille_store::{AboutPacket, AuditOrder, AuditQuery, AuditTrail, DeadPacket, DeadPackets};
use reveille_test_kit::{NOON, TestWorker, idle};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn policy() -> Value {
    json!({"version": "v1", "rules": [
        {"id": "no", "match": {"topics": ["job.no"]}, "decision": "deny", "reason": "no"},
        {"id": "rest", "decision": "allow"},
    ]})
}

impl Api {
    /// The id of a key, which its secret does not tell.
    fn key_id(&self, name: &str) -> String {
        let keys = self.engine.access().list_keys();
        keys.iter().find(|key| key.name == name).unwrap().id.to_string()
    }

    /// What was recorded of acts and reads, oldest first: what, by whom, about what.
    async fn acts(&self) -> Vec<(String, String)> {
        let query = AuditQuery { order: AuditOrder::OldestFirst, limit: 500, ..AuditQuery::default() };
        let entries = self.world.store.audit(&query).await.unwrap().items;
        let acts = entries.into_iter().filter(|entry| {
            let kind = entry.draft.event_type.as_str();
            kind == "system.act" || kind == "system.read"
        });
        let line = |entry: reveille_core::audit::Entry| {
            let by = entry.draft.extra.get("by_key").cloned().unwrap_or_default();
            (entry.draft.action, format!("{} {} {by}", entry.draft.tenant, entry.draft.identity))
        };
        acts.map(line).collect()
    }

    async fn does(&self, key: &str, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, reply) = self.call(key, method, path, &body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {reply}");
        reply
    }
}

#[tokio::test]
async fn every_act_is_recorded_once_with_the_key_that_did_it() {
    let api = Api::start(policy()).await;
    let (ann, root) =
        (api.named_key("ann", "acme", USER).await, api.named_key("root", "ops", &[Scope::Admin]).await);
    let _worker = TestWorker::listen(&api.bus, "w1").await;
    let beat = reveille_core::fleet::Beat { load: idle(1), ..Default::default() };
    api.engine.fleet().beat(&WorkerId::known("w1"), &TenantId::known("default"), &beat);
    let nothing = Value::Null;

    // Of jobs.
    let job = api.does(&ann, "POST", "/api/v1/jobs", &json!({"topic": "job.a", "context": {}})).await;
    let job = job["job_id"].as_str().unwrap();
    for _ in 0..2 {
        api.does(&ann, "POST", &format!("/api/v1/jobs/{job}/cancel"), &nothing).await;
    }
    let mut dead = Vec::new();
    for _ in 0..2 {
        let (_, reply) = api.submit(&ann, json!({"topic": "job.no", "context": {}})).await;
        dead.push(reply["job_id"].as_str().unwrap().to_owned());
    }
    api.does(&ann, "DELETE", &format!("/api/v1/dlq/{}", dead[0]), &nothing).await;
    api.does(&ann, "POST", &format!("/api/v1/dlq/{}/retry", dead[1]), &nothing).await;

    // Of the fleet. Putting back what was not drained changes nothing.
    for what in ["workers/w1", "pools/gpu"] {
        for act in ["drain", "undrain", "undrain"] {
            api.does(&root, "POST", &format!("/api/v1/{what}/{act}"), &nothing).await;
        }
    }

    // Of workflows.
    let document = json!({"id": "w", "name": "w", "steps": {"d": {"type": "delay", "delay_sec": 600}}});
    api.does(&ann, "POST", "/api/v1/workflows", &document).await;
    let run = api.does(&ann, "POST", "/api/v1/workflows/w/runs", &nothing).await;
    let run = format!("/api/v1/workflow-runs/{}", run["run_id"].as_str().unwrap());
    api.does(&ann, "POST", &format!("{run}/cancel"), &nothing).await;
    api.does(&ann, "POST", &format!("{run}/rerun"), &nothing).await;
    api.does(&ann, "DELETE", &run, &nothing).await;
    api.does(&ann, "DELETE", "/api/v1/workflows/w", &nothing).await;

    // Of workspaces. Where one is drawn is nobody's business.
    let made = api.does(&ann, "POST", "/workspaces", &json!({"name": "site", "tier": 1})).await;
    let workspace = format!("/workspaces/{}", made["id"].as_str().unwrap());
    api.does(&ann, "PATCH", &workspace, &json!({"x": 7})).await;
    api.does(&ann, "PATCH", &workspace, &json!({"name": "yard"})).await;
    api.does(&ann, "POST", &format!("{workspace}/tokens"), &nothing).await;
    api.does(&ann, "DELETE", &format!("{workspace}?purge=true"), &nothing).await;

    // Nobody knows whose these are.
    let about = AboutPacket {
        subject: "sys.job.submit".to_owned(),
        reason: "no packet".to_owned(),
        deliveries: 1,
        len: 0,
        buried_at: NOON,
    };
    api.world.store.bury(DeadPacket::new("s:1", about, &"hello".into())).await.unwrap();
    for _ in 0..3 {
        api.does(&root, "GET", "/api/v1/dlq/packets", &nothing).await;
    }

    let (ann, root) =
        (format!("acme ann {}", api.key_id("ann")), format!("default root {}", api.key_id("root")));
    let expected = [
        ("cancel", &ann),
        ("dead_letter_deleted", &ann),
        ("dead_letter_retried", &ann),
        ("worker_drained", &root),
        ("worker_undrained", &root),
        ("pool_drained", &root),
        ("pool_undrained", &root),
        ("workflow_saved", &ann),
        ("run_started", &ann),
        ("run_cancelled", &ann),
        ("run_started", &ann),
        ("run_deleted", &ann),
        ("workflow_deleted", &ann),
        ("workspace_created", &ann),
        ("workspace_changed", &ann),
        ("workspace_token_rotated", &ann),
        ("workspace_retired", &ann),
        ("workspace_purged", &ann),
        ("dead_packets_read", &root),
    ];
    let expected = expected.map(|(action, by)| (action.to_owned(), by.clone()));
    assert_eq!(api.acts().await, expected);
    // The rest of the list has tests of its own: at the console, and where workspaces register.
    let seen: BTreeSet<&str> = expected.iter().map(|(action, _)| action.as_str()).collect();
    let unseen: Vec<&str> =
        Action::ALL.iter().map(|action| action.as_str()).filter(|word| !seen.contains(word)).collect();
    assert_eq!(unseen, ["held_result_read", "workspace_registered", "signed_in", "signed_out"]);
}

#[tokio::test]
async fn whoever_submits_approves_and_releases_is_named_with_their_key() {
    let asks = json!({"version": "v1", "rules": [{"id": "ask", "decision": "require_approval", "reason": "why not"}]});
    let api = Api::start(asks).await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let job = api.does(&ann, "POST", "/api/v1/jobs", &json!({"topic": "job.a", "context": {}})).await;
    let path = format!("/api/v1/approvals/{}/reject", job["job_id"].as_str().unwrap());
    api.does(&bob, "POST", &path, &Value::Null).await;
    let page = api.does(&ann, "GET", "/api/v1/audit/events?from=1h", &Value::Null).await;
    let by: Vec<(&str, &str)> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["job_id"].is_string())
        .map(|entry| (entry["identity"].as_str().unwrap(), entry["extra"]["by_key"].as_str().unwrap()))
        .collect();
    assert_eq!(by, [("bob", api.key_id("bob").as_str()), ("ann", api.key_id("ann").as_str())]);
}

#[tokio::test]
async fn a_workspace_that_is_given_its_token_or_moves_is_recorded_and_one_that_restarts_is_not() {
    let api = Api::open().await;
    let ann = api.named_key("ann", "acme", USER).await;
    let id = "6f1c1f2e-8f0a-4c55-9a55-0d7b3f6c9a01";
    let register = |url: &str| json!({"id": id, "url": url, "agent_card": {"name": "a"}});
    for url in ["http://127.0.0.1:9001", "http://127.0.0.1:9001", "http://127.0.0.1:9002"] {
        api.does(&ann, "POST", "/registry/register", &register(url)).await;
    }
    let by = format!("acme ann {}", api.key_id("ann"));
    let expected =
        ["workspace_registered", "workspace_registered"].map(|action| (action.to_owned(), by.clone()));
    assert_eq!(api.acts().await, expected);
}
