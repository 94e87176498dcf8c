//! Faults of the reference that need a whole engine to show. `docs/faults.md` lists them all.

use super::draw::Behaviour;
use super::world::{World, settle};
use bytes::Bytes;
use reveille_bus::Bus;
use reveille_core::id::{TenantId, WorkerId};
use reveille_core::job::{Job, State};
use reveille_core::life::{self, Destination, Limits, Made, Report, Status};
use reveille_core::policy::{Policy, RecordedVerdict};
use reveille_core::reason::Reason;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::Settings;
use reveille_store::{BlobKey, Commit, DeadLetterQuery, JobQuery, PutMode, Step};
use reveille_test_kit::submit;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::{packet, subject};
use serde_json::{Value, json};
use tokio::task::JoinSet;

fn allows() -> Value {
    json!({"rules": [{"id": "all", "decision": "allow"}]})
}

async fn open() -> World {
    World::start(&[allows()], Settings::default()).await
}

/// A job that was given to the first worker.
fn given(id: &str, now: Millis) -> Job {
    let request = Request::plain(id, "job.a");
    let recorded = RecordedVerdict { verdict: Policy::builtin().evaluate(&request), checked_at: now };
    let judged = life::judge(&life::submit(request, now), recorded, now).unwrap();
    let to = Destination { worker: Some(WorkerId::known("w1")), pool: None };
    life::assign(&judged, &to, now).unwrap()
}

fn success(id: &str) -> Report {
    Report {
        worker: WorkerId::known("w1"),
        attempt: None,
        status: Status::Succeeded,
        result_ptr: format!("redis://res:{id}"),
        error_code: String::new(),
        error_message: String::new(),
        execution_ms: 1,
        made: Made::default(),
        trace: None,
    }
}

/// Stored, and then the process died before anything came of it.
async fn stored_and_died(world: &mut World, job: Job) {
    world.engine.kill();
    settle(10).await;
    assert_eq!(world.store.inner.commit(Step::insert(job)).await.unwrap(), Commit::Done);
    world.restart().await;
}

#[tokio::test(start_paused = true)]
async fn fault_8_3_5_a_dispatch_that_died_before_it_was_published_is_published() {
    let mut world = open().await;
    let job = given("j", world.engine.now());
    stored_and_died(&mut world, job).await;
    settle(1_000).await;
    let job = world.job("j").await;
    assert_eq!((job.state(), job.attempts.len()), (State::Succeeded, 1), "the same attempt, and no timeout");
}

#[tokio::test(start_paused = true)]
async fn fault_8_3_7_a_timeout_is_a_dead_letter_and_the_worker_is_told_to_stop() {
    let world = open().await;
    world.behave(0, Behaviour::Forgets);
    world.behave(1, Behaviour::Forgets);
    let mut cancels = world.bus.subscribe(subject::JOB_CANCEL, None).await.unwrap();
    let mut letters = world.bus.subscribe(subject::JOB_DLQ, None).await.unwrap();
    let mut request = Request::plain("j", "job.a");
    request.budget.deadline_ms = 1_000;
    submit(&world.engine, request).await.unwrap();
    settle(2_000).await;
    assert_eq!(world.job("j").await.state(), State::Timeout);
    let query = DeadLetterQuery { limit: 9, ..DeadLetterQuery::default() };
    let letter = world.store.inner.dead_letters(&query).await.unwrap().items.remove(0);
    assert_eq!((letter.job_id.as_str(), letter.reason_code), ("j", Some(Reason::Timeout)));
    let cancel = packet::decode(&cancels.try_recv().unwrap().message.payload).unwrap();
    assert!(matches!(cancel.payload, Some(Payload::JobCancel(cancel)) if cancel.job_id == "j"));
    assert!(letters.try_recv().is_some(), "those who watch the dead letters hear of it");
}

#[tokio::test(start_paused = true)]
async fn fault_8_3_9_a_cancel_outlives_the_server_that_took_it() {
    let mut world = open().await;
    let now = world.engine.now();
    let mut cancels = world.bus.subscribe(subject::JOB_CANCEL, None).await.unwrap();
    let cancelled = life::cancel(&given("j", now), "ann", "", now).unwrap();
    stored_and_died(&mut world, cancelled).await;
    settle(1_000).await;
    let cancel = packet::decode(&cancels.try_recv().unwrap().message.payload).unwrap();
    assert!(matches!(cancel.payload, Some(Payload::JobCancel(cancel)) if cancel.job_id == "j"));
    assert!(!world.job("j").await.is_live(), "told once, and nothing is owed any more");
}

/// The reference looks how many there are and then adds one; whoever comes at once gets past.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fault_8_3_11_a_burst_does_not_get_past_a_tenants_limit() {
    let mut policy = allows();
    policy["tenants"] = json!({"acme": {"max_concurrent_jobs": 2}});
    let world = World::start(&[policy], Settings::default()).await;
    world.behave(0, Behaviour::Forgets);
    world.behave(1, Behaviour::Forgets);
    let mut asking = JoinSet::new();
    for number in 0..40 {
        let engine = world.engine.clone();
        let tenant = TenantId::known("acme");
        let request = Request { tenant, ..Request::plain(&format!("j{number}"), "job.a") };
        asking.spawn(async move { submit(&engine, request).await });
    }
    assert!(asking.join_all().await.iter().all(Result::is_ok), "all are taken in");
    let jobs = world.store.inner.jobs(&JobQuery { limit: 100, ..JobQuery::default() }).await.unwrap().items;
    let at_workers: Vec<_> = jobs.iter().filter(|job| job.attempt().is_some()).collect();
    assert_eq!((jobs.len(), at_workers.len()), (40, 2));
    for job in jobs.iter().filter(|job| job.attempt().is_none()) {
        let path = format!("/api/v1/jobs/{}/explain", job.id());
        let told = world.call(&world.operator, "GET", &path, Value::Null).await;
        assert_eq!(told["code"], "tenant_limit", "{told}");
    }
}

/// The reference shows a result before its content was looked at.
#[tokio::test(start_paused = true)]
async fn fault_8_4_4_with_hold_a_result_is_unreadable_until_it_was_looked_at() {
    for (hold, is_readable) in [(true, false), (false, true)] {
        let mut policy = allows();
        policy["output_policy"] = json!({"enabled": true, "hold": hold});
        policy["output_rules"] = json!([{"id": "s", "match": {"scanners": ["secret"]}, "decision": "deny"}]);
        let world = World::start(&[policy], Settings::default()).await;
        let now = world.engine.now();
        let result = BlobKey::parse("res:j").unwrap();
        let value = Bytes::from_static(b"\"early\"");
        world.store.inner.put_blob(result.clone(), value, now + 1_000_000, PutMode::Always).await.unwrap();
        // As between the two looks: succeeded, and the second look still owed.
        let done = life::finish(&given("j", now), &success("j"), &Limits::default(), now, 0).unwrap();
        let step = Step::insert(life::await_scan(&done));
        assert_eq!(world.store.inner.commit(step).await.unwrap(), Commit::Done);
        let shown = world.call(&world.operator, "GET", "/api/v1/jobs/j", Value::Null).await;
        let expected = if is_readable { json!("early") } else { Value::Null };
        assert_eq!((&shown["state"], &shown["result"]), (&json!("SUCCEEDED"), &expected), "hold {hold}");
        assert_eq!(shown["result_held"], json!(!is_readable));
        let through_the_door = world.engine.jobs().readable_blobs().blob(&result).await.unwrap();
        assert_eq!(through_the_door.is_some(), is_readable, "hold {hold}");
    }
}

/// In the reference one tenant's idempotency key finds another's work.
#[tokio::test(start_paused = true)]
async fn fault_8_4_14_an_idempotency_key_is_its_tenants_own() {
    let world = open().await;
    let body = json!({"topic": "job.a", "context": {}, "idempotency_key": "once"});
    let mut made = Vec::new();
    for key in [&world.keys[0], &world.keys[1], &world.keys[0], &world.keys[1]] {
        made.push(world.call(key, "POST", "/api/v1/jobs", body.clone()).await["job_id"].clone());
    }
    assert_eq!((&made[0], &made[1]), (&made[2], &made[3]), "the same key is the same job");
    assert_ne!(made[0], made[1], "of the same tenant only");
}

/// The reference copies what a job is to work on into labels, for its kernel, and they go on to the worker.
#[tokio::test(start_paused = true)]
async fn fault_8_2_e_what_a_job_works_on_is_judged_where_it_is_and_copied_nowhere() {
    let mut policy = allows();
    policy["input_rules"] = json!([{"id": "w", "match": {"keywords": ["forbidden"]}, "decision": "deny"}]);
    let world = World::start(&[policy], Settings::default()).await;
    let mut packets = world.bus.subscribe("worker.*.jobs", None).await.unwrap();
    let submit = async |say: &str| {
        let body = json!({"topic": "job.a", "context": {"say": say}, "labels": {"env": "dev"}});
        world.call(&world.keys[0], "POST", "/api/v1/jobs", body).await
    };
    assert_eq!(submit("something forbidden").await["code"], "safety_denied", "the input is looked at");
    let id = submit("harmless words").await["job_id"].as_str().unwrap().to_owned();
    settle(100).await;
    let payload = packets.try_recv().unwrap().message.payload;
    assert!(!payload.windows(8).any(|window| window == b"harmless"), "the packet points at it");
    let job = world.job(&id).await;
    assert_eq!(job.request.labels.keys().collect::<Vec<_>>(), ["env"]);
    assert!(!serde_json::to_string(&*job).unwrap().contains("harmless"), "nor is it in the record");
}
