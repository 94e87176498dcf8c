//! Runs on a real engine: workers answer, servers are killed between any two steps, and time is the test's own.

mod clock;
mod policy;
mod rollbacks;
mod unwanted;

use bytes::Bytes;
use reveille_core::approval::Answer;
use reveille_core::flow::{Run, RunState, WorkflowDocument};
use reveille_core::id::{JobId, RunId, StepId, TenantId, WorkflowId};
use reveille_core::job::State;
use reveille_core::request::Actor;
use reveille_core::time::Millis;
use reveille_engine::{Engine, RunError, RunRequest, SaveError, StartRunError, Started};
use reveille_store::workflows::WorkflowStore;
use reveille_store::{BlobKey, Blobs, PutMode, Store};
use reveille_test_kit::{EngineBuilder, TestWorker, introduce, keep_beating, succeeded};
use reveille_wire::cap::{JobRequest, JobResult, JobStatus};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// What a worker does with a job: how it ends, and what it gives.
type Work = Arc<dyn Fn(&str, &Value) -> (JobStatus, Value) + Send + Sync>;

/// A world with workers that do as they were told.
#[derive(Clone)]
pub struct World {
    kept: reveille_test_kit::TestWorld,
    work: Work,
    /// Every job that a worker was given: topic and input.
    pub done: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Deref for World {
    type Target = reveille_test_kit::TestWorld;
    fn deref(&self) -> &Self::Target {
        &self.kept
    }
}

impl World {
    pub fn new(work: impl Fn(&str, &Value) -> (JobStatus, Value) + Send + Sync + 'static) -> Self {
        Self { kept: reveille_test_kit::TestWorld::new(), work: Arc::new(work), done: Arc::default() }
    }

    fn echo() -> Self {
        Self::new(|_, input| (JobStatus::Succeeded, input.clone()))
    }

    pub fn failing_at_c() -> Self {
        Self::new(|topic, input| match topic {
            "job.c" => (JobStatus::FailedFatal, json!(null)),
            _ => (JobStatus::Succeeded, input.clone()),
        })
    }

    /// A server with one worker for each of two tenants, which takes every topic of these tests.
    pub async fn start(&self) -> Engine {
        self.start_as(|engine| engine).await
    }

    /// The same, with something between the server and what it keeps.
    pub async fn start_on(&self, store: Arc<dyn Store>, workflows: Arc<dyn WorkflowStore>) -> Engine {
        self.start_as(|engine| engine.store(store).workflows(workflows)).await
    }

    /// The same, made of some other parts.
    pub async fn start_as(&self, change: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Engine {
        let server = change(self.engine().seed(7)).start().await;
        for (worker, tenant) in [("w", "default"), ("v", "other")] {
            let tenant = TenantId::known(tenant);
            let topics = ["job.a", "job.b", "job.c", "job.undo.a", "job.undo.b"];
            introduce(&server, &tenant, worker, &topics);
            let world = self.clone();
            let work = move |job| {
                let world = world.clone();
                async move { Some(world.work_on(job).await) }
            };
            TestWorker::listen(&server.bus, worker).await.work(work);
            keep_beating(&server, &tenant, worker, 100, Duration::from_secs(5));
        }
        server.engine
    }

    async fn work_on(&self, job: JobRequest) -> JobResult {
        let input = BlobKey::from_pointer(&job.context_ptr).unwrap();
        let input = self.store.blob(&input).await.unwrap().unwrap();
        let input: Value = serde_json::from_slice(&input).unwrap();
        self.done.lock().unwrap().push((job.topic.clone(), input.clone()));
        let (status, output) = (self.work)(&job.topic, &input);
        let result = BlobKey::from_pointer(&format!("redis://res:{}", job.job_id)).unwrap();
        let output = Bytes::from(output.to_string());
        self.store.put_blob(result.clone(), output, Millis(i64::MAX), PutMode::Always).await.unwrap();
        let is_done = status == JobStatus::Succeeded;
        JobResult {
            status: status as i32,
            result_ptr: result.pointer(),
            error_message: if is_done { String::new() } else { "it broke".to_owned() },
            ..succeeded(&job.job_id)
        }
    }

    pub async fn save(&self, engine: &Engine, steps: Value) -> u32 {
        self.save_with(engine, steps, json!({})).await
    }

    pub async fn save_with(&self, engine: &Engine, steps: Value, more: Value) -> u32 {
        engine
            .workflows()
            .save_workflow(&TenantId::known("default"), document("w", steps, more), "ada")
            .await
            .unwrap()
    }

    pub fn topics_done(&self) -> Vec<String> {
        self.done.lock().unwrap().iter().map(|(topic, _)| topic.clone()).collect()
    }
}

fn document(id: &str, steps: Value, mut more: Value) -> WorkflowDocument {
    let mut document = json!({"id": id, "name": id});
    let parts = document.as_object_mut().unwrap();
    parts.append(more.as_object_mut().unwrap());
    parts.insert("steps".to_owned(), steps);
    serde_json::from_value(document).unwrap()
}

fn asked(input: Value) -> RunRequest {
    RunRequest {
        tenant: TenantId::known("default"),
        workflow: WorkflowId::known("w"),
        input,
        idempotency_key: None,
        started_by: None,
        actor: Actor::default(),
    }
}

pub async fn begin(engine: &Engine, input: Value) -> RunId {
    engine.workflows().start_run(asked(input)).await.unwrap().id().clone()
}

pub async fn over(engine: &Engine, id: &RunId) -> Run {
    let run = engine.workflows().run_after(id, engine.now() + 3_600_000).await.unwrap().unwrap();
    assert!(run.head.state.is_terminal(), "{:?}", run.head);
    run
}

pub fn states(run: &Run) -> String {
    let steps = run.nodes.iter().map(|(key, node)| format!("{key}={}", node.state));
    format!("{}: {}", run.head.state, steps.collect::<Vec<_>>().join(" "))
}

#[tokio::test(start_paused = true)]
async fn steps_are_jobs_and_what_they_give_goes_on() {
    let world = World::echo();
    let engine = world.start().await;
    world
        .save(&engine, json!({
            "a": {"topic": "job.a", "input": {"n": "${input.n}"}},
            "each": {"topic": "job.b", "depends_on": ["a"], "for_each": [1, 2, 3], "max_parallel": 2, "input": {"n": "${steps.a.output.n + item}"}},
            "c": {"topic": "job.c", "depends_on": ["each"], "delay_sec": 30, "input": {"all": "${steps.each.output.map(one, one.n)}"}},
        }))
        .await;
    let id = begin(&engine, json!({"n": 10})).await;
    let run = over(&engine, &id).await;
    assert_eq!(
        states(&run),
        "succeeded: a=succeeded c=succeeded each=succeeded each[0]=succeeded each[1]=succeeded each[2]=succeeded"
    );
    assert_eq!(run.output.as_deref(), Some(&json!({"c": {"all": [11, 12, 13]}})));
    let job = engine.jobs().job(&JobId::known(format!("{id}:each[1]@1"))).await.unwrap().unwrap();
    assert_eq!(
        (job.state(), job.request.labels["step_id"].as_str(), job.request.place.workflow_id.as_str()),
        (State::Succeeded, "each[1]", "w")
    );
    assert!(run.head.ended_at.unwrap().since(run.head.created_at) >= 30_000, "the delay was waited for");
    let lines = engine.workflows().timeline(&id, 0, 500).await.unwrap();
    assert_eq!(lines.last().unwrap().1.status, "succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_run_outlives_its_server_wherever_it_is_killed() {
    // As a server that is never killed would have it.
    let steps = json!({
        "a": {"topic": "job.a", "input": {"n": 1}},
        "wait": {"type": "delay", "depends_on": ["a"], "delay_sec": 20},
        "each": {"topic": "job.b", "depends_on": ["wait"], "for_each": [1, 2, 3], "max_parallel": 1, "input": {"n": "${item}"}},
        "tell": {"type": "notify", "depends_on": ["each"], "input": {"message": "done"}},
    });
    for kill_after_ms in [0, 1, 5, 20, 30, 500, 10_000, 19_990, 20_010, 20_030, 20_060, 20_100, 21_000] {
        let world = World::echo();
        let mut engine = world.start().await;
        world.save(&engine, steps.clone()).await;
        let id = begin(&engine, json!({})).await;
        tokio::time::sleep(Duration::from_millis(kill_after_ms)).await;
        engine.kill();
        tokio::time::sleep(Duration::from_millis(50)).await;
        engine = world.start().await;
        let run = over(&engine, &id).await;
        assert_eq!(
            states(&run),
            "succeeded: a=succeeded each=succeeded each[0]=succeeded each[1]=succeeded each[2]=succeeded tell=succeeded wait=succeeded",
            "killed after {kill_after_ms} ms"
        );
        engine.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_waits_for_a_person_whatever_policy_allows() {
    let world = World::echo();
    let engine = world.start().await;
    world
        .save(&engine, json!({"ask": {"type": "approval", "input": {"what": "go on?"}}, "a": {"topic": "job.a", "depends_on": ["ask"], "input": "${steps.ask.output}"}}))
        .await;
    let id = begin(&engine, json!({})).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let waiting = engine.workflows().run(&id).await.unwrap().unwrap();
    assert_eq!(states(&waiting), "waiting: ask=waiting");
    let gate = JobId::known(format!("{id}:ask@1"));
    assert_eq!(engine.jobs().job(&gate).await.unwrap().unwrap().state(), State::ApprovalRequired);
    engine
        .jobs()
        .approve(&gate, Answer { by: "ada".to_owned(), comment: "fine".to_owned(), ..Answer::default() })
        .await
        .unwrap();
    let run = over(&engine, &id).await;
    assert_eq!(states(&run), "succeeded: a=succeeded ask=succeeded");
    assert_eq!(run.output.as_deref(), Some(&json!({"a": {"approved_by": "ada", "comment": "fine"}})));
    assert_eq!(engine.jobs().job(&gate).await.unwrap().unwrap().state(), State::Succeeded);

    let id = begin(&engine, json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    engine
        .jobs()
        .reject(&JobId::known(format!("{id}:ask@1")), Answer { by: "ada".to_owned(), ..Answer::default() })
        .await
        .unwrap();
    assert_eq!(states(&over(&engine, &id).await), "denied: ask=denied");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_takes_its_jobs_along() {
    let world = World::echo();
    let engine = world.start().await;
    // Nobody takes this topic: the job waits.
    world
        .save(&engine, json!({"a": {"topic": "job.nobody"}, "d": {"type": "delay", "delay_sec": 600}}))
        .await;
    let id = begin(&engine, json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let head = engine.workflows().cancel_run(&id, "ada", "enough").await.unwrap();
    assert_eq!((head.state, head.error.as_str()), (RunState::Cancelled, "cancelled by ada: enough"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        engine.jobs().job(&JobId::known(format!("{id}:a@1"))).await.unwrap().unwrap().state(),
        State::Cancelled
    );
    assert!(!engine.workflows().run(&id).await.unwrap().unwrap().is_live());
    assert!(matches!(engine.workflows().cancel_run(&id, "ada", "").await, Err(RunError::Refused(_))));
    assert!(matches!(
        engine.workflows().cancel_run(&RunId::known("none"), "ada", "").await,
        Err(RunError::Unknown)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_run_within_a_run_gives_its_output() {
    let world = World::echo();
    let engine = world.start().await;
    let tenant = TenantId::known("default");
    let inner = document(
        "inner",
        json!({"b": {"topic": "job.b", "input": {"got": "${input.x}"}}}),
        json!({"output": "${steps.b.output.got}"}),
    );
    engine.workflows().save_workflow(&tenant, inner, "ada").await.unwrap();
    world
        .save(&engine, json!({
            "s": {"type": "subworkflow", "input": {"workflow_id": "inner", "input_mapping": {"x": "${input.x}"}}},
            "a": {"topic": "job.a", "depends_on": ["s"], "input": "${steps.s.output}"},
        }))
        .await;
    let run = over(&engine, &begin(&engine, json!({"x": 5})).await).await;
    assert_eq!(run.output.as_deref(), Some(&json!({"a": 5})));

    let itself =
        document("inner", json!({"b": {"type": "subworkflow", "input": {"workflow_id": "w"}}}), json!({}));
    let problem = engine.workflows().save_workflow(&tenant, itself, "ada").await.unwrap_err();
    assert!(matches!(&problem, SaveError::Bad(bad) if bad.step.as_deref() == Some("b")), "{problem}");
    let nobody =
        document("v", json!({"b": {"type": "subworkflow", "input": {"workflow_id": "gone"}}}), json!({}));
    assert!(
        engine
            .workflows()
            .save_workflow(&tenant, nobody, "ada")
            .await
            .unwrap_err()
            .to_string()
            .contains("no workflow gone")
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_the_version_that_it_began_with() {
    let world = World::echo();
    let engine = world.start().await;
    let first = world
        .save(
            &engine,
            json!({"d": {"type": "delay", "delay_sec": 60}, "a": {"topic": "job.a", "depends_on": ["d"]}}),
        )
        .await;
    let id = begin(&engine, json!({})).await;
    let second = world.save(&engine, json!({"b": {"topic": "job.b"}})).await;
    assert_eq!((first, second), (1, 2));
    assert_eq!(states(&over(&engine, &id).await), "succeeded: a=succeeded d=succeeded");
    assert_eq!(states(&over(&engine, &begin(&engine, json!({})).await).await), "succeeded: b=succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_run_is_started_once_and_within_limits() {
    let world = World::echo();
    let engine = world.start().await;
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    world
        .save_with(&engine, json!({"d": {"type": "delay", "delay_sec": 60}}), json!({"input_schema": schema}))
        .await;
    let once = RunRequest { idempotency_key: Some("k".to_owned()), ..asked(json!({"n": 1})) };
    let first = engine.workflows().start_run(once.clone()).await.unwrap();
    let second = engine.workflows().start_run(once.clone()).await.unwrap();
    assert!(matches!(&second, Started::Existing(id) if id == first.id()));
    let bad = engine.workflows().start_run(asked(json!({"n": "x"}))).await.unwrap_err();
    assert!(
        matches!(&bad, StartRunError::Bad { field: "input", problem } if problem.contains("/n")),
        "{bad}"
    );
    let gone = RunRequest { workflow: WorkflowId::known("gone"), ..once };
    assert!(matches!(engine.workflows().start_run(gone).await, Err(StartRunError::UnknownWorkflow(_))));
}

#[tokio::test(start_paused = true)]
async fn a_run_is_repeated_from_a_step() {
    let is_broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let broken = is_broken.clone();
    let world = World::new(move |topic, input| {
        if topic == "job.b" && broken.load(Ordering::Relaxed) {
            return (JobStatus::FailedFatal, json!(null));
        }
        (JobStatus::Succeeded, input.clone())
    });
    let engine = world.start().await;
    world
        .save(&engine, json!({"a": {"topic": "job.a", "input": 1}, "b": {"topic": "job.b", "depends_on": ["a"], "input": "${steps.a.output}"}, "c": {"topic": "job.c", "depends_on": ["b"]}}))
        .await;
    let id = begin(&engine, json!({})).await;
    assert_eq!(states(&over(&engine, &id).await), "failed: a=succeeded b=failed");
    is_broken.store(false, Ordering::Relaxed);
    assert!(
        engine.workflows().rerun(&id, Some(&StepId::known("c")), None).await.is_err(),
        "b has not succeeded"
    );
    assert!(engine.workflows().rerun(&id, Some(&StepId::known("gone")), None).await.is_err());
    let again = engine.workflows().rerun(&id, Some(&StepId::known("b")), None).await.unwrap();
    assert_eq!(states(&over(&engine, again.id()).await), "succeeded: a=succeeded b=succeeded c=succeeded");
    assert_eq!(world.topics_done(), ["job.a", "job.b", "job.b", "job.c"], "a was not done again");
}
