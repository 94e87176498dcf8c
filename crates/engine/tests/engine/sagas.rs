//! Sagas that a client drives itself: it asks for one job after the other, each with what undoes it, and what was
//! done is undone when one fails for good.

pub mod killed;

use super::flows::{World, begin, over, states};
use bytes::Bytes;
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::flow::{
    ClientUndo, Compensation, Run, RunEvent, RunState, advance, stack, stack_flow, stack_id, start,
};
use reveille_core::id::{JobId, RunId, TenantId, Topic, WorkerId};
use reveille_core::job::{DeadLetter, Job, State};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::{Engine, Submission, Submitter, rollback_id, rollback_of};
use reveille_store::workflows::{RunQuery, RunStep, WorkflowStore};
use reveille_store::{DeadLetterQuery, JobQuery, Store};
use reveille_wire::cap::{self, JobStatus};
use reveille_wire::convert::{Introduction, kept_compensation};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_hours(1);

/// A job of a workflow, with what undoes it if a topic for that is named.
fn job(id: &str, workflow: &str, topic: &str, undo: &str) -> Request {
    let mut request = Request::plain(id, topic);
    workflow.clone_into(&mut request.place.workflow_id);
    if !undo.is_empty() {
        request.compensation =
            message(&cap::Compensation { topic: undo.into(), ..cap::Compensation::default() });
    }
    request
}

fn message(compensation: &cap::Compensation) -> Bytes {
    kept_compensation(compensation)
}

async fn submit(engine: &Engine, request: Request) {
    let context = Some(Bytes::from(json!({"of": request.id}).to_string()));
    engine.jobs().submit(Submission { request, context, submitter: Submitter::IsGone }).await.unwrap();
}

/// Asks for a job and waits for its end, as a client does that drives a saga.
async fn ask(engine: &Engine, request: Request) -> Arc<Job> {
    let id = request.id.clone();
    submit(engine, request).await;
    // Nothing here takes time by itself; between two calls of a client some passes.
    let job = engine.jobs().wait_for_end(&id, PATIENCE).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    job
}

async fn stack_of(engine: &Engine, tenant: &str, workflow: &str) -> Run {
    engine.workflows().run(&stack_id(&TenantId::known(tenant), workflow)).await.unwrap().unwrap()
}

/// The last rollback of a workflow, once it is over.
async fn rolled_back(engine: &Engine, tenant: &str, workflow: &str) -> Run {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stack = stack_of(engine, tenant, workflow).await;
    assert!(!stack.is_live(), "{:?}", stack.head);
    over(engine, &rollback_of(&stack.head)).await
}

/// What was done, as `topic of job`.
fn done(world: &World) -> Vec<String> {
    let told =
        |(topic, input): &(String, Value)| format!("{topic} of {}", input["of"].as_str().unwrap_or("?"));
    world.done.lock().unwrap().iter().map(told).collect()
}

fn metric(engine: &Engine, name: &str) -> String {
    let page = engine.metrics_page();
    let name = format!("cordum_scheduler_saga_{name} ");
    page.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_else(|| panic!("{name}")).to_owned()
}

async fn compensations(engine: &Engine) -> Vec<Arc<Job>> {
    let query = JobQuery { limit: 500, ..JobQuery::default() };
    let jobs = engine.jobs().list(&query).await.unwrap().items;
    jobs.into_iter().filter(|job| job.request.is_compensation()).collect()
}

async fn dead_letters(engine: &Engine) -> Vec<DeadLetter> {
    let query = DeadLetterQuery { limit: 10, ..DeadLetterQuery::default() };
    engine.jobs().dead_letters(&query).await.unwrap().items
}

fn meter() -> Meter {
    Meter::new(CostLimit::RUN_EVENT)
}

#[tokio::test(start_paused = true)]
async fn what_a_client_did_is_undone_last_first_when_a_job_fails_for_good() {
    let world = World::failing_at_c();
    let engine = world.start().await;
    let mut first = job("a", "trip", "job.a", "job.undo.a");
    first.labels.insert("colour".to_owned(), "red".to_owned());
    assert_eq!(ask(&engine, first).await.state(), State::Succeeded);
    assert_eq!(ask(&engine, job("b", "trip", "job.b", "job.undo.b")).await.state(), State::Succeeded);
    assert_eq!(metric(&engine, "recorded_total"), "2");
    assert_eq!(ask(&engine, job("c", "trip", "job.c", "job.undo.a")).await.state(), State::Failed);
    let rollback = rolled_back(&engine, "default", "trip").await;
    assert_eq!(states(&rollback), "succeeded: undo=succeeded undo[0]=succeeded undo[1]=succeeded");
    assert_eq!(
        done(&world),
        ["job.a of a", "job.b of b", "job.c of c", "job.undo.b of b", "job.undo.a of a"],
        "each is given the input of the job that it undoes, and what failed is not undone"
    );
    let last =
        engine.jobs().job(&JobId::known(format!("{}:undo[1]@1", rollback.head.id))).await.unwrap().unwrap();
    let request = &last.request;
    assert_eq!((request.priority.as_str(), request.place.parent_job_id.as_str()), ("critical", "a"));
    for (label, value) in [
        ("saga_compensation", "true"),
        ("is_compensation", "true"),
        ("saga_workflow_id", "trip"),
        ("colour", "red"),
    ] {
        assert_eq!(request.labels[label], value);
    }
    assert_eq!(
        (request.env["saga_compensation"].as_str(), request.env["saga_workflow_id"].as_str()),
        ("true", "trip")
    );
    assert!(request.idempotency_key.as_ref().is_some_and(|key| key.starts_with("saga:") && key.len() == 37));
    assert!(!last.verdicts.is_empty(), "a compensation is judged as every job is");

    let stack = stack_of(&engine, "default", "trip").await;
    assert_eq!((stack.head.state, stack.head.error.as_str()), (RunState::Failed, "job c: it broke"));
    let runs = engine.workflows().runs(&RunQuery { limit: 10, ..RunQuery::default() }).await.unwrap().items;
    assert_eq!(runs.iter().map(|head| &head.id).collect::<Vec<_>>(), [&rollback.head.id, &stack.head.id]);
    for (name, value) in [
        ("recorded_total", "2"),
        ("rollback_triggered_total", "1"),
        ("compensation_dispatched_total", "2"),
        ("compensation_failed_total", "0"),
        ("unmarshal_error_total", "0"),
        ("active", "0"),
        ("rollback_duration_seconds_count", "1"),
    ] {
        assert_eq!(metric(&engine, name), value, "{name}");
    }
    let pruned = world.workflows.prune(engine.now() + 1, 10).await.unwrap();
    assert_eq!(pruned, 2, "nothing of it stays for ever");
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_fails_again_has_only_its_new_jobs_undone() {
    let world = World::failing_at_c();
    let engine = world.start().await;
    ask(&engine, job("a", "trip", "job.a", "job.undo.a")).await;
    ask(&engine, job("c", "trip", "job.c", "")).await;
    let first = rolled_back(&engine, "default", "trip").await;
    ask(&engine, job("b", "trip", "job.b", "job.undo.b")).await;
    ask(&engine, job("c2", "trip", "job.c", "")).await;
    let second = rolled_back(&engine, "default", "trip").await;
    assert_ne!(first.head.id, second.head.id);
    ask(&engine, job("c3", "trip", "job.c", "")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let undone: Vec<_> = done(&world).into_iter().filter(|done| done.contains("undo")).collect();
    assert_eq!(undone, ["job.undo.a of a", "job.undo.b of b"]);
    assert_eq!(metric(&engine, "rollback_triggered_total"), "2");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_under_way_when_its_workflow_failed_is_undone_too() {
    let world = World::failing_at_c();
    let engine = world.start().await;
    submit(&engine, job("slow", "trip", "job.slow", "job.undo.b")).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    ask(&engine, job("c", "trip", "job.c", "")).await;
    assert_eq!(done(&world), ["job.c of c"]);
    let introduction = Introduction {
        worker: WorkerId::known("w"),
        topics: vec![Topic::known("job.slow"), Topic::known("job.undo.b")],
    };
    engine.fleet().introduce(&TenantId::known("default"), introduction);
    engine.jobs().wait_for_end(&JobId::known("slow"), PATIENCE).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(done(&world), ["job.c of c", "job.slow of slow", "job.undo.b of slow"]);
    assert_eq!(stack_of(&engine, "default", "trip").await.head.compensations, 0, "it is not kept for later");
}

#[tokio::test(start_paused = true)]
async fn stacks_of_two_workflows_and_of_two_tenants_are_not_mixed() {
    let world = World::failing_at_c();
    let engine = world.start().await;
    ask(&engine, job("a", "trip", "job.a", "job.undo.a")).await;
    ask(&engine, job("b", "other-trip", "job.b", "job.undo.b")).await;
    let of_other = |request: Request| Request { tenant: TenantId::known("other"), ..request };
    ask(&engine, of_other(job("o", "trip", "job.a", "job.undo.a"))).await;
    ask(&engine, of_other(job("oc", "trip", "job.c", ""))).await;
    rolled_back(&engine, "other", "trip").await;
    let undone: Vec<_> = done(&world).into_iter().filter(|done| done.contains("undo")).collect();
    assert_eq!(undone, ["job.undo.a of o"]);
    let jobs = compensations(&engine).await;
    assert!(jobs.iter().all(|job| job.request.tenant.as_str() == "other"));
    ask(&engine, job("c", "trip", "job.c", "")).await;
    rolled_back(&engine, "default", "trip").await;
    let undone: Vec<_> = done(&world).into_iter().filter(|done| done.contains("undo")).collect();
    assert_eq!(undone, ["job.undo.a of o", "job.undo.a of a"], "b belongs to another workflow");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_a_dead_letter_and_the_rest_is_undone() {
    let world = World::failing_at_c();
    let engine = world.start().await;
    ask(&engine, job("a", "trip", "job.a", "job.undo.a")).await;
    let unreadable =
        Request { compensation: Bytes::from_static(b"\x7f\x7f"), ..job("bad", "trip", "job.b", "") };
    assert_eq!(
        ask(&engine, unreadable).await.state(),
        State::Succeeded,
        "the job has done what it was to do"
    );
    ask(&engine, job("b", "trip", "job.b", "job.undo.b")).await;
    ask(&engine, job("c", "trip", "job.c", "")).await;
    rolled_back(&engine, "default", "trip").await;
    let undone: Vec<_> = done(&world).into_iter().filter(|done| done.contains("undo")).collect();
    assert_eq!(undone, ["job.undo.b of b", "job.undo.a of a"]);
    let letters = dead_letters(&engine).await;
    let letter = letters.iter().find(|letter| letter.job_id.as_str().starts_with("comp-")).unwrap();
    assert_eq!(letter.reason_code.unwrap().code(), "saga_unmarshal_failed");
    assert!(letter.reason.contains("job bad"), "{}", letter.reason);
    let buried = engine.jobs().job(&letter.job_id).await.unwrap().unwrap();
    assert_eq!((buried.request.labels["saga_workflow_id"].as_str(), buried.attempts.len()), ("trip", 0));
    assert_eq!(metric(&engine, "unmarshal_error_total"), "1");
    assert!(!engine.jobs().job(&JobId::known("bad")).await.unwrap().unwrap().is_live());
}

#[tokio::test(start_paused = true)]
async fn a_full_stack_takes_no_more_and_the_next_compensation_is_a_dead_letter() {
    let world = World::failing_at_c();
    let tenant = TenantId::known("default");
    let mut run = stack(&tenant, "trip", Millis(1));
    let begun = start(&run, &stack_flow(), Millis(1), &meter());
    run.apply(begun);
    loop {
        let undo = ClientUndo { asked_at: Millis(1), request: Request::plain("x", "job.undo.a") };
        let undo = Compensation::of_client(&JobId::known(format!("j{}", run.head.compensations)), undo);
        match advance(&run, &stack_flow(), &RunEvent::Record(Arc::new(undo)), Millis(2), &meter()) {
            Ok(change) => run.apply(change),
            Err(_) => break,
        }
    }
    let change = start(&run, &stack_flow(), Millis(3), &meter());
    world.workflows.commit(RunStep::insert(Arc::new(run), Arc::new(change))).await.unwrap();
    let engine = world.start().await;
    assert_eq!(ask(&engine, job("a", "trip", "job.a", "job.undo.a")).await.state(), State::Succeeded);
    let letters = dead_letters(&engine).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].reason_code.unwrap().code(), "saga_not_recorded");
    assert!(letters[0].reason.contains("1000") && letters[0].topic.as_str() == "job.undo.a");
    assert!(!engine.jobs().job(&JobId::known("a")).await.unwrap().unwrap().is_live());
}

/// Whoever cannot go on keeps the others waiting, unless they were told not to wait.
#[tokio::test(start_paused = true)]
async fn compensations_go_one_after_the_other_unless_told_otherwise() {
    let undo = |is_parallel: bool| {
        let labels =
            is_parallel.then(|| ("saga_parallel".to_owned(), "true".to_owned())).into_iter().collect();
        message(&cap::Compensation { topic: "job.nobody".into(), labels, ..cap::Compensation::default() })
    };
    for (a, b, at_once) in [(false, false, 1), (true, false, 1), (true, true, 2)] {
        let world = World::failing_at_c();
        let engine = world.start().await;
        ask(&engine, Request { compensation: undo(a), ..job("a", "trip", "job.a", "") }).await;
        ask(&engine, Request { compensation: undo(b), ..job("b", "trip", "job.b", "") }).await;
        ask(&engine, job("c", "trip", "job.c", "")).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(compensations(&engine).await.len(), at_once, "{a} {b}");
        assert_eq!(metric(&engine, "active"), "1");
    }
    for (rollback, at_once) in [(json!({"parallel": false}), 1), (json!({"parallel": true}), 2)] {
        let world = World::failing_at_c();
        let engine = world.start().await;
        let undo = json!({"topic": "job.nobody"});
        let steps = json!({
            "a": {"topic": "job.a", "compensation": undo},
            "b": {"topic": "job.b", "depends_on": ["a"], "compensation": undo},
            "c": {"topic": "job.c", "depends_on": ["b"]},
        });
        world.save_with(&engine, steps, json!({"rollback": rollback})).await;
        let id: RunId = begin(&engine, json!({})).await;
        over(&engine, &id).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(compensations(&engine).await.len(), at_once, "{rollback}");
        // A server that takes over goes on in the same way.
        engine.kill();
        let engine = world.start().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(compensations(&engine).await.len(), at_once);
        engine.workflows().cancel_run(&rollback_id(&id), "ada", "").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn two_compensations_with_one_key_are_one_job() {
    let world = World::failing_at_c();
    let engine = world.start().await;
    for id in ["a", "b"] {
        let meta = cap::JobMetadata { idempotency_key: "once".into(), ..cap::JobMetadata::default() };
        let undo = cap::Compensation {
            topic: "job.undo.a".into(),
            meta: Some(meta),
            ..cap::Compensation::default()
        };
        ask(&engine, Request { compensation: message(&undo), ..job(id, "trip", "job.a", "") }).await;
    }
    ask(&engine, job("c", "trip", "job.c", "")).await;
    let rollback = rolled_back(&engine, "default", "trip").await;
    assert_eq!(states(&rollback), "succeeded: undo=succeeded undo[0]=succeeded undo[1]=succeeded");
    assert_eq!(done(&world)[3..], ["job.undo.a of b"]);
    assert_eq!(metric(&engine, "compensation_dispatched_total"), "1");
}

#[tokio::test(start_paused = true)]
async fn a_compensation_that_fails_does_not_hold_up_the_others() {
    let world = World::new(|topic, input| match topic {
        "job.c" | "job.undo.b" => (JobStatus::FailedFatal, json!(null)),
        _ => (JobStatus::Succeeded, input.clone()),
    });
    let engine = world.start().await;
    ask(&engine, job("a", "trip", "job.a", "job.undo.a")).await;
    ask(&engine, job("b", "trip", "job.b", "job.undo.b")).await;
    ask(&engine, job("c", "trip", "job.c", "")).await;
    let rollback = rolled_back(&engine, "default", "trip").await;
    assert_eq!(states(&rollback), "failed: undo=failed undo[0]=failed undo[1]=succeeded");
    assert_eq!(done(&world)[3..], ["job.undo.b of b", "job.undo.a of a"]);
    assert_eq!(metric(&engine, "compensation_failed_total"), "1");
    assert_eq!(metric(&engine, "rollback_triggered_total"), "1", "what undoes is not undone");
}
