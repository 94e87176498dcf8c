//! One tenant asks for all that there is: it gets what it may have, is told which quota it has reached, and the others
//! have theirs.

use crate::http::support::{Api, USER};
use crate::http::watched::payload;
use bytes::Bytes;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::State;
use reveille_core::reason::Reason;
use reveille_core::request::Request;
use reveille_engine::{Audience, LimitSettings, Settings, Submission, Submitted, Submitter};
use reveille_roster::Scope;
use reveille_store::{AuditQuery, AuditTrail, BlobKey, PutMode, StoreError};
use reveille_test_kit::pass;
use serde_json::{Value, json};

const INGEST: &[Scope] = &[Scope::Ingest];

/// `job.ask` waits for a person, `job.slow` is throttled, and everything else is allowed.
async fn api(limits: LimitSettings) -> Api {
    let policy = json!({"rules": [
        {"id": "ask", "match": {"topics": ["job.ask"]}, "decision": "require_approval"},
        {"id": "slow", "match": {"topics": ["job.slow"]}, "decision": "throttle", "reason": "later"},
        {"id": "all", "decision": "allow"},
    ]});
    Api::start_with(policy, Settings { limits, ..Settings::default() }).await
}

fn names_the_quota(reply: &(u16, Value), quota: &str, max: u64) {
    let (status, body) = reply;
    assert_eq!(
        (*status, &body["code"], &body["quota"], &body["max"]),
        (429, &json!("quota_exceeded"), &json!(quota), &json!(max)),
        "{body}"
    );
}

fn counted(api: &Api, quota: &str, times: u64) {
    let page = api.engine.metrics_page();
    let line = format!("cordum_scheduler_quota_exceeded_total{{quota=\"{quota}\"}} {times}\n");
    let said: Vec<&str> = page.lines().filter(|line| line.contains("quota_exceeded_total")).collect();
    assert!(page.contains(&line), "{line} is not in {said:?}");
}

/// A job that came over the bus: nobody waits for the answer.
async fn over_the_bus(api: &Api, tenant: &str, id: &str, topic: &str) -> JobId {
    let request = Request { tenant: TenantId::known(tenant), ..Request::plain(id, topic) };
    let submission = Submission { request, context: None, submitter: Submitter::IsGone };
    match api.engine.jobs().submit(submission).await.unwrap() {
        Submitted::New(job) => job.id().clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn one_ingest_key_fills_the_fleet_for_all_tenants() {
    let api = api(LimitSettings { members_per_tenant: 3, ..LimitSettings::default() }).await;
    let (greedy, honest) = (api.key("greedy", INGEST).await, api.key("honest", INGEST).await);
    let batch = async |from: u32| {
        let beats: Vec<Value> = (from..from + 5).map(|n| payload(&n.to_string(), json!({}))).collect();
        api.call(&greedy, "POST", "/api/v1/presence", &json!({"beats": beats}).to_string()).await
    };
    let (status, taken) = batch(0).await;
    assert_eq!((status, &taken["accepted"]), (202, &json!(3)), "the good ones are taken: {taken}");
    let refused: Vec<_> = taken["rejected"].as_array().unwrap().iter().map(|one| &one["index"]).collect();
    assert_eq!(refused, [&json!(3), &json!(4)]);
    assert!(taken["rejected"][0]["error"].as_str().unwrap().contains("quota of members"), "{taken}");
    names_the_quota(&batch(10).await, "members", 3);

    let beat = async |key: &str, id: &str| {
        api.call(key, "POST", "/v1/agents/heartbeat", &payload(id, json!({})).to_string()).await
    };
    let (status, detail) = beat(&greedy, "one-more").await;
    assert_eq!((status, &detail["quota"]), (429, &json!("members")), "{detail}");
    assert_eq!(beat(&greedy, "0").await.0, 202, "who is there goes on beating");
    assert_eq!(beat(&honest, "0").await.0, 202);
    counted(&api, "members", 2 + 5 + 1);
}

#[tokio::test(start_paused = true)]
async fn listing_the_agents_of_a_full_fleet_copies_every_one_of_them() {
    let api = api(LimitSettings::default()).await;
    let (acme, zeta) = (api.key("acme", INGEST).await, api.key("zeta", INGEST).await);
    for (key, id) in [(&acme, "first"), (&zeta, "other"), (&acme, "second"), (&acme, "third")] {
        api.call(key, "POST", "/v1/agents/heartbeat", &payload(id, json!({})).to_string()).await;
        pass(1).await;
    }
    let listed = |audience: &Audience, max| {
        let agents = api.engine.fleet().agents(audience, max);
        agents.iter().map(|agent| agent.id.to_string()).collect::<Vec<_>>()
    };
    let acme = Audience::Tenant(TenantId::known("acme"));
    assert_eq!(listed(&acme, 2), ["third", "second"], "those heard last, and no more are copied");
    assert_eq!(listed(&acme, 0), Vec::<String>::new());
    assert_eq!(listed(&acme, 9), ["third", "second", "first"]);
    assert_eq!(listed(&Audience::Everyone, 3), ["third", "second", "other"]);
}

#[tokio::test(start_paused = true)]
async fn one_start_of_nested_subworkflows_makes_runs_past_the_quota() {
    let api = api(LimitSettings { runs_per_tenant: 6, ..LimitSettings::default() }).await;
    let (greedy, honest) = (api.key("greedy", USER).await, api.key("honest", USER).await);
    let save = async |key: &str, id: &str, steps: Value| {
        let document = json!({"id": id, "name": id, "steps": steps});
        assert_eq!(api.call(key, "POST", "/api/v1/workflows", &document.to_string()).await.0, 201);
    };
    let five = |of: &str| {
        let step = json!({"type": "subworkflow", "input": {"workflow_id": of}});
        json!({"a": step, "b": step, "c": step, "d": step, "e": step})
    };
    for key in [&greedy, &honest] {
        save(key, "leaf", json!({"wait": {"type": "delay", "delay_sec": 3600}})).await;
    }
    save(&greedy, "branch", five("leaf")).await;
    save(&greedy, "root", five("branch")).await;
    let start = async |key: &str, id: &str| {
        api.call(key, "POST", &format!("/api/v1/workflows/{id}/runs"), "{}").await
    };
    let (status, started) = start(&greedy, "root").await;
    assert_eq!(status, 200, "{started}");
    pass(5).await;
    let (_, runs) = api.call(&greedy, "GET", "/api/v1/workflow-runs", "").await;
    let made = runs["items"].as_array().unwrap();
    assert!(made.len() <= 6, "one start made {} runs", made.len());
    let run = format!("/api/v1/workflow-runs/{}", started["run_id"].as_str().unwrap());
    let words = api.call(&greedy, "GET", &run, "").await.1.to_string();
    assert!(words.contains("quota of runs, which is 6"), "a step says why it failed: {words}");
    assert_eq!(start(&honest, "leaf").await.0, 200);

    let leaves = async || loop {
        let (status, reply) = start(&greedy, "leaf").await;
        if status != 200 {
            return (status, reply);
        }
    };
    let (status, reply) = leaves().await;
    assert_eq!((status, &reply["code"], &reply["quota"]), (429, &json!("too_many_runs"), &json!("runs")));
    assert!(api.engine.metrics_page().contains("quota_exceeded_total{quota=\"runs\"}"));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_job_over_the_bus_is_judged_for_ever_and_fills_the_trail() {
    let api = api(LimitSettings::default()).await;
    let id = over_the_bus(&api, "greedy", "j", "job.slow").await;
    let entries = async || {
        let query =
            AuditQuery { tenant: Some(TenantId::known("greedy")), limit: 100, ..AuditQuery::default() };
        api.world.store.audit(&query).await.unwrap().items.len()
    };
    pass(120).await;
    let job = api.engine.jobs().job(&id).await.unwrap().unwrap();
    assert_eq!((job.state(), job.verdicts.len(), job.marks.len()), (State::Pending, 1, 2));
    assert!(job.revision <= 8, "it is looked at ever later: {}", job.revision);
    assert_eq!(entries().await, 1, "one decision is one entry");
    pass(24 * 60).await;
    let job = api.engine.jobs().job(&id).await.unwrap().unwrap();
    let ending = job.ending().unwrap();
    assert_eq!((ending.state, ending.reason), (State::Failed, Some(Reason::MaxSchedulingRetries)));
    assert_eq!(entries().await, 1);
}

#[tokio::test(start_paused = true)]
async fn one_tenant_opens_every_stream_there_is() {
    let api = api(LimitSettings { subscribers_per_tenant: 2, ..LimitSettings::default() }).await;
    let (greedy, honest) = (api.key("greedy", USER).await, api.key("honest", USER).await);
    let first = api.open(&greedy, "/api/v1/events", &[]).await;
    let _second = api.open(&greedy, "/openorca/events", &[]).await;
    names_the_quota(&api.call(&greedy, "GET", "/api/v1/events", "").await, "subscribers", 2);
    let (status, detail) = api.call(&greedy, "GET", "/openorca/events", "").await;
    assert_eq!((status, &detail["quota"]), (429, &json!("subscribers")));
    let _others = api.open(&honest, "/api/v1/events", &[]).await;
    counted(&api, "subscribers", 2);
    drop(first);
    api.open(&greedy, "/api/v1/events", &[]).await;
}

#[tokio::test(start_paused = true)]
async fn one_tenant_asks_people_about_more_than_they_can_answer() {
    let api = api(LimitSettings { approvals_per_tenant: 2, ..LimitSettings::default() }).await;
    let (greedy, honest) = (api.key("greedy", USER).await, api.key("honest", USER).await);
    let ask = |name: &str| json!({"topic": "job.ask", "prompt": "p", "idempotency_key": name});
    let (_, first) = api.submit(&greedy, ask("a")).await;
    assert_eq!(api.submit(&greedy, ask("b")).await.0, 200);
    names_the_quota(&api.submit(&greedy, ask("c")).await, "approvals", 2);
    let (status, again) = api.submit(&greedy, ask("a")).await;
    assert_eq!((status, &again["job_id"]), (200, &first["job_id"]), "who asks again is told of the job");
    let (_, listed) = api.call(&greedy, "GET", "/api/v1/jobs", "").await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "what was refused is not stored");
    assert_eq!(api.submit(&greedy, json!({"topic": "job.a", "prompt": "p"})).await.0, 200);
    assert_eq!(api.submit(&honest, ask("a")).await.0, 200);

    let id = over_the_bus(&api, "greedy", "bus", "job.ask").await;
    let job = api.engine.jobs().job(&id).await.unwrap().unwrap();
    let ending = job.ending().unwrap();
    assert_eq!((ending.state, ending.reason), (State::Denied, Some(Reason::ApprovalQuota)));
    assert!(ending.words.contains("quota of approvals, which is 2"), "{}", ending.words);
    counted(&api, "approvals", 2);

    let path = format!("/api/v1/jobs/{}/cancel", first["job_id"].as_str().unwrap());
    assert_eq!(api.call(&greedy, "POST", &path, "{}").await.0, 200);
    assert_eq!(api.submit(&greedy, ask("c")).await.0, 200, "one that is decided makes room");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_policy_later_wants_asked_about_counts_too() {
    let api = api(LimitSettings { approvals_per_tenant: 1, ..LimitSettings::default() }).await;
    let (one, two) = (
        over_the_bus(&api, "greedy", "a", "job.slow").await,
        over_the_bus(&api, "greedy", "b", "job.slow").await,
    );
    api.reload(json!({"rules": [{"id": "ask", "decision": "require_approval"}]})).await;
    pass(60).await;
    let mut states = Vec::new();
    for id in [one, two] {
        states.push(api.engine.jobs().job(&id).await.unwrap().unwrap().state());
    }
    states.sort_unstable();
    assert_eq!(states, [State::ApprovalRequired, State::Denied]);
}

#[tokio::test(start_paused = true)]
async fn one_tenant_sets_up_every_workspace_there_is() {
    let api = api(LimitSettings { workspaces_per_tenant: 2, ..LimitSettings::default() }).await;
    let (greedy, honest) = (api.key("greedy", USER).await, api.key("honest", USER).await);
    let set_up = async |key: &str| api.call(key, "POST", "/workspaces", r#"{"name": "w"}"#).await;
    assert_eq!((set_up(&greedy).await.0, set_up(&greedy).await.0), (201, 201));
    names_the_quota(&set_up(&greedy).await, "workspaces", 2);
    let body =
        json!({"id": "7f9c24e8-3b12-4fef-91e0-56ad8e2f1c6b", "url": "http://127.0.0.1:1/", "agent_card": {}});
    let registered = api.call(&greedy, "POST", "/registry/register", &body.to_string()).await;
    names_the_quota(&registered, "workspaces", 2);
    assert_eq!(set_up(&honest).await.0, 201);
    counted(&api, "workspaces", 2);
}

#[tokio::test(start_paused = true)]
async fn one_tenant_fills_the_disk_with_inputs() {
    let limits = LimitSettings { blob_bytes_per_tenant: 1_000, ..LimitSettings::default() };
    let settings = Settings { blob_ttl_ms: 3_600_000, limits, ..Settings::default() };
    let policy = json!({"rules": [{"id": "all", "decision": "allow"}]});
    let api = Api::start_with(policy.clone(), settings).await;
    let (greedy, honest) = (api.key("greedy", USER).await, api.key("honest", USER).await);
    let large = |name: &str| json!({"topic": "job.a", "context": "x".repeat(600), "idempotency_key": name});
    assert_eq!(api.submit(&greedy, large("a")).await.0, 200);
    names_the_quota(&api.submit(&greedy, large("b")).await, "blob_bytes", 1_000);
    assert_eq!(api.submit(&greedy, large("a")).await.0, 200, "who asks again is told of the job");
    assert_eq!(api.submit(&honest, large("a")).await.0, 200);
    counted(&api, "blob_bytes", 1);

    // A result of a job is its tenant's, whoever writes it; nobody's in particular is the door owner's.
    let blobs = api.engine.jobs().readable_blobs();
    let expires_at = api.engine.now() + 3_600_000;
    let put = async |key: &str, len: usize| {
        let key = BlobKey::parse(key).unwrap();
        blobs.put_blob(key, Bytes::from(vec![7; len]), expires_at, PutMode::Always).await
    };
    let id = over_the_bus(&api, "greedy", "j", "job.a").await;
    let refused = put(&format!("res:{id}"), 600).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Full(words) if words.contains("blob_bytes")), "{refused}");
    assert!(put(&format!("res:{id}"), 300).await.unwrap());
    assert!(put("art:anything", 900).await.unwrap() && put("art:more", 900).await.is_err());

    pass(1).await;
    let again = api.restarted(policy).await;
    let greedy = again.key("greedy", USER).await;
    pass(1).await;
    names_the_quota(&again.submit(&greedy, large("c")).await, "blob_bytes", 1_000);
    pass(2 * 3_600).await;
    assert_eq!(again.submit(&greedy, large("c")).await.0, 200, "what has expired makes room");
}
