//! Jobs that are stored after their run was cancelled and has called back what it knew of: nobody but the server that
//! submitted them knows that they are not wanted.

use super::*;
use reveille_core::flow::NodeKey;
use reveille_core::request::{OfRun, Request, Role};
use reveille_engine::{Submission, Submitter};
use reveille_store::suite::hooked as jobs;
use reveille_store::workflows::suite::hooked as runs;
use reveille_store::{Commit, JobStore, Step, StoreError};
use std::sync::atomic::{AtomicBool, AtomicU32};

/// What fails from the moment the job is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Away {
    Runs,
    Jobs,
}

/// A store that fails twice: it takes the job at the second try only, and goes away right after.
struct Failing {
    away: Away,
    tries: AtomicU32,
    is_away: AtomicBool,
}

impl Failing {
    fn check(&self, what: Away) -> Result<(), StoreError> {
        let fails = self.is_away.load(Ordering::Relaxed) && self.away == what;
        if fails { Err(StoreError::Unavailable("it is away".to_owned())) } else { Ok(()) }
    }
}

struct Hook(Arc<Failing>);

#[async_trait::async_trait]
impl jobs::StoreHook for Hook {
    async fn commit(&self, store: &dyn Store, step: Step) -> Result<Commit, StoreError> {
        self.0.check(Away::Jobs)?;
        if step.before.is_some() {
            return store.commit(step).await;
        }
        if self.0.tries.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err(StoreError::Unavailable("not yet".to_owned()));
        }
        let committed = store.commit(step).await;
        self.0.is_away.store(true, Ordering::Relaxed);
        committed
    }
}

#[async_trait::async_trait]
impl runs::WorkflowHook for Hook {
    fn before_node(&self) -> Result<(), StoreError> {
        self.0.check(Away::Runs)
    }
}

/// A server with a job that its run does not want, and a store that is away. Gives the job, too.
async fn left_with_a_job(world: &World, away: Away) -> (Engine, Arc<Failing>, JobId) {
    let failing = Arc::new(Failing { away, tries: AtomicU32::new(0), is_away: AtomicBool::new(false) });
    let store = jobs::HookedStore::new(world.store.clone(), Hook(failing.clone()));
    let flows = runs::HookedWorkflows::new(world.workflows.clone(), Hook(failing.clone()));
    let engine = world.start_on(Arc::new(store), Arc::new(flows)).await;
    world.save(&engine, json!({"a": {"topic": "job.nobody"}})).await;
    let id = begin(&engine, json!({})).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    engine.workflows().cancel_run(&id, "ada", "enough").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!world.workflows.run(&id).await.unwrap().unwrap().is_live(), "the run is done with it");
    let job = JobId::known(format!("{id}:a@1"));
    assert!(world.store.job(&job).await.unwrap().is_none(), "and the job is not there yet");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(state(world, &job).await, State::Scheduled, "{away:?}");
    (engine, failing, job)
}

async fn state(world: &World, job: &JobId) -> State {
    world.store.job(job).await.unwrap().unwrap().state()
}

#[tokio::test(start_paused = true)]
async fn a_job_that_no_run_wants_is_cancelled_when_the_store_is_back() {
    for away in [Away::Runs, Away::Jobs] {
        let world = World::echo();
        let (engine, failing, job) = left_with_a_job(&world, away).await;
        failing.is_away.store(false, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(state(&world, &job).await, State::Cancelled, "{away:?}");
        engine.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_stopped_while_the_store_is_away_leaves_the_cancel_to_the_next() {
    for away in [Away::Runs, Away::Jobs] {
        let world = World::echo();
        let (engine, _, job) = left_with_a_job(&world, away).await;
        let began = Instant::now();
        engine.drain(Duration::from_secs(5)).await;
        assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
        assert_eq!(state(&world, &job).await, State::Scheduled);
        let engine = world.start().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(state(&world, &job).await, State::Cancelled, "{away:?}");
        engine.kill();
    }
}

/// Runs are kept for a while after they are over; a job may wait for longer.
#[tokio::test(start_paused = true)]
async fn a_job_of_a_run_that_is_kept_no_longer_is_cancelled() {
    let world = World::echo();
    let (engine, _, job) = left_with_a_job(&world, Away::Runs).await;
    engine.kill();
    let run = RunId::parse(job.as_str().split(':').next().unwrap()).unwrap();
    assert!(world.workflows.delete_run(&run).await.unwrap());
    let engine = world.start().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(state(&world, &job).await, State::Cancelled);
    engine.kill();
}

/// A start looks at them, too, and must not take them for left behind.
#[tokio::test(start_paused = true)]
async fn jobs_that_are_wanted_outlive_a_start() {
    let world = World::echo();
    let engine = world.start().await;
    world.save(&engine, json!({"a": {"topic": "job.nobody"}, "ask": {"type": "approval"}})).await;
    let (ended, live) = (begin(&engine, json!({})).await, begin(&engine, json!({})).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    engine.workflows().cancel_run(&ended, "ada", "enough").await.unwrap();
    // The successor of a dead letter says which step it is of, and is what somebody asked for.
    let mut again = Request::plain("again", "job.nobody");
    let node = NodeKey::of(&StepId::known("a"));
    again.place.of_run = Some(Box::new(OfRun { run: ended.clone(), node, attempt: 1, role: Role::Step }));
    let asked = Submission { request: again, context: None, submitter: Submitter::IsGone };
    engine.jobs().submit(asked).await.unwrap();
    engine.kill();
    let engine = world.start().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(state(&world, &JobId::known("again")).await, State::Scheduled);
    assert_eq!(state(&world, &JobId::known(format!("{live}:a@1"))).await, State::Scheduled);
    assert_eq!(state(&world, &JobId::known(format!("{live}:ask@1"))).await, State::ApprovalRequired);
    engine.kill();
}
