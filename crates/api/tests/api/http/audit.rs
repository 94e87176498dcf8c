//! The audit trail over HTTP: what is in it, who may read it, and whether it holds.

use super::support::{Api, USER, eventually};
use reveille_core::id::{JobId, TenantId};
use reveille_engine::BadFile;
use reveille_roster::Scope;
use reveille_store::AuditTrail;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::task::JoinSet;

const ASK: &str = "job.ask";

fn asks() -> Value {
    json!({"version": "v1", "rules": [
        {"id": "ask-first", "match": {"topics": [ASK]}, "decision": "require_approval", "reason": "it costs"},
        {"id": "never", "match": {"topics": ["job.never"]}, "decision": "deny", "reason": "no"},
        {"id": "all", "decision": "allow"},
    ]})
}

impl Api {
    async fn trail(&self, key: &str, query: &str) -> Vec<Value> {
        let (status, page) = self.call(key, "GET", &format!("/api/v1/audit/events{query}"), "").await;
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().unwrap().clone();
        assert_eq!(page["returned"], items.len());
        items
    }

    async fn sent(&self, key: &str, topic: &str) -> String {
        let (_, reply) = self.submit(key, json!({"topic": topic, "context": {}})).await;
        reply["job_id"].as_str().unwrap().to_owned()
    }

    /// The entries about policy, newest first.
    async fn policies(&self, operator: &str) -> Vec<Value> {
        self.trail(operator, "?event_type=safety.policy_change&tenant=default").await
    }
}

/// One entry's fields, as one line.
fn told(entry: &Value) -> String {
    ["event_type", "severity", "action", "decision", "matched_rule", "identity"]
        .map(|field| entry[field].as_str().unwrap_or("-"))
        .join(" ")
}

#[tokio::test]
async fn decisions_and_approvals_are_told_with_who_what_and_why() {
    let api = Api::start(asks()).await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let id = api.sent(&ann, ASK).await;
    let path = format!("/api/v1/approvals/{id}/approve");
    assert_eq!(api.call(&bob, "POST", &path, r#"{"reason": "fine"}"#).await.0, 200);
    let denied = api.sent(&ann, "job.never").await;
    let entries = api.trail(&ann, &format!("?job_id={id}")).await;
    let lines: Vec<String> = entries.iter().map(told).collect();
    assert_eq!(lines[0].split(' ').take(3).collect::<Vec<_>>(), ["safety.decision", "INFO", "allow"]);
    assert_eq!(lines[1], "safety.approval MEDIUM approve - ask-first bob");
    assert!(lines[2].starts_with("safety.decision MEDIUM require_approval REQUIRE_APPROVAL ask-first"));
    assert_eq!((&entries[1]["reason"], &entries[2]["reason"]), (&json!("fine"), &json!("it costs")));
    assert!(entries[1]["policy_version"].as_str().unwrap().starts_with("v1:"));
    assert_eq!(entries[2]["extra"]["topic"], ASK);
    assert_eq!(entries[1]["prev_hash"], entries[2]["event_hash"], "each holds the hash of the one before");
    let seq = entries[1]["seq"].as_u64().unwrap();
    assert_eq!(entries[1]["id"], format!("acme:{seq}"));
    assert!(entries[1]["timestamp"].as_str().unwrap().ends_with('Z'));
    let entries = api.trail(&ann, "?severity=HIGH&event_type=safety.decision&from=1h").await;
    assert_eq!((entries.len(), &entries[0]["job_id"]), (1, &json!(denied)));
    assert!(api.trail(&ann, "?to=1h").await.is_empty(), "nothing is that old");
}

#[tokio::test]
async fn keys_leave_an_entry_with_their_tenant_and_never_their_secret() {
    let api = Api::start(asks()).await;
    let operator = api.named_key("root", "ops", &[Scope::Admin]).await;
    let acme = api.key("acme", USER).await;
    let body = json!({"name": "new", "tenant": "acme", "scopes": ["read", "ingest"]}).to_string();
    let (status, made) = api.call(&operator, "POST", "/api/v1/auth/keys", &body).await;
    assert_eq!(status, 201, "{made}");
    let id = made["key"]["id"].as_str().unwrap();
    for _ in 0..2 {
        let path = format!("/api/v1/auth/keys/{id}");
        assert_eq!(api.call(&operator, "DELETE", &path, "").await.0, 204);
    }
    let entries = api.trail(&acme, "?event_type=system.auth").await;
    let lines: Vec<String> = entries.iter().map(told).collect();
    // Neither a decision nor a rule.
    let expected = ["key_revoked -  root", "key_created -  root", "key_created -  test"];
    assert_eq!(lines, expected.map(|line| format!("system.auth LOW {line}")));
    let extra = json!({"key_id": id, "name": "new", "scopes": "read,ingest"});
    assert_eq!((&entries[0]["extra"], &entries[1]["extra"]), (&extra, &extra));
    assert_eq!((&entries[0]["job_id"], &entries[0]["tenant_id"]), (&Value::Null, &json!("acme")));
    let secret = made["secret"].as_str().unwrap();
    assert!(!json!(entries).to_string().contains(secret));
    let own = api.trail(&operator, "?event_type=system.auth&tenant=ops").await;
    assert_eq!((own.len(), &own[0]["severity"]), (1, &json!("MEDIUM")), "an operator's key matters more");
}

#[tokio::test]
async fn a_change_of_policy_names_both_and_says_how_it_came() {
    let api = Api::start(asks()).await;
    let operator = api.key("ops", &[Scope::Admin]).await;
    let first = api.engine.rules().policy.snapshot().to_owned();
    let mut other = asks();
    other["version"] = json!("v2");
    api.reload(asks()).await;
    api.reload(other.clone()).await;
    eventually(async || api.policies(&operator).await.len() == 2).await;
    let entries = api.policies(&operator).await;
    let second = api.engine.rules().policy.snapshot().to_owned();
    let extra =
        |old: &str, new: &str, cause: &str| json!({"old_snapshot": old, "new_snapshot": new, "cause": cause});
    assert_eq!(entries[1]["extra"], extra("", &first, "start"));
    assert_eq!(entries[0]["extra"], extra(&first, &second, "reload"), "the same again is no change");
    assert_eq!(
        (&entries[0]["action"], &entries[0]["policy_version"]),
        (&json!("policy_changed"), &json!(second))
    );

    for text in ["one", "one", "two", "one"] {
        let (file, problem) = ("safety.yaml".to_owned(), format!("{text} is wrong"));
        api.engine.refuse_rules(&BadFile { file, problem, sha256: Some(text.to_owned()) });
    }
    eventually(async || api.policies(&operator).await.len() == 4).await;
    let refused = &api.policies(&operator).await[1];
    assert_eq!((&refused["action"], &refused["reason"]), (&json!("policy_refused"), &json!("one is wrong")));
    assert_eq!(
        (&refused["policy_version"], &refused["extra"]["file"]),
        (&json!(second), &json!("safety.yaml"))
    );

    let api = api.restarted(other).await;
    let api = api.restarted(asks()).await;
    let operator = api.key("ops", &[Scope::Admin]).await;
    eventually(async || api.policies(&operator).await.len() == 5).await;
    assert_eq!(api.policies(&operator).await[0]["extra"], extra(&second, &first, "start"));
}

#[tokio::test]
async fn a_tenant_reads_its_own_trail_and_an_operator_all() {
    let api = Api::start(asks()).await;
    let (acme, zeta) = (api.key("acme", USER).await, api.key("zeta", USER).await);
    let operator = api.key("ops", &[Scope::Admin]).await;
    let worker = api.named_key("w", "acme", &[Scope::Ingest]).await;
    for key in [&acme, &zeta, &acme] {
        api.sent(key, "job.a").await;
    }
    let decisions = "event_type=safety.decision";
    for (key, query, count) in [
        (&acme, "", 2),
        (&zeta, "", 1),
        (&zeta, "&tenant=zeta", 1),
        (&operator, "", 3),
        (&operator, "&tenant=zeta", 1),
        (&operator, "&tenant=nobody", 0),
    ] {
        assert_eq!(api.trail(key, &format!("?{decisions}{query}")).await.len(), count, "{query}");
    }
    let own = api.trail(&acme, "").await;
    assert!(own.iter().all(|entry| entry["tenant_id"] == "acme"));
    assert_eq!(api.call(&acme, "GET", "/api/v1/audit", "").await.1["items"], json!(own), "by either name");
    for (key, path, status) in [
        (&acme, "/audit/events?tenant=zeta", 403),
        (&acme, "/audit/verify?tenant=zeta", 403),
        (&worker, "/audit/events", 403),
        (&worker, "/audit/verify", 403),
        (&acme, "/audit/events?event_type=gossip", 400),
        (&acme, "/audit/events?severity=7", 400),
        (&acme, "/audit/events?from=soon", 400),
        (&acme, "/audit/events?cursor=x", 400),
    ] {
        assert_eq!(api.call(key, "GET", &format!("/api/v1{path}"), "").await.0, status, "{path}");
    }
}

#[tokio::test]
async fn a_chain_that_nobody_touched_verifies() {
    let api = Api::start(asks()).await;
    let acme = api.key("acme", USER).await;
    let operator = api.key("ops", &[Scope::Admin]).await;
    for _ in 0..7 {
        api.sent(&acme, "job.a").await;
    }
    let sound = |count: u64| {
        json!({"tenant_id": "acme", "status": "ok", "complete": true, "total_events": count, "verified_events": count,
            "gaps": [], "retention_boundary_seq": 1, "first_seq": 1, "last_seq": count})
    };
    assert_eq!(api.call(&acme, "GET", "/api/v1/audit/verify", "").await, (200, sound(8)));
    assert_eq!(api.call(&operator, "GET", "/api/v1/audit/verify?tenant=acme", "").await.1, sound(8));
    let (_, nobodys) = api.call(&operator, "GET", "/api/v1/audit/verify?tenant=nobody", "").await;
    assert_eq!((&nobodys["status"], &nobodys["first_seq"]), (&json!("ok"), &Value::Null));
    let now = api.engine.now();
    assert_eq!(api.world.store.prune_audit(now + 1, 3).await.unwrap(), 3);
    let (_, pruned) = api.call(&operator, "GET", "/api/v1/audit/verify?tenant=acme", "").await;
    assert_eq!((&pruned["status"], &pruned["gaps"]), (&json!("partial"), &json!([])), "{pruned}");
}

#[tokio::test]
async fn pages_of_the_trail_neither_skip_nor_repeat() {
    let api = Api::start(asks()).await;
    let (acme, zeta) = (api.key("acme", USER).await, api.key("zeta", USER).await);
    let operator = api.key("ops", &[Scope::Admin]).await;
    let mut expected = BTreeSet::new();
    for number in 0..25 {
        expected.insert(api.sent(if number % 3 == 0 { &zeta } else { &acme }, "job.a").await);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/audit?limit=4&event_type=safety.decision&cursor={cursor}");
        let (_, page) = api.call(&operator, "GET", &path, "").await;
        let ids = page["items"].as_array().unwrap().iter();
        seen.extend(ids.map(|entry| entry["job_id"].as_str().unwrap().to_owned()));
        api.sent(&acme, "job.a").await;
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(seen.len(), 25);
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected);
}

/// In the reference two submits that overlapped lost an entry.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn overlapping_submits_lose_no_entry() {
    const EACH: usize = 25;
    let api = Arc::new(Api::start(asks()).await);
    let mut submitters = JoinSet::new();
    for number in 0..16 {
        let key = api.named_key("ann", if number % 2 == 0 { "acme" } else { "zeta" }, USER).await;
        let api = api.clone();
        submitters.spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..EACH {
                ids.push(api.sent(&key, "job.a").await);
            }
            ids
        });
    }
    let submitted: BTreeSet<String> = submitters.join_all().await.into_iter().flatten().collect();
    let operator = api.key("ops", &[Scope::Admin]).await;
    let entries = api.trail(&operator, "?limit=500&event_type=safety.decision").await;
    let mut counts = BTreeMap::<String, usize>::new();
    for entry in &entries {
        *counts.entry(entry["job_id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!((submitted.len(), entries.len()), (16 * EACH, 16 * EACH));
    assert!(submitted.iter().all(|id| counts.get(id) == Some(&1)), "every decision once");
    for tenant in ["acme", "zeta"] {
        let path = format!("/api/v1/audit/verify?tenant={tenant}");
        assert_eq!(api.call(&operator, "GET", &path, "").await.1["status"], "ok");
    }
}

/// In the reference every entry named the gateway's own tenant, and no job.
#[tokio::test]
async fn an_entry_names_the_jobs_tenant_and_job() {
    let api = Api::start(asks()).await;
    let operator = api.key("ops", &[Scope::Admin]).await;
    for tenant in ["acme", "zeta"] {
        let id = api.sent(&api.key(tenant, USER).await, "job.a").await;
        let job = api.engine.jobs().job(&JobId::known(id.clone())).await.unwrap().unwrap();
        assert_eq!(job.request.tenant, TenantId::known(tenant));
        let entries = api.trail(&operator, &format!("?job_id={id}")).await;
        assert_eq!(entries.len(), 1);
        assert_eq!((&entries[0]["tenant_id"], &entries[0]["job_id"]), (&json!(tenant), &json!(id)));
        let seq = entries[0]["seq"].as_u64();
        assert_eq!(seq, Some(2), "the key was the first entry of its tenant's own chain");
    }
}
