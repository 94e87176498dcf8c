//! Policy over HTTP: what it would say, why, what it said, and what another one would have said.

use super::support::{Api, USER};
use super::watched;
use reveille_engine::Rules;
use reveille_engine::rules::read_policy;
use reveille_roster::Scope;
use serde_json::{Value, json};

const POLICY: &str = "
version: v7
rules:
  - id: prod
    match: {labels: {env: prod}}
    decision: deny
    reason: not in production
    remediations: [{id: stage, title: Use staging, add_labels: {env: staging}}]
  - id: dear
    when: int(job.labels.amount) > 100
    decision: require_approval
  - id: flood
    match: {topics: [job.flood]}
    velocity: {max_requests: 2, window_seconds: 60, key: tenant}
    decision: throttle
  - id: rest
    decision: allow_with_constraints
    constraints: {budgets: {max_runtime_ms: 5000}}
";

async fn governed() -> (Api, String) {
    let api = watched::start().await;
    let routing = api.engine.rules().routing.clone();
    api.engine.use_rules(Rules { policy: read_policy(POLICY).unwrap(), routing, ..Rules::default() });
    let key = api.key("acme", USER).await;
    (api, key)
}

async fn ask(api: &Api, key: &str, what: &str, body: Value) -> (u16, Value) {
    api.call(key, "POST", &format!("/api/v1/policy/{what}"), &body.to_string()).await
}

#[tokio::test(start_paused = true)]
async fn policy_says_what_it_would_decide_in_the_references_words() {
    let (api, key) = governed().await;
    let body = json!({"topic": "job.a", "labels": {"env": "prod"}, "meta": {"capability": "x"}});
    for what in ["evaluate", "simulate"] {
        let (status, reply) = ask(&api, &key, what, body.clone()).await;
        assert_eq!((status, &reply["decision"]), (200, &json!("DECISION_TYPE_DENY")), "{reply}");
        assert_eq!((&reply["ruleId"], &reply["reason"]), (&json!("prod"), &json!("not in production")));
        assert!(reply["policySnapshot"].as_str().unwrap().starts_with("v7:"));
        assert_eq!(reply["remediations"][0]["id"], "stage");
        assert_eq!((&reply["approvalRequired"], reply.get("trace")), (&json!(false), None));
    }
    let dear = json!({"topic": "job.a", "meta": {"labels": {"amount": "500"}}});
    let (_, reply) = ask(&api, &key, "evaluate", dear).await;
    assert_eq!(
        (&reply["decision"], &reply["approvalRequired"]),
        (&json!("DECISION_TYPE_REQUIRE_HUMAN"), &json!(true))
    );
    let (_, reply) = ask(&api, &key, "evaluate", json!({"topic": "job.a", "labels": {"amount": "5"}})).await;
    assert_eq!(reply["constraints"]["budgets"]["max_runtime_ms"], 5000);
}

#[tokio::test(start_paused = true)]
async fn explain_returns_the_trace_rule_by_rule() {
    let (api, key) = governed().await;
    let (status, reply) =
        ask(&api, &key, "explain", json!({"topic": "job.a", "labels": {"env": "dev", "amount": "7"}})).await;
    assert_eq!(status, 200);
    let told: Vec<(&str, bool)> = reply["trace"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["ruleId"].as_str().unwrap(), line["matched"].as_bool().unwrap()))
        .collect();
    assert_eq!(told, [("prod", false), ("dear", false), ("flood", false), ("rest", true)]);
    assert_eq!(reply["trace"][0]["why"], "label env: the job has \"dev\"");
    assert_eq!(reply["trace"][1]["why"], "when: not so: int(job.labels.amount) > 100");
}

#[tokio::test(start_paused = true)]
async fn asking_counts_nothing_and_submitting_does() {
    let (api, key) = governed().await;
    let flood = json!({"topic": "job.flood", "labels": {"amount": "1"}});
    for _ in 0..5 {
        let (_, reply) = ask(&api, &key, "evaluate", flood.clone()).await;
        assert_eq!(reply["ruleId"], "rest");
    }
    let job = json!({"topic": "job.flood", "context": {}, "labels": {"amount": "1"}});
    let statuses = [api.submit(&key, job.clone()).await.0, api.submit(&key, job.clone()).await.0];
    assert_eq!(statuses, [200, 200]);
    let (status, reply) = api.submit(&key, job.clone()).await;
    assert_eq!((status, &reply["rule_id"]), (429, &json!("flood")), "{reply}");
    let (_, trail) = api.call(&key, "GET", "/api/v1/audit?limit=1", "").await;
    let entry = &trail["items"][0];
    assert_eq!(
        (&entry["decision"], &entry["matched_rule"]),
        (&json!("THROTTLE"), &json!("flood")),
        "who is turned away is recorded: {entry}"
    );
    let other = api.key("zeta", USER).await;
    assert_eq!(api.submit(&other, job.clone()).await.0, 200, "another tenant is counted apart");
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    assert_eq!(api.submit(&key, job).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn every_decision_is_kept_with_its_rule_snapshot_and_facts() {
    let (api, key) = governed().await;
    let job =
        json!({"topic": "job.a", "context": {}, "labels": {"amount": "5", "env": "dev"}, "risk_tags": ["x"]});
    let (_, reply) = api.submit(&key, job).await;
    let path = format!("/api/v1/jobs/{}/decisions", reply["job_id"].as_str().unwrap());
    let (status, reply) = api.call(&key, "GET", &path, "").await;
    assert_eq!((status, reply.as_array().map(Vec::len)), (200, Some(1)), "{reply}");
    let decision = &reply[0];
    assert_eq!(
        (&decision["decision"], &decision["rule_id"]),
        (&json!("ALLOW_WITH_CONSTRAINTS"), &json!("rest"))
    );
    assert!(decision["policy_snapshot"].as_str().unwrap().starts_with("v7:"));
    assert_eq!(
        (&decision["facts"]["labels"]["env"], &decision["facts"]["risk_tags"][0]),
        (&json!("dev"), &json!("x"))
    );
    assert_eq!(decision["facts"]["tenant"], "acme");
    let other = api.key("zeta", USER).await;
    assert_eq!(api.call(&other, "GET", &path, "").await.0, 404, "another tenant's job does not exist");
}

#[tokio::test(start_paused = true)]
async fn another_policy_is_tried_on_the_jobs_of_the_past() {
    let (api, key) = governed().await;
    let other = api.key("zeta", USER).await;
    for (key, env) in [(&key, "dev"), (&key, "test"), (&other, "dev")] {
        let job = json!({"topic": "job.a", "context": {}, "labels": {"amount": "1", "env": env}});
        assert_eq!(api.submit(key, job).await.0, 200);
    }
    let stricter = "rules: [{id: no-dev, match: {labels: {env: dev}}, decision: deny}, {id: ok, decision: allow_with_constraints}]";
    let (status, reply) = ask(&api, &key, "replay", json!({"policy": stricter, "since": "1h"})).await;
    assert_eq!((status, &reply["examined"], &reply["changed"]), (200, &json!(2), &json!(1)), "{reply}");
    let found = &reply["differences"][0];
    assert_eq!(
        (&found["was_rule"], &found["would_be"], &found["would_be_rule"]),
        (&json!("rest"), &json!("DENY"), &json!("no-dev"))
    );
    let (status, reply) =
        ask(&api, &key, "replay", json!({"policy": "rules: [{id: a}]", "since": "1h"})).await;
    assert_eq!(status, 400);
    assert!(reply["error"].as_str().unwrap().contains("rule 1"), "{reply}");
    assert_eq!(ask(&api, &key, "replay", json!({"policy": stricter, "since": "soon"})).await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn a_remediation_that_was_offered_is_a_new_job_that_is_judged() {
    let (api, key) = governed().await;
    let body = json!({"topic": "job.a", "context": {"n": 1}, "labels": {"env": "prod", "amount": "5"}});
    let (status, reply) = api.submit(&key, body.clone()).await;
    assert_eq!(status, 403);
    let denied = reply["job_id"].as_str().unwrap().to_owned();
    let apply = async |key: &str, id: &str, remediation: Value| {
        let path = format!("/api/v1/jobs/{id}/remediate");
        api.call(key, "POST", &path, &json!({"remediation_id": remediation}).to_string()).await
    };
    for (remediation, status) in [(json!("pray"), 400), (json!(5), 400), (Value::Null, 400)] {
        assert_eq!(apply(&key, &denied, remediation).await.0, status);
    }
    let (status, reply) = apply(&key, &denied, json!("stage")).await;
    assert_eq!(status, 200, "{reply}");
    let id = reply["job_id"].as_str().unwrap().to_owned();
    assert_eq!(apply(&key, &denied, json!("stage")).await.1["job_id"], id.as_str(), "twice is once");
    let (_, job) = api.call(&key, "GET", &format!("/api/v1/jobs/{id}"), "").await;
    assert_eq!((&job["labels"]["env"], &job["context"]), (&json!("staging"), &json!({"n": 1})));
    assert_eq!((&job["parent_job_id"], &job["decisions"][0]["rule_id"]), (&json!(denied), &json!("rest")));
    assert_eq!(api.call(&key, "GET", &format!("/api/v1/jobs/{denied}"), "").await.1["state"], "DENIED");
    let (status, reply) = apply(&key, &id, json!("stage")).await;
    assert_eq!((status, &reply["code"]), (409, &json!("not_remediable")), "it was let run");
    let other = api.key("zeta", USER).await;
    assert_eq!(apply(&other, &denied, json!("stage")).await.0, 404);
    let reader = api.named_key("eve", "acme", &[Scope::Read]).await;
    assert_eq!(apply(&reader, &denied, json!("stage")).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_is_refused_with_the_field() {
    let (api, key) = governed().await;
    for (body, part) in [
        (json!({}), "topic"),
        (json!({"topic": "job.a", "priority": "soon"}), "priority"),
        (json!({"topic": "job.a", "labels": {"": "x"}}), "labels"),
        (json!({"topic": 5}), "topic"),
    ] {
        let (status, reply) = ask(&api, &key, "evaluate", body).await;
        assert_eq!(status, 400, "{reply}");
        assert!(reply["error"].as_str().unwrap().contains(part), "{reply}");
    }
    let foreign = json!({"topic": "job.a", "tenant": "zeta"});
    assert_eq!(ask(&api, &key, "evaluate", foreign).await.0, 403);
}

#[tokio::test]
async fn a_policy_that_costs_too_much_is_not_replayed_and_its_rule_is_named() {
    let api = Api::start(json!({"rules": [{"id": "all", "decision": "allow"}]})).await;
    let key = api.key("acme", USER).await;
    let labels: serde_json::Map<String, Value> = (0..50).map(|n| (format!("l{n}"), json!("x"))).collect();
    let (status, reply) =
        api.submit(&key, json!({"topic": "job.echo", "context": {}, "labels": labels})).await;
    assert_eq!(status, 200, "{reply}");
    let costly = "job.labels.all(a, job.labels.all(b, job.labels.all(c, a + b != c)))";
    let policy = json!({"rules": [{"id": "fine", "decision": "allow", "when": "job.topic == 'x'"}, {"id": "costly", "decision": "allow", "when": costly}]});
    let reader = api.key("acme", &[Scope::Read]).await;
    let body = json!({"policy": policy.to_string(), "since": "1h"});
    let (status, reply) = ask(&api, &reader, "replay", body).await;
    assert_eq!(status, 422, "{reply}");
    assert_eq!((&reply["code"], &reply["rule"]), (&json!("too_expensive"), &json!("costly")));
}
