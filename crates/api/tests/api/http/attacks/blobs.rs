//! Reading what is another's by naming it: a pointer is only a name, and whoever submits or reports chooses it.

use crate::http::molecule::agent::{Agent, Manner};
use crate::http::molecule::delegating::{give, listed};
use crate::http::molecule::platform::{NOWHERE, Setup, id};
use crate::http::output::{governed, made, made_at};
use crate::http::support::{Api, USER};
use reveille_core::id::TenantId;
use reveille_core::request::Request;
use reveille_engine::{Rules, Settings, Submission, Submitted, Submitter};
use reveille_store::{BlobKey, Blobs, PutMode};
use reveille_test_kit::NOON;
use serde_json::{Value, json};
use std::time::Duration;

const SECRET: &str = "AKIAIOSFODNN7EXAMPLE";

const POLICY: &str = "
rules:
  - {id: ask, match: {topics: [job.ask]}, decision: require_approval}
  - {id: never, match: {topics: [job.other]}, decision: deny}
  - {id: rest, decision: allow}
output_policy: {enabled: true, fail_mode: closed}
output_rules:
  - {id: leak, match: {topics: [job.scan], scanners: [secret]}, decision: quarantine}
";

/// A server where `acme` has a result in quarantine and an input; their ids.
async fn with_a_victim() -> (Api, String, String) {
    let (api, acme) = governed(POLICY, Settings::default()).await;
    let held = made(&api, &acme, "job.scan", &json!({"note": SECRET}).to_string()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (_, shown) = api.call(&acme, "GET", &format!("/api/v1/jobs/{held}"), "").await;
    assert_eq!(shown["state"], "OUTPUT_QUARANTINED");
    let (_, reply) = api.submit(&acme, json!({"topic": "job.a", "context": {"note": SECRET}})).await;
    (api, held, reply["job_id"].as_str().unwrap().to_owned())
}

/// A job of `zeta` that points at somebody's blob, as a client of the NATS door may send it.
async fn borrower(api: &Api, id: &str, topic: &str, pointer: &str) {
    let tenant = TenantId::known("zeta");
    let request = Request { tenant, context_ptr: pointer.to_owned(), ..Request::plain(id, topic) };
    let submission = Submission { request, context: None, submitter: Submitter::IsGone };
    assert!(matches!(api.engine.jobs().submit(submission).await, Ok(Submitted::New(_))));
}

async fn get(api: &Api, key: &str, path: &str) -> Value {
    let (status, reply) = api.call(key, "GET", path, "").await;
    assert_eq!(status, 200, "{path}: {reply}");
    reply
}

#[tokio::test(start_paused = true)]
async fn a_job_that_waits_for_approval_shows_anothers_blob_as_its_input() {
    let (api, held, job) = with_a_victim().await;
    let zeta = api.key("zeta", USER).await;
    // Results of jobs that are gone, and inputs of jobs that are still to come, have no job to ask.
    for (key, value) in [("res:pruned", SECRET), ("ctx:to-come", SECRET), ("art:report", SECRET)] {
        let value = value.as_bytes().to_vec().into();
        let until = NOON + 1_000_000_000;
        api.world.store.put_blob(BlobKey::parse(key).unwrap(), value, until, PutMode::Always).await.unwrap();
    }
    let names = [
        format!("res:{held}"),
        format!("ctx:{job}"),
        "res:pruned".into(),
        "ctx:to-come".into(),
        "art:report".into(),
    ];
    for (number, name) in names.iter().enumerate() {
        let id = format!("borrower-{number}");
        borrower(&api, &id, "job.ask", &format!("redis://{name}")).await;
        let context = get(&api, &zeta, &format!("/api/v1/approvals/{id}/context")).await;
        assert!(!context.to_string().contains(SECRET), "{name}: {context}");
        assert_eq!((&context["input"]["value"], &context["input"]["len"]), (&Value::Null, &Value::Null));
        assert_eq!(context["input"]["availability"], "elsewhere", "{name}");
        let shown = get(&api, &zeta, &format!("/api/v1/jobs/{id}")).await;
        assert!(!shown.to_string().contains(SECRET), "{name}: {shown}");
        assert_eq!(shown["context_availability"], "elsewhere", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_copies_anothers_blob_into_the_new_jobs_own_input() {
    let (api, held, job) = with_a_victim().await;
    let zeta = api.key("zeta", USER).await;
    for (id, name) in [("late-1", format!("res:{held}")), ("late-2", format!("ctx:{job}"))] {
        borrower(&api, id, "job.other", &format!("redis://{name}")).await;
        let (status, retried) = api.call(&zeta, "POST", &format!("/api/v1/dlq/{id}/retry"), "").await;
        assert_eq!(status, 200, "{retried}");
        let new = get(&api, &zeta, &format!("/api/v1/jobs/{}", retried["job_id"].as_str().unwrap())).await;
        assert!(!new.to_string().contains(SECRET), "{name}: {new}");
        assert_eq!(new["context_ptr"], format!("redis://{name}"), "it points where the old one did");
        assert_eq!(
            (&retried["input"], &new["context_availability"]),
            (&json!("elsewhere"), &json!("elsewhere"))
        );
    }
    let (_, own) = api.submit(&zeta, json!({"topic": "job.other", "context": {"n": 1}})).await;
    let path = format!("/api/v1/dlq/{}/retry", own["job_id"].as_str().unwrap());
    let (status, retried) = api.call(&zeta, "POST", &path, "").await;
    assert_eq!((status, &retried["input"]), (200, &json!("copied")), "{retried}");
}

#[tokio::test(start_paused = true)]
async fn a_replay_tells_what_is_in_anothers_blob() {
    let (api, held, job) = with_a_victim().await;
    let zeta = api.key("zeta", USER).await;
    borrower(&api, "probe-1", "job.ask", &format!("redis://res:{held}")).await;
    borrower(&api, "probe-2", "job.ask", &format!("redis://ctx:{job}")).await;
    let changed = async |word: &str| {
        let policy = format!(
            "rules: [{{id: ask, decision: require_approval}}]\ninput_policy: {{fail_mode: open}}\n\
             input_rules: [{{id: guess, match: {{keywords: ['{word}']}}, decision: deny}}]"
        );
        let body = json!({"policy": policy, "since": "1h"}).to_string();
        let (status, reply) = api.call(&zeta, "POST", "/api/v1/policy/replay", &body).await;
        assert_eq!(status, 200, "{reply}");
        reply["changed"].as_u64().unwrap()
    };
    assert_eq!(changed(SECRET).await, changed("nothing of the kind").await);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_names_anothers_blob_is_redacted_into_a_copy_of_ones_own() {
    let (api, _, job) = with_a_victim().await;
    let policy = "
rules: [{id: all, decision: allow}]
output_policy: {enabled: true, fail_mode: open}
output_rules:
  - {id: hide, match: {topics: [job.redact], scanners: [secret]}, decision: redact}
";
    let policy = reveille_engine::rules::read_policy(policy).unwrap();
    api.engine.use_rules(Rules { policy, ..(*api.engine.rules()).clone() });
    let zeta = api.key("zeta", USER).await;
    let id = made_at(&api, &zeta, "job.redact", &format!("redis://ctx:{job}")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let shown = get(&api, &zeta, &format!("/api/v1/jobs/{id}")).await;
    assert_eq!((&shown["state"], &shown["result"]), (&json!("SUCCEEDED"), &Value::Null), "{shown}");
    assert_eq!(shown["result_availability"], "elsewhere");
}

#[tokio::test]
async fn a_delegation_shows_the_first_words_of_a_result_that_is_held_back() {
    let mut setup = Setup::new();
    setup.policy = json!({
        "rules": [{"id": "all", "decision": "allow"}],
        "output_policy": {"enabled": true, "fail_mode": "closed", "hold": true},
        "output_rules": [{"id": "leak", "match": {"scanners": ["secret"]}, "decision": "quarantine"}],
    });
    let platform = setup.start().await;
    let key = platform.user("acme").await;
    let token = platform.join(&key, &id(1), NOWHERE).await;
    let agent = Agent::start(Manner::Answers(SECRET)).await;
    platform.join(&key, &id(2), &agent.url).await;
    let mut watcher = platform.watch("acme");
    give(&platform, &token, json!({})).await.ok();
    let told = watcher.until("DELEGATION_COMPLETE").await;
    assert!(!told.to_string().contains(SECRET), "{told}");
    let listed = listed(&platform, &token).await;
    assert!(!json!(listed).to_string().contains(SECRET), "{listed:?}");
}
