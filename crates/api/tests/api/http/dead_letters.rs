//! Dead letters: found, put away, and tried again without losing or doubling anything.

use super::support::{Api, USER};
use bytes::Bytes;
use reveille_core::id::{JobId, TenantId, Topic, WorkerId};
use reveille_core::job::{Job, State};
use reveille_core::life::{self, Destination, Limits, Made, Report, Status};
use reveille_core::request::{Budget, Hints, Needs, Place, Priority, Request};
use reveille_core::retry;
use reveille_engine::{Submission, Submitted, Submitter};
use reveille_roster::Scope;
use reveille_store::{
    AboutPacket, BlobKey, Blobs, Commit, DeadPacket, DeadPackets, JobQuery, JobStore, Step,
};
use reveille_test_kit::submit;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;

/// A policy that says this of everything but `job.free`.
fn says(decision: &str) -> Value {
    json!({"version": decision, "rules": [
        {"id": "free", "match": {"topics": ["job.free"]}, "decision": "allow"},
        {"id": "rest", "decision": decision, "reason": "because"},
    ]})
}

impl Api {
    /// A job that policy denies, and is thereby a dead letter.
    async fn dead(&self, key: &str, topic: &str) -> String {
        let (status, reply) = self.submit(key, json!({"topic": topic, "context": {"n": 1}})).await;
        assert_eq!((status, &reply["code"]), (403, &json!("safety_denied")));
        reply["job_id"].as_str().unwrap().to_owned()
    }

    async fn letters(&self, key: &str, query: &str) -> Vec<String> {
        let (status, reply) = self.call(key, "GET", &format!("/api/v1/dlq{query}"), "").await;
        assert_eq!(status, 200, "{reply}");
        reply["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["job_id"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn retry(&self, key: &str, id: &str) -> (u16, Value) {
        self.call(key, "POST", &format!("/api/v1/dlq/{id}/retry"), "").await
    }

    async fn job(&self, id: &str) -> Arc<Job> {
        self.engine.jobs().job(&JobId::known(id)).await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn a_dead_letter_is_found_counted_and_put_away() {
    let api = Api::start(says("deny")).await;
    let key = api.key("acme", USER).await;
    let (first, second) = (api.dead(&key, "job.a").await, api.dead(&key, "job.b").await);
    assert_eq!(api.letters(&key, "").await, [second.clone(), first.clone()], "newest first");
    assert_eq!(api.letters(&key, "?topic=job.a").await, [first.as_str()]);
    assert_eq!(api.letters(&key, "?reason_code=timeout").await.len(), 0);
    assert_eq!(api.letters(&key, "/page?reason_code=safety_denied&limit=1").await, [second.as_str()]);
    let (_, page) = api.call(&key, "GET", "/api/v1/dlq/page?limit=1", "").await;
    let next = page["next_cursor"].as_str().unwrap();
    assert_eq!(api.letters(&key, &format!("/page?limit=1&cursor={next}")).await, [first.as_str()]);
    let (_, counted) = api.call(&key, "GET", "/api/v1/dlq/stats", "").await;
    assert_eq!(counted, json!({"total": 2, "by_reason": {"safety_denied": 2}}));

    let path = format!("/api/v1/dlq/{first}");
    let (status, letter) = api.call(&key, "GET", &path, "").await;
    assert_eq!((status, &letter["status"], &letter["reason"]), (200, &json!("DENIED"), &json!("because")));
    assert_eq!((&letter["last_state"], &letter["attempts"]), (&json!("PENDING"), &json!(0)));
    assert_eq!(api.call(&key, "DELETE", &path, "").await.0, 204);
    for (method, path) in [("DELETE", &path), ("GET", &path), ("POST", &format!("{path}/retry"))] {
        let (status, reply) = api.call(&key, method, path, "").await;
        assert_eq!((status, reply["code"].as_str()), (404, Some("not_found")), "{method}");
    }
    assert_eq!(api.letters(&key, "").await, [second]);
    for query in ["?limit=x", "?cursor=x", "?reason_code=bad_luck"] {
        assert_eq!(api.call(&key, "GET", &format!("/api/v1/dlq{query}"), "").await.0, 400, "{query}");
    }
}

#[tokio::test]
async fn another_tenants_dead_letter_does_not_exist() {
    let api = Api::start(says("deny")).await;
    let (ann, zoe) = (api.key("acme", USER).await, api.key("zeta", USER).await);
    let operator = api.key("ops", &[Scope::Admin]).await;
    let reader = api.named_key("eve", "acme", &[Scope::Read]).await;
    let id = api.dead(&ann, "job.a").await;
    let path = format!("/api/v1/dlq/{id}");
    for (method, path) in [("GET", path.clone()), ("DELETE", path.clone()), ("POST", format!("{path}/retry"))]
    {
        assert_eq!(api.call(&zoe, method, &path, "").await.0, 404, "{method}");
    }
    assert!(api.letters(&zoe, "").await.is_empty());
    assert_eq!(api.call(&zoe, "GET", "/api/v1/dlq/stats", "").await.1["total"], 0);
    assert_eq!(api.call(&zoe, "POST", "/api/v1/dlq/retry", "").await.1["retried"], json!([]));
    assert_eq!(api.letters(&operator, "").await, [id.as_str()]);
    assert_eq!(api.call(&reader, "DELETE", &path, "").await.0, 403);
    assert_eq!(api.retry(&reader, &id).await.0, 403);
}

#[tokio::test]
async fn a_retry_keeps_priority_budget_labels_workflow_and_memory() {
    let api = Api::start(says("deny")).await;
    let (key, operator) = (api.key("acme", USER).await, api.key("ops", &[Scope::Admin]).await);
    let request = Request {
        tenant: TenantId::known("acme"),
        priority: Priority::Critical,
        trace_id: "trace-1".to_owned(),
        labels: [("size".to_owned(), "s".to_owned())].into(),
        env: [("MODE".to_owned(), "dry".to_owned())].into(),
        needs: Needs {
            capability: "pay".to_owned(),
            risk_tags: vec!["money".to_owned()],
            ..Needs::default()
        },
        budget: Budget { max_total_tokens: 9, deadline_ms: 60_000, ..Budget::default() },
        hints: Hints { allow_retrieval: true, ..Hints::default() },
        place: Place {
            workflow_id: "run-1".to_owned(),
            step_index: 3,
            memory_id: "memory-1".to_owned(),
            parent_job_id: "before".to_owned(),
            adapter_id: "adapter-1".to_owned(),
            of_run: None,
        },
        idempotency_key: Some("once".to_owned()),
        compensation: Bytes::from_static(b"undo"),
        ..Request::plain("old", "job.pay")
    };
    let context = Some(Bytes::from_static(b"{\"amount\": 7}"));
    let submission = Submission { request: request.clone(), context, submitter: Submitter::Listens };
    assert!(matches!(api.engine.jobs().submit(submission).await, Ok(Submitted::New(_))));
    api.reload(says("allow")).await;
    let (status, reply) = api.retry(&operator, "old").await;
    assert_eq!((status, &reply["state"]), (200, &json!("SCHEDULED")));
    let id = reply["job_id"].as_str().unwrap();
    assert!(id.strip_prefix("old-retry-").is_some_and(|mark| mark.len() == 8), "{id}");
    let job = api.job(id).await;
    let new = &*job.request;
    assert_eq!((&new.context_ptr, new.submitted_by.is_some()), (&format!("redis://ctx:{id}"), true));
    let as_asked = Request {
        id: request.id.clone(),
        context_ptr: request.context_ptr.clone(),
        idempotency_key: request.idempotency_key.clone(),
        submitted_by: None,
        submitter_name: None,
        trace: None,
        place: Place { parent_job_id: "before".to_owned(), ..new.place.clone() },
        ..new.clone()
    };
    assert_eq!(as_asked, request, "everything else is as it was");
    assert_eq!(new.place.parent_job_id, "old");
    let shown = api.call(&key, "GET", &format!("/api/v1/jobs/{id}"), "").await.1;
    assert_eq!((&shown["context"], &shown["parent_job_id"]), (&json!({"amount": 7}), &json!("old")));
    assert_eq!(shown["decisions"][0]["decision"], "ALLOW", "it was judged afresh");
    assert!(api.letters(&key, "").await.is_empty());
    assert_eq!(api.retry(&key, "old").await.0, 404, "it is off the list");
}

#[tokio::test]
async fn a_retry_after_a_crash_makes_no_second_job() {
    let api = Api::start(says("deny")).await;
    let key = api.key("acme", USER).await;
    let old = api.dead(&key, "job.a").await;
    api.reload(says("allow")).await;
    // The new job is stored, and then the server dies before the entry is gone.
    let letter = api.engine.jobs().dead_letter(&JobId::known(old.as_str())).await.unwrap().unwrap();
    let request = retry::retry(&api.job(&old).await.request, &letter);
    let expected = request.id.to_string();
    submit(&api.engine, request).await.unwrap();
    let api = api.restarted(says("allow")).await;
    let key = api.key("acme", USER).await;
    assert_eq!(api.letters(&key, "").await, [old.as_str()]);
    let (status, reply) = api.retry(&key, &old).await;
    assert_eq!((status, reply["job_id"].as_str()), (200, Some(expected.as_str())));
    assert!(api.letters(&key, "").await.is_empty());
    assert_eq!(
        api.world.store.jobs(&JobQuery { limit: 9, ..JobQuery::default() }).await.unwrap().items.len(),
        2
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_retry_at_once_make_one_job() {
    let api = Arc::new(Api::start(says("deny")).await);
    let key = api.key("acme", USER).await;
    let old = api.dead(&key, "job.a").await;
    api.reload(says("allow")).await;
    let mut retries = JoinSet::new();
    for _ in 0..8 {
        let (api, key, old) = (api.clone(), key.clone(), old.clone());
        retries.spawn(async move { api.retry(&key, &old).await });
    }
    let answers = retries.join_all().await;
    let mut made: Vec<_> =
        answers.iter().filter(|(status, _)| *status == 200).map(|(_, reply)| &reply["job_id"]).collect();
    made.dedup();
    assert_eq!(made.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|(status, _)| matches!(status, 200 | 404)), "{answers:?}");
    assert_eq!(
        api.world.store.jobs(&JobQuery { limit: 9, ..JobQuery::default() }).await.unwrap().items.len(),
        2
    );
}

#[tokio::test]
async fn a_retry_is_judged_by_what_holds_now() {
    let api = Api::start(says("deny")).await;
    let key = api.key("acme", USER).await;
    let old = api.dead(&key, "job.a").await;
    api.reload(says("throttle")).await;
    let (status, reply) = api.retry(&key, &old).await;
    assert_eq!((status, reply["code"].as_str()), (429, Some("throttled")));
    assert_eq!(api.letters(&key, "").await, [old.as_str()], "nothing was made, so the entry stays");
    api.reload(says("deny")).await;
    let denied = api.retry(&key, &old).await.1;
    assert_eq!(denied["state"], "DENIED");
    let second = denied["job_id"].as_str().unwrap().to_owned();
    assert_eq!(api.letters(&key, "").await, [second.as_str()], "the new job is a dead letter of its own");
    api.reload(says("require_approval")).await;
    let asked = api.retry(&key, &second).await.1;
    assert_eq!(asked["state"], "APPROVAL_REQUIRED");
    let path = format!("/api/v1/approvals/{}/approve", asked["job_id"].as_str().unwrap());
    assert_eq!(api.call(&key, "POST", &path, "").await.0, 403, "whoever retries has asked for it");
}

#[tokio::test]
async fn a_retry_without_its_input_is_gone() {
    let api = Api::start(says("deny")).await;
    let key = api.key("acme", USER).await;
    let old = api.dead(&key, "job.a").await;
    api.reload(says("allow")).await;
    api.world.store.delete_blobs(vec![BlobKey::parse(&format!("ctx:{old}")).unwrap()]).await.unwrap();
    let (status, reply) = api.retry(&key, &old).await;
    assert_eq!((status, reply["code"].as_str()), (410, Some("input_expired")));
    assert_eq!(api.letters(&key, "").await, [old.as_str()]);
    let (status, many) = api.call(&key, "POST", "/api/v1/dlq/retry", "").await;
    assert_eq!((status, &many["retried"], &many["failed"][0]["job_id"]), (200, &json!([]), &json!(old)));
    assert!(many["failed"][0]["error"].as_str().unwrap().contains("expired"));
}

/// As if a worker had done the job.
async fn succeed(api: &Api, id: &JobId) {
    let job = api.engine.jobs().job(id).await.unwrap().unwrap();
    let (worker, now) = (WorkerId::known("w"), job.updated_at);
    let given = life::assign(&job, &Destination { worker: Some(worker.clone()), pool: None }, now).unwrap();
    let report = Report {
        worker,
        attempt: None,
        status: Status::Succeeded,
        result_ptr: String::new(),
        error_code: String::new(),
        error_message: String::new(),
        execution_ms: 1,
        trace: None,
        made: Made::default(),
    };
    let done = life::finish(&given, &report, &Limits::default(), now, 0).unwrap();
    assert_eq!(api.world.store.commit(Step::change(&job, done)).await.unwrap(), Commit::Done);
}

#[tokio::test]
async fn many_are_retried_by_what_they_are_and_held_results_are_not() {
    let api = Api::start(says("deny")).await;
    let key = api.key("acme", USER).await;
    let mut dead = Vec::new();
    for topic in ["job.a", "job.b", "job.a", "job.b"] {
        dead.push(api.dead(&key, topic).await);
    }
    let held = api.submit(&key, json!({"topic": "job.free", "context": {}})).await.1["job_id"].clone();
    let held = JobId::known(held.as_str().unwrap());
    succeed(&api, &held).await;
    let quarantined = api.engine.jobs().quarantine(&held, "a secret").await.unwrap();
    assert_eq!(quarantined.state(), State::OutputQuarantined);
    api.reload(says("allow")).await;
    let retry = async |filter: Value| {
        let (status, reply) = api.call(&key, "POST", "/api/v1/dlq/retry", &filter.to_string()).await;
        assert_eq!(status, 200, "{reply}");
        assert_eq!(reply["failed"], json!([]));
        let parents = reply["retried"].as_array().unwrap().iter().map(|job| {
            let id = job["job_id"].as_str().unwrap();
            id.rsplit_once("-retry-").unwrap().0.to_owned()
        });
        parents.collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(retry(json!({"before": "2001-01-01T00:00:00Z"})).await, none);
    assert_eq!(retry(json!({"reason_code": "timeout"})).await, none);
    assert_eq!(retry(json!({"limit": 0})).await, none);
    assert_eq!(retry(json!({"topic": "job.a", "limit": 1})).await, [dead[2].clone()]);
    assert_eq!(retry(json!({"reason_code": "safety_denied", "topic": "job.a"})).await, [dead[0].clone()]);
    assert_eq!(retry(json!({})).await, [dead[3].clone(), dead[1].clone()]);
    assert_eq!(
        api.letters(&key, "").await,
        [held.to_string()],
        "to run it again is a decision about one job"
    );
    assert_eq!(api.retry(&key, held.as_str()).await.0, 200);
    for body in [json!({"topik": "job.a"}), json!({"before": "soon"}), json!({"reason_code": "bad_luck"})] {
        assert_eq!(api.call(&key, "POST", "/api/v1/dlq/retry", &body.to_string()).await.0, 400, "{body}");
    }
    let query = JobQuery { topic: Some(Topic::known("job.a")), limit: 9, ..JobQuery::default() };
    let jobs = api.world.store.jobs(&query).await.unwrap().items;
    assert_eq!(jobs.len(), 4, "two jobs and two retries");
}

#[tokio::test]
async fn packets_that_nobody_could_deal_with_are_listed_for_operators() {
    let api = Api::open().await;
    for number in 0..3 {
        let about = AboutPacket {
            subject: "sys.job.submit".to_owned(),
            reason: "it is not a packet".to_owned(),
            deliveries: 4,
            len: 0,
            buried_at: api.engine.now(),
        };
        let packet =
            DeadPacket::new(&format!("CORDUM_SYS:{number}"), about, &Bytes::from_static(b"\xff\x00"));
        api.world.store.bury(packet).await.unwrap();
    }
    let operator = api.key("ops", &[Scope::Admin]).await;
    let (status, first) = api.call(&operator, "GET", "/api/v1/dlq/packets?limit=2", "").await;
    assert_eq!(status, 200, "{first}");
    let newest = &first["items"][0];
    assert_eq!((&newest["id"], &newest["content"]), (&json!("CORDUM_SYS:2"), &json!("/wA=")));
    assert_eq!((&newest["deliveries"], &newest["bytes"]), (&json!(4), &json!(2)));
    let next = first["next_cursor"].as_str().unwrap();
    let (_, second) =
        api.call(&operator, "GET", &format!("/api/v1/dlq/packets?limit=2&cursor={next}"), "").await;
    assert_eq!((&second["items"][0]["id"], &second["next_cursor"]), (&json!("CORDUM_SYS:0"), &Value::Null));
    // They may be anybody's.
    let user = api.key("acme", USER).await;
    assert_eq!(api.call(&user, "GET", "/api/v1/dlq/packets", "").await.0, 403);
}
