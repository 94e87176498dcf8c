//! Approvals: who may decide, about what, and that one decision is taken whatever happens meanwhile.

use super::support::{Api, USER, eventually};
use reveille_core::fleet::Beat;
use reveille_core::id::{JobId, PoolId, TenantId, WorkerId};
use reveille_core::placement::routing::Routing;
use reveille_engine::{Rules, Settings};
use reveille_roster::Scope;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

/// A policy that says this of `job.ask` and allows the rest.
fn asks(decision: &str) -> Value {
    json!({"version": decision, "rules": [
        {"id": "ask", "match": {"topics": ["job.ask"]}, "decision": decision, "reason": "it costs money",
         "constraints": {"budgets": {"max_runtime_ms": 500}}},
        {"id": "rest", "decision": "allow"},
    ]})
}

impl Api {
    async fn asked(&self, key: &str) -> String {
        let body = json!({"topic": "job.ask", "context": {"amount": 7}, "risk_tags": ["money"]});
        let (status, reply) = self.submit(key, body).await;
        assert_eq!((status, reply["status"].as_str()), (200, Some("approval_required")));
        reply["job_id"].as_str().unwrap().to_owned()
    }

    /// `verb` is approve or reject.
    async fn decide(&self, key: &str, id: &str, verb: &str, body: Value) -> (u16, Value) {
        let path = format!("/api/v1/approvals/{id}/{verb}");
        self.call(key, "POST", &path, &body.to_string()).await
    }

    async fn approvals(&self, key: &str, query: &str) -> Vec<Value> {
        let (status, page) = self.call(key, "GET", &format!("/api/v1/approvals{query}"), "").await;
        assert_eq!(status, 200, "{page}");
        page["items"].as_array().unwrap().clone()
    }

    async fn state(&self, id: &str) -> String {
        self.engine.jobs().job(&JobId::known(id)).await.unwrap().unwrap().state().to_string()
    }
}

/// Status and code of a refusal; both must tell the same story.
fn refused((status, reply): (u16, Value)) -> (u16, String) {
    assert_eq!(reply["status"].as_u64(), Some(u64::from(status)), "{reply}");
    (status, reply["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn an_approval_is_listed_decided_and_remembered() {
    let api = Api::start(asks("require_approval")).await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let id = api.asked(&ann).await;
    let listed = api.approvals(&bob, "").await;
    let item = &listed[0];
    for (field, expected) in [
        ("decision", json!("REQUIRE_APPROVAL")),
        ("policy_rule_id", json!("ask")),
        ("policy_reason", json!("it costs money")),
        ("approval_required", json!(true)),
        ("approval_ref", json!(id)),
        ("approval_status", json!("pending")),
        ("approval_actionability", json!("actionable")),
        ("resolved_by", Value::Null),
    ] {
        assert_eq!(item[field], expected, "{field}");
    }
    assert_eq!((&item["job"]["id"], &item["job"]["principal"]), (&json!(id), &json!("ann")));
    assert_eq!(item["constraints"]["budgets"]["max_runtime_ms"], 500);
    assert_eq!(api.approvals(&ann, "").await[0]["approval_actionability"], "own_job");

    let bound = json!({
        "reason": "fine", "note": "once", "job_hash": item["job_hash"], "policy_snapshot": item["policy_snapshot"],
    });
    let (status, reply) = api.decide(&bob, &id, "approve", bound).await;
    assert_eq!((status, &reply["job_id"], &reply["trace_id"]), (200, &json!(id), &json!(id)));
    assert_eq!(api.state(&id).await, "SCHEDULED");
    assert!(api.approvals(&bob, "").await.is_empty());
    let resolved = &api.approvals(&bob, "?include_resolved=true").await[0];
    let told =
        ["approval_status", "approval_decision", "resolved_by", "resolved_comment"].map(|f| &resolved[f]);
    assert_eq!(told, ["approved", "approve", "bob", "fine; once"]);

    let operator = api.key("ops", &[Scope::Admin]).await;
    let (status, again) = api.decide(&operator, &id, "approve", json!({})).await;
    assert_eq!(
        (status, &again["status"], &again["approved_by"]),
        (200, &json!("already_approved"), &json!("bob"))
    );
    assert_eq!(again["approved_at"], resolved["resolved_at"]);
    let other = refused(api.decide(&operator, &id, "reject", json!({})).await);
    assert_eq!(other, (409, "approval_already_resolved".to_owned()));

    let second = api.asked(&ann).await;
    assert_eq!(api.decide(&bob, &second, "reject", json!({})).await, (200, json!({"job_id": second})));
    let again = api.decide(&ann, &second, "reject", json!({})).await;
    assert_eq!(
        (again.0, &again.1["status"], &again.1["rejected_by"]),
        (200, &json!("already_rejected"), &json!("bob"))
    );
    assert_eq!(api.state(&second).await, "DENIED");
}

#[tokio::test]
async fn a_person_sees_what_they_decide_about() {
    let api = Api::start(asks("require_approval")).await;
    let routing = Arc::new(Routing::mapped([("job.ask", vec!["bank", "vault"])], [("bank", vec![])]));
    api.engine.use_rules(Rules { routing, ..(*api.engine.rules()).clone() });
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let mut earlier = Vec::new();
    for verb in ["approve", "reject"].repeat(6) {
        let id = api.asked(&ann).await;
        assert_eq!(api.decide(&bob, &id, verb, json!({})).await.0, 200);
        api.call(&ann, "POST", &format!("/api/v1/jobs/{id}/cancel"), "").await;
        earlier.insert(0, (id, verb == "approve"));
    }
    for (worker, pool) in [("w1", "bank"), ("w2", "kitchen")] {
        let beat = Beat { pool: Some(PoolId::known(pool)), ..Beat::default() };
        api.engine.fleet().beat(&WorkerId::known(worker), &TenantId::known("ops"), &beat);
    }
    let zoe = api.key("zeta", USER).await;
    api.asked(&zoe).await;
    let id = api.asked(&ann).await;
    let (status, context) = api.call(&bob, "GET", &format!("/api/v1/approvals/{id}/context"), "").await;
    assert_eq!(status, 200, "{context}");
    assert_eq!(context["approval"]["approval_ref"], id.as_str());
    let reach = &context["blast_radius"];
    assert_eq!((&reach["topic"], &reach["risk_tags"]), (&json!("job.ask"), &json!(["money"])));
    assert_eq!((&reach["pools"], &reach["workers"]), (&json!(["bank", "vault"]), &json!(["w1"])));
    assert_eq!(context["rollback_hint"]["has_compensation"], false);
    assert_eq!(context["policy_snapshot_summary"]["is_current"], true);
    assert_eq!(
        (&context["time_remaining_ms"], &context["input"]["value"]),
        (&Value::Null, &json!({"amount": 7}))
    );
    assert_eq!(context["constraints"]["budgets"]["max_runtime_ms"], 500);
    let prior = context["prior_approvals"].as_array().unwrap();
    let prior: Vec<_> = prior
        .iter()
        .map(|prior| (prior["job_id"].as_str().unwrap().to_owned(), prior["was_approved"] == true))
        .collect();
    earlier.truncate(10);
    assert_eq!(prior, earlier, "the last ten of the same topic and tenant");
    let plain = api.submit(&ann, json!({"topic": "job.ask.not", "context": {}})).await.1;
    assert!(plain["job_id"].is_null(), "no pool takes it");
}

#[tokio::test]
async fn pages_of_approvals_neither_skip_nor_repeat() {
    let api = Api::start(asks("require_approval")).await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let (mut waiting, mut all) = (Vec::new(), BTreeSet::new());
    for number in 0..25 {
        let id = api.asked(&ann).await;
        all.insert(id.clone());
        if number % 2 == 0 {
            waiting.insert(0, id);
        } else {
            assert_eq!(api.decide(&bob, &id, "approve", json!({})).await.0, 200);
        }
    }
    for (query, expected) in [("", 13), ("&include_resolved=true", 25)] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/v1/approvals?limit=4&cursor={cursor}{query}");
            let page = api.call(&bob, "GET", &path, "").await.1;
            let items = page["items"].as_array().unwrap().iter();
            seen.extend(items.map(|item| item["approval_ref"].as_str().unwrap().to_owned()));
            let newer = api.asked(&ann).await;
            assert_eq!(api.decide(&ann, &newer, "reject", json!({})).await.0, 200);
            match page["next_cursor"].as_str() {
                Some(next) => next.clone_into(&mut cursor),
                None => break,
            }
        }
        let once: BTreeSet<_> = seen.iter().collect();
        // The first round left rejected ones behind, which are newer than all that is counted here.
        let old = seen.iter().filter(|id| all.contains(*id)).count();
        assert_eq!((old, once.len()), (expected, seen.len()), "{seen:?}");
        if query.is_empty() {
            assert_eq!(seen, waiting, "newest first");
        }
    }
}

#[tokio::test]
async fn another_tenants_approval_does_not_exist() {
    let api = Api::start(asks("require_approval")).await;
    let (ann, zoe) = (api.key("acme", USER).await, api.key("zeta", USER).await);
    let operator = api.key("ops", &[Scope::Admin]).await;
    let reader = api.named_key("eve", "acme", &[Scope::Read]).await;
    let id = api.asked(&ann).await;
    assert!(api.approvals(&zoe, "").await.is_empty());
    assert_eq!(api.approvals(&operator, "").await.len(), 1);
    for verb in ["approve", "reject"] {
        assert_eq!(api.decide(&zoe, &id, verb, json!({})).await.0, 404);
        assert_eq!(api.decide(&operator, "gone", verb, json!({})).await.0, 404);
        assert_eq!(api.decide(&reader, &id, verb, json!({})).await.0, 403);
    }
    let context = format!("/api/v1/approvals/{id}/context");
    assert_eq!(api.call(&zoe, "GET", &context, "").await.0, 404);
    assert_eq!(api.decide(&operator, &id, "approve", json!({})).await.0, 200);
}

#[tokio::test]
async fn nobody_approves_their_own_job() {
    let api = Api::start(asks("require_approval")).await;
    let (ann, boss) = (api.named_key("ann", "acme", USER).await, api.key("ops", &[Scope::Admin]).await);
    let anns_other = api.named_key("ann", "acme", USER).await;
    let bob = api.named_key("bob", "acme", USER).await;
    let own = |reply| assert_eq!(refused(reply), (403, "self_approval_denied".to_owned()));
    let id = api.asked(&ann).await;
    own(api.decide(&ann, &id, "approve", json!({})).await);
    own(api.decide(&anns_other, &id, "approve", json!({})).await);
    // A name that was only claimed neither helps whoever claimed it nor harms its owner.
    let body = json!({"topic": "job.ask", "context": {}, "principal_id": "bob", "submitted_by": "key_x"});
    let claimed = api.submit(&ann, body).await.1["job_id"].as_str().unwrap().to_owned();
    own(api.decide(&ann, &claimed, "approve", json!({})).await);
    own(api.decide(&anns_other, &claimed, "approve", json!({})).await);
    let operators = api.asked(&boss).await;
    own(api.decide(&boss, &operators, "approve", json!({})).await);
    assert_eq!(api.state(&id).await, "APPROVAL_REQUIRED");
    assert_eq!(api.decide(&bob, &id, "approve", json!({})).await.0, 200);
    assert_eq!(api.decide(&bob, &claimed, "approve", json!({})).await.0, 200);
    assert_eq!(
        api.decide(&ann, &api.asked(&ann).await, "reject", json!({})).await.0,
        200,
        "giving up is free"
    );
}

#[tokio::test]
async fn whoever_needs_no_key_cannot_approve_either() {
    let settings = Settings { open_tenant: Some(TenantId::known("local")), ..Settings::default() };
    let api = Api::start_with(asks("require_approval"), settings).await;
    let call =
        async |path: &str, body: Value| api.send("POST", path, &[], body.to_string()).await.status_and_json();
    let body = json!({"topic": "job.ask", "context": {}, "principal_id": "somebody else"});
    let (_, reply) = call("/api/v1/jobs", body).await;
    let path = format!("/api/v1/approvals/{}/approve", reply["job_id"].as_str().unwrap());
    assert_eq!(refused(call(&path, json!({})).await), (403, "self_approval_denied".to_owned()));
}

#[tokio::test]
async fn an_answer_about_something_else_is_a_conflict() {
    let api = Api::start(asks("require_approval")).await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let id = api.asked(&ann).await;
    let other = api.asked(&ann).await;
    let hash_of = async |id: &str| {
        let context = api.call(&bob, "GET", &format!("/api/v1/approvals/{id}/context"), "").await.1;
        context["approval"]["job_hash"].as_str().unwrap().to_owned()
    };
    let hash = hash_of(&other).await;
    for verb in ["approve", "reject"] {
        let stale = refused(api.decide(&bob, &id, verb, json!({"job_hash": hash})).await);
        assert_eq!(stale, (409, "approval_stale_request".to_owned()));
        let stale = refused(api.decide(&bob, &id, verb, json!({"policy_snapshot": "older"})).await);
        assert_eq!(stale, (409, "approval_stale_snapshot".to_owned()));
    }
    assert_eq!(api.state(&id).await, "APPROVAL_REQUIRED");
    assert_eq!(api.decide(&bob, &id, "approve", json!({"job_hash": hash_of(&id).await})).await.0, 200);
    let free = api.submit(&ann, json!({"topic": "job.free", "context": {}})).await.1["job_id"].clone();
    api.call(&ann, "POST", &format!("/api/v1/jobs/{other}/cancel"), "").await;
    for id in [free.as_str().unwrap(), &other] {
        let not = refused(api.decide(&bob, id, "approve", json!({})).await);
        assert_eq!(not, (409, "approval_not_actionable".to_owned()));
    }
    let long = json!({"reason": "x".repeat(5000)});
    assert_eq!(refused(api.decide(&bob, &other, "reject", long).await).0, 400);
}

#[tokio::test]
async fn a_reload_kills_no_pending_approval() {
    let api = Api::start(asks("require_approval")).await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let (first, second) = (api.asked(&ann).await, api.asked(&ann).await);
    let snapshot = async || api.approvals(&bob, "").await[0]["policy_snapshot"].as_str().unwrap().to_owned();
    let before = snapshot().await;
    let mut stricter = asks("require_approval");
    stricter["rules"][0]["reason"] = json!("it costs more");
    api.reload(stricter).await;
    eventually(async || snapshot().await != before).await;
    eventually(async || api.approvals(&bob, "").await[1]["policy_reason"] == "it costs more").await;
    let stale = refused(api.decide(&bob, &first, "approve", json!({"policy_snapshot": before})).await);
    assert_eq!(stale, (409, "approval_stale_snapshot".to_owned()), "the question is another one");
    assert_eq!(
        api.decide(&bob, &first, "approve", json!({"policy_snapshot": snapshot().await})).await.0,
        200
    );
    assert_eq!(api.state(&second).await, "APPROVAL_REQUIRED");
    api.reload(asks("allow")).await;
    eventually(async || api.state(&second).await == "SCHEDULED").await;
    let resolved = api.approvals(&bob, "?include_resolved=1").await;
    let statuses: Vec<_> = resolved.iter().map(|item| item["approval_status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["invalidated", "approved"]);
}

#[tokio::test]
async fn what_policy_denies_by_now_cannot_be_approved() {
    let api = Api::start(asks("require_approval")).await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let (first, second) = (api.asked(&ann).await, api.asked(&ann).await);
    api.reload(asks("deny")).await;
    let stale = refused(api.decide(&bob, &first, "approve", json!({})).await);
    assert_eq!(stale, (409, "approval_stale_snapshot".to_owned()));
    eventually(async || api.state(&second).await == "DENIED").await;
    assert_eq!(api.state(&first).await, "DENIED");
    let job = api.engine.jobs().job(&JobId::known(first)).await.unwrap().unwrap();
    assert_eq!((job.approved_by(), job.last_verdict().unwrap().verdict.decision.as_str()), (None, "DENY"));
}

/// In the reference an approve that met a busy lock answered 200 with a conflict in its body.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_busy_lock_is_no_200() {
    let api = Arc::new(Api::start(asks("require_approval")).await);
    let ann = api.named_key("ann", "acme", USER).await;
    let mut people = Vec::new();
    for number in 0..8 {
        people.push(api.named_key(&format!("person-{number}"), "acme", USER).await);
    }
    for _ in 0..20 {
        let id = api.asked(&ann).await;
        let mut answers = JoinSet::new();
        for (number, key) in people.iter().cloned().enumerate() {
            let (api, id) = (api.clone(), id.clone());
            let verb = if number % 2 == 0 { "approve" } else { "reject" };
            answers.spawn(async move { (verb, api.decide(&key, &id, verb, json!({})).await) });
        }
        let answers = answers.join_all().await;
        let counted: Vec<_> = answers
            .iter()
            .filter(|(_, (status, reply))| *status == 200 && reply["status"].is_null())
            .collect();
        assert_eq!(counted.len(), 1, "exactly one decision is taken: {answers:?}");
        let winner = counted[0].0;
        for (verb, (status, reply)) in answers {
            if verb == winner {
                assert_eq!(status, 200, "{reply}");
            } else {
                assert_eq!(refused((status, reply)), (409, "approval_already_resolved".to_owned()));
            }
        }
        let expected = if winner == "approve" { "SCHEDULED" } else { "DENIED" };
        assert_eq!(api.state(&id).await, expected);
    }
}

#[tokio::test]
async fn a_question_that_nobody_answers_expires() {
    let settings = Settings { approval_ms: Some(300), ..Settings::default() };
    let api = Api::start_with(asks("require_approval"), settings).await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let id = api.asked(&ann).await;
    let context = api.call(&bob, "GET", &format!("/api/v1/approvals/{id}/context"), "").await.1;
    let left = context["time_remaining_ms"].as_i64().unwrap();
    assert!((1..=300).contains(&left), "{left}");
    let job = api.call(&bob, "GET", &format!("/api/v1/jobs/{id}?wait=30s"), "").await.1;
    assert_eq!((&job["state"], &job["reason_code"]), (&json!("DENIED"), &json!("approval_expired")));
    let late = refused(api.decide(&bob, &id, "approve", json!({})).await);
    assert_eq!(late, (409, "approval_not_actionable".to_owned()));
    assert_eq!(api.approvals(&bob, "?include_resolved=true").await[0]["approval_status"], "expired");
}

#[tokio::test]
async fn a_kill_loses_no_decision_and_a_start_looks_at_policy_anew() {
    let api = Api::start(asks("require_approval")).await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let (approved, waits) = (api.asked(&ann).await, api.asked(&ann).await);
    assert_eq!(api.decide(&bob, &approved, "approve", json!({})).await.0, 200);
    let api = api.restarted(asks("require_approval")).await;
    eventually(async || api.engine.is_recovered()).await;
    assert_eq!(
        (api.state(&approved).await, api.state(&waits).await),
        ("SCHEDULED".into(), "APPROVAL_REQUIRED".into())
    );
    let api = api.restarted(asks("allow")).await;
    eventually(async || api.state(&waits).await == "SCHEDULED").await;
}
