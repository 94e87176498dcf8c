//! The console: its schema, who sees what, and people's decisions.

mod stream;

use super::support::{Api, USER};
use super::watched::{self, payload};
use reveille_core::fleet::{Beat, Load};
use reveille_core::id::{JobId, TenantId, WorkerId};
use reveille_core::placement::routing::Routing;
use reveille_engine::Rules;
use reveille_roster::Scope;
use reveille_test_kit::{NOON, TestWorker, idle, succeeded};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const ALL: &[Scope] = &[Scope::Ingest, Scope::Read, Scope::Write];
const EVENTS: &str = "/openorca/events";

async fn snapshot(api: &Api, key: &str, query: &str) -> Value {
    let (status, reply) = api.call(key, "GET", &format!("/openorca/snapshot{query}"), "").await;
    assert_eq!(status, 200, "{reply}");
    reply
}

fn cap_worker(api: &Api, id: &str, tenant: &str) {
    let load = Load { max_parallel_jobs: 4, memory: 37.5, ..Load::default() };
    let beat = Beat { kind: "research".to_owned(), region: "fra".to_owned(), load, ..Beat::default() };
    api.engine.fleet().beat(&WorkerId::known(id), &TenantId::known(tenant), &beat);
}

/// Topics go to one pool.
fn route(api: &Api, topics: &[&'static str]) {
    let topics = topics.iter().map(|topic| (*topic, vec!["default"]));
    let routing = Arc::new(Routing::mapped(topics, [("default", vec![])]));
    let policy = api.engine.rules().policy.clone();
    api.engine.use_rules(Rules { routing, policy, ..Rules::default() });
}

async fn submit(api: &Api, key: &str, topic: &str) -> String {
    let (status, reply) = api.submit(key, json!({"topic": topic, "context": {}})).await;
    assert_eq!(status, 200, "{reply}");
    reply["job_id"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_runtime_tells_of_itself_without_a_key() {
    let api = watched::start().await;
    let (status, reply) = api.send("GET", "/openorca/runtime-info", &[], "").await.status_and_json();
    assert_eq!(
        (status, &reply["runtime"], &reply["language"]),
        (200, &json!("voicegateway"), &json!("rust"))
    );
    assert_eq!(reply["supports"], json!({"sse": true, "interventions": true, "snapshots": true}));
    for path in ["/openorca/snapshot", EVENTS] {
        let (status, reply) = api.send("GET", path, &[], "").await.status_and_json();
        assert_eq!((status, reply), (401, json!({"detail": "Authentication required"})));
    }
    let (acme, beats) = (api.key("acme", USER).await, api.key("acme", &[Scope::Ingest]).await);
    for path in ["/openorca/snapshot", EVENTS] {
        let foreign = api.call(&acme, "GET", &format!("{path}?tenant=zeta"), "").await;
        assert_eq!(foreign, (403, json!({"detail": "Not authorized to read another tenant's data"})));
        assert_eq!(api.call(&beats, "GET", path, "").await.0, 403, "jobs are not for agents");
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_has_what_the_console_expects() {
    let api = watched::start().await;
    let key = api.key("acme", ALL).await;
    let started = NOON.0 as f64 / 1000.0 - 3.5 * 3600.0;
    let busy = json!({
        "status": "busy", "active_sessions": 2, "started_at": started, "project": "Research",
        "memory_rss_bytes": 1, "memory_total_bytes": 4,
    });
    assert_eq!(api.beat(&key, &payload("a1", busy)).await, 202);
    assert_eq!(api.beat(&key, &payload("cap:w1", json!({"host": null}))).await, 202);
    cap_worker(&api, "w1", "acme");
    let snapshot = snapshot(&api, &key, "").await;
    let mut nodes = snapshot["agents"].as_array().unwrap().clone();
    nodes.sort_by_key(|node| node["id"].to_string());
    assert_eq!(
        nodes[0],
        json!({
            "id": "a1", "name": "myvoiceagents", "machineId": "worker-host-1", "machineName": "worker-host-1",
            "status": "active", "domain": "research", "integrations": [], "currentTaskId": null,
            "currentAction": "2 live calls", "memoryUsage": 25.0, "uptime": "3h", "tasksCompleted": 0,
            "collaboratingWith": [], "interventionRequired": false, "activityLevel": 40, "loadedCores": [],
            "knowledgeContributions": 0, "graphAccess": "read", "activeSessions": 2,
            "contract": "voicegateway", "tenant": "acme", "lastSeen": "2026-11-15T12:00:00.000Z",
        })
    );
    let ids: Vec<_> = nodes.iter().map(|node| (&node["id"], &node["domain"])).collect();
    assert_eq!(ids[1], (&json!("agent:cap:w1"), &json!("communications")), "not to be taken for a worker");
    assert_eq!(ids[2], (&json!("cap:w1"), &json!("research")));
    assert_eq!(nodes[2]["memoryUsage"], 37.5);
    let machine =
        snapshot["machines"].as_array().unwrap().iter().find(|m| m["id"] == "worker-host-1").unwrap();
    assert_eq!(
        machine,
        &json!({"id": "worker-host-1", "name": "worker-host-1", "os": "linux", "location": "iad",
                "isOnline": true, "lastSeen": "2026-11-15T12:00:00.000Z"})
    );
    assert_eq!(
        snapshot["fleetHealth"],
        json!({"totalAgents": 3, "activeAgents": 1, "offlineAgents": 0, "interventionsRequired": 0,
               "tasksInProgress": 2, "tasksCompletedToday": 0, "swarmsActive": 0, "overallHealth": "healthy"})
    );
    assert_eq!(snapshot["meta"]["runtime"], "voicegateway");
    assert_eq!(snapshot["meta"]["generatedAt"], "2026-11-15T12:00:00.000Z");
    assert_eq!(snapshot["meta"]["connectionStatus"], "connected");
    for empty in ["tasks", "actionLog", "interventions", "swarms"] {
        assert_eq!(snapshot[empty], json!([]), "{empty}");
    }
}

#[tokio::test(start_paused = true)]
async fn operators_see_every_tenant_and_tenants_only_themselves() {
    let api = watched::start().await;
    let (acme, zeta) = (api.key("acme", ALL).await, api.key("zeta", ALL).await);
    let operator = api.key("ops", &[Scope::Admin]).await;
    for key in [&acme, &zeta] {
        assert_eq!(api.beat(key, &payload("w1", json!({}))).await, 202);
    }
    let ids = |snapshot: &Value| {
        let nodes = snapshot["agents"].as_array().unwrap().iter();
        let mut ids: Vec<String> = nodes.map(|node| node["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&snapshot(&api, &acme, "").await), ["w1"]);
    assert_eq!(ids(&snapshot(&api, &operator, "").await), ["acme/w1", "zeta/w1"]);
    let one = snapshot(&api, &operator, "?tenant=zeta").await;
    assert_eq!((ids(&one), &one["fleetHealth"]["totalAgents"]), (vec!["w1".to_owned()], &json!(1)));
    let mut stream = api.open(&operator, EVENTS, &[]).await;
    assert_eq!(ids(&stream.data().await["snapshot"]), ["acme/w1", "zeta/w1"]);
    assert_eq!(api.beat(&zeta, &payload("w1", json!({"status": "busy"}))).await, 202);
    let frame = stream.until("agent.updated").await;
    assert_eq!((&frame["agent"]["id"], &frame["agent"]["status"]), (&json!("zeta/w1"), &json!("active")));
}

#[tokio::test(start_paused = true)]
async fn interventions_appear_and_are_decided() {
    let api = watched::start().await;
    route(&api, &["job.ask"]);
    let (acme, zeta) = (api.key("acme", ALL).await, api.key("zeta", ALL).await);
    let boss = api.named_key("boss", "acme", ALL).await;
    let (reader, operator) = (api.key("acme", &[Scope::Read]).await, api.key("ops", &[Scope::Admin]).await);
    let mut stream = api.open(&acme, EVENTS, &[]).await;
    let mut foreign = api.open(&zeta, EVENTS, &[]).await;
    stream.data().await;
    foreign.data().await;
    let (first, second) = (submit(&api, &acme, "job.ask").await, submit(&api, &acme, "job.ask").await);
    let created = stream.until("intervention.created").await;
    let expected = json!({
        "id": first, "agentId": "", "agentName": created["intervention"]["agentName"], "type": "approval_needed",
        "question": "May a job on job.ask run?", "context": "Rule ask-first: it costs money",
        "options": ["approve", "deny", "later"], "timestamp": "2026-11-15T12:00:00.000Z", "priority": "medium",
    });
    assert_eq!(created["intervention"], expected);
    assert_eq!(stream.until("intervention.created").await["intervention"]["id"], second.as_str());
    assert_eq!(stream.until("fleet.updated").await["fleetHealth"]["interventionsRequired"], 2);
    let seen = snapshot(&api, &acme, "").await;
    assert_eq!(seen["interventions"].as_array().unwrap().len(), 2);
    assert_eq!(seen["tasks"][0]["status"], "waiting_approval");
    assert_eq!(seen["fleetHealth"]["overallHealth"], "degraded");

    let resolve = async |key: &str, id: &str, action: &str| {
        let body = json!({"interventionId": id, "action": action, "actor": {"type": "human", "name": "Ann"}});
        api.call(key, "POST", "/openorca/interventions/resolve", &body.to_string()).await
    };
    assert_eq!(
        resolve(&zeta, &first, "approve").await,
        (404, json!({"detail": "There is no such intervention"}))
    );
    assert_eq!(resolve(&acme, "nope", "approve").await.0, 404);
    assert_eq!(resolve(&reader, &first, "approve").await.0, 403);
    let bad = resolve(&acme, &first, "explode").await;
    assert_eq!(bad, (400, json!({"detail": "action must be approve, deny, or later"})));
    for body in ["", "{}", r#"{"interventionId": 7}"#] {
        let bad = api.call(&acme, "POST", "/openorca/interventions/resolve", body).await;
        assert_eq!(bad, (400, json!({"detail": "interventionId is required"})));
    }
    assert_eq!(resolve(&acme, &first, "later").await.0, 200);
    assert_eq!(stream.raw_within(Duration::from_secs(3)).await, None, "later changes nothing");

    assert_eq!(resolve(&acme, &first, "approve").await.0, 403, "it is its own");
    for _ in 0..2 {
        assert_eq!(resolve(&boss, &first, "approve").await, (200, json!({"status": "resolved"})));
    }
    let told = stream.until("intervention.resolved").await;
    assert_eq!((&told["interventionId"], &told["resolution"]), (&json!(first), &json!("approve")));
    assert_eq!(stream.until("fleet.updated").await["fleetHealth"]["interventionsRequired"], 1);
    assert_eq!(resolve(&acme, &first, "deny").await.0, 409, "it is decided");
    assert_eq!(resolve(&operator, &second, "deny").await.0, 200);
    let told = stream.until("intervention.resolved").await;
    assert_eq!((&told["interventionId"], &told["resolution"]), (&json!(second), &json!("deny")));
    let job = async |id: &str| api.engine.jobs().job(&JobId::known(id)).await.unwrap().unwrap();
    assert_eq!(job(&first).await.approved_by(), Some("boss"));
    assert_eq!(job(&second).await.state().as_str(), "DENIED");
    assert_eq!(snapshot(&api, &acme, "").await["interventions"], json!([]));
    assert_eq!(foreign.raw_within(Duration::from_secs(3)).await, None, "no event of another tenant");
}

#[tokio::test(start_paused = true)]
async fn an_intervention_that_policy_takes_back_is_told_as_what_became_of_the_job() {
    let api = watched::start().await;
    route(&api, &["job.ask"]);
    let acme = api.key("acme", ALL).await;
    for (decision, resolution) in [("allow", "approve"), ("deny", "deny")] {
        let mut stream = api.open(&acme, EVENTS, &[]).await;
        stream.data().await;
        let asks = json!({"version": decision, "rules": [{"id": "ask", "decision": "require_approval"}]});
        api.reload(asks).await;
        let id = submit(&api, &acme, "job.ask").await;
        stream.until("intervention.created").await;
        api.reload(json!({"rules": [{"id": "now", "decision": decision}]})).await;
        let told = stream.until("intervention.resolved").await;
        assert_eq!((&told["interventionId"], &told["resolution"]), (&json!(id), &json!(resolution)));
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_link_to_the_node_that_has_them() {
    let api = watched::start().await;
    route(&api, &["job.run"]);
    let (ops, acme) = (api.key("ops", ALL).await, api.key("acme", ALL).await);
    let mut stream = api.open(&acme, EVENTS, &[]).await;
    stream.data().await;
    let id = submit(&api, &acme, "job.run").await;
    let created = stream.until("task.created").await;
    assert_eq!((&created["task"]["id"], &created["task"]["status"]), (&json!(id), &json!("pending")));
    let mut worker = TestWorker::listen(&api.bus, "w1").await;
    let load = idle(4);
    let pool = Some(reveille_core::id::PoolId::known("default"));
    let beat = Beat { pool, load, agent_name: "secret name".to_owned(), ..Beat::default() };
    api.engine.fleet().beat(&WorkerId::known("w1"), &TenantId::known("ops"), &beat);
    worker.next().await;
    let task = loop {
        let task = stream.until("task.updated").await["task"].clone();
        if task["status"] == "in_progress" {
            break task;
        }
    };
    assert_eq!(
        (&task["agentId"], &task["agentName"], &task["status"]),
        (&json!("cap:w1"), &json!("w1"), &json!("in_progress")),
        "another tenant's worker is named and not described"
    );
    assert_eq!(snapshot(&api, &acme, "").await["agents"], json!([]));
    let own = snapshot(&api, &ops, "").await;
    assert_eq!(
        (&own["agents"][0]["name"], &own["agents"][0]["currentTaskId"]),
        (&json!("secret name"), &Value::Null)
    );
    let operator = api.key("root", &[Scope::Admin]).await;
    let all = snapshot(&api, &operator, "").await;
    assert_eq!(all["agents"][0]["currentTaskId"], id.as_str());
    assert_eq!(
        (&all["agents"][0]["id"], &all["tasks"][0]["agentId"]),
        (&json!("ops/cap:w1"), &json!("ops/cap:w1"))
    );

    worker.report(succeeded(&id)).await;
    let task = stream.until("task.updated").await["task"].clone();
    assert_eq!((&task["status"], &task["progress"]), (&json!("completed"), &json!(100)));
    let health = stream.until("fleet.updated").await["fleetHealth"].clone();
    assert_eq!(health["tasksCompletedToday"], 1);
    assert_eq!(snapshot(&api, &acme, "").await["fleetHealth"], health);
    assert_eq!(snapshot(&api, &ops, "").await["fleetHealth"]["tasksCompletedToday"], 0, "it was acme's");
}
