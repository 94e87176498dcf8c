//! The safety net: jobs that no timer sees to are ended or moved on, by one replica at a time.

use reveille_bus::Bus;
use reveille_core::approval::{Choice, Decided};
use reveille_core::fleet::Load;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Phase, State};
use reveille_core::life;
use reveille_core::policy::{Decision, Policy, RecordedVerdict, Verdict};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::{Clock, Engine, Rules};
use reveille_store::suite::hooked::{HookedStore, StoreHook};
use reveille_store::{Commit, DISK_FULL, JobStore, Step, Store, StoreError};
use reveille_test_kit::{
    EngineBuilder, TestServer, TestWorker, TestWorld, beat, idle, introduce, new_job, pass, tenant,
};
use reveille_wire::subject;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Commits that fail, and a store that is away for what locks and dead packets need.
#[derive(Default)]
pub struct Failing {
    /// How many commits are still to fail.
    left: AtomicU32,
    pub is_away: AtomicBool,
}

#[async_trait::async_trait]
impl StoreHook for Failing {
    async fn commit(&self, store: &dyn Store, step: Step) -> Result<Commit, StoreError> {
        let one_less = |left: u32| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return Err(StoreError::Full(DISK_FULL));
        }
        store.commit(step).await
    }

    fn before_lock_or_bury(&self) -> Result<(), StoreError> {
        let is_away = self.is_away.load(Ordering::SeqCst);
        if is_away { Err(StoreError::Unavailable("it is away".to_owned())) } else { Ok(()) }
    }
}

/// What replicas share.
pub struct Shared {
    pub store: HookedStore<Failing>,
    world: TestWorld,
}

impl Shared {
    pub fn new() -> Self {
        let world = TestWorld::new();
        Self { store: HookedStore::new(world.store.clone(), Failing::default()), world }
    }

    pub async fn start(&self) -> TestServer {
        self.start_with(|engine| engine).await
    }

    pub async fn start_with(&self, change: impl FnOnce(EngineBuilder) -> EngineBuilder) -> TestServer {
        let timeouts = r#"{"reconciler": {"dispatch_timeout_seconds": 40, "running_timeout_seconds": 50}}"#;
        let rules = Rules { timeouts: serde_json::from_str(timeouts).unwrap(), ..Rules::default() };
        let engine = self.world.engine().store(Arc::new(self.store.clone())).rules(rules);
        let server = change(engine).start().await;
        pass(1).await;
        server
    }

    fn now(&self) -> Millis {
        self.world.clock.now()
    }

    async fn state(&self, id: &str) -> State {
        self.store.job(&JobId::known(id)).await.unwrap().unwrap().state()
    }

    /// Puts a job down as a replica would that died before it could do anything else.
    async fn put(&self, job: Job) {
        assert_eq!(self.store.commit(Step::insert(job)).await.unwrap(), Commit::Done);
    }

    fn judged(&self, id: &str, decision: Decision) -> Job {
        let job = self.submitted(id);
        let verdict = Verdict { decision, ..Policy::builtin().evaluate(&job.request) };
        life::judge(&job, RecordedVerdict { verdict, checked_at: self.now() }, self.now()).unwrap()
    }

    fn submitted(&self, id: &str) -> Job {
        life::submit(Request::plain(id, "job.echo"), self.now())
    }
}

fn count(engine: &Engine, series: &str) -> u64 {
    let page = engine.metrics_page();
    let series = format!("cordum_scheduler_{series} ");
    page.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
}

fn passes(engine: &Engine) -> [u64; 2] {
    ["reconciler", "replayer"].map(|net| count(engine, &format!("safety_net_passes_total{{net=\"{net}\"}}")))
}

async fn submit(engine: &Engine, id: &str, deadline_ms: i64) -> State {
    let mut request = Request::plain(id, "job.echo");
    request.budget.deadline_ms = deadline_ms;
    new_job(engine, request).await.state()
}

fn employ(engine: &Engine) {
    introduce(engine, &tenant(), "w", &["job.echo"]);
    // It says that it is at work: whoever beats idle has forgotten its jobs.
    beat(engine, &tenant(), "w", Load { active_jobs: 1, ..idle(10) });
}

#[tokio::test(start_paused = true)]
async fn the_jobs_of_a_replica_that_died_are_ended_by_another() {
    let shared = Shared::new();
    let survivor = shared.start().await;
    let dying = shared.start().await;
    let _listens = TestWorker::listen(&dying.bus, "w").await;
    assert_eq!(submit(&dying, "waits", 20_000).await, State::Scheduled);
    employ(&dying);
    assert_eq!(submit(&dying, "runs", 0).await, State::Dispatched);
    pass(1).await;
    assert_eq!(shared.state("runs").await, State::Running);
    dying.kill();

    // The survivor has no timer for them. Its passes come 30 s apart.
    pass(60).await;
    assert_eq!(shared.state("waits").await, State::Timeout);
    assert_eq!(shared.state("runs").await, State::Running, "it has 50 s");
    pass(60).await;
    assert_eq!(shared.state("runs").await, State::Timeout);
    assert_eq!(count(&survivor, "safety_net_acted_total{net=\"reconciler\"}"), 2);
    assert_eq!(survivor.metrics().net_acted(), 2);
}

#[tokio::test(start_paused = true)]
async fn where_timers_fire_the_net_has_nothing_to_do() {
    let shared = Shared::new();
    let engine = shared.start().await;
    let _listens = TestWorker::listen(&engine.bus, "w").await;
    assert_eq!(submit(&engine, "waits", 20_000).await, State::Scheduled);
    pass(30).await;
    employ(&engine);
    assert_eq!(submit(&engine, "runs", 0).await, State::Dispatched);
    for _ in 0..20 {
        pass(15).await;
        employ(&engine);
    }
    assert_eq!(shared.state("waits").await, State::Timeout);
    assert_eq!(shared.state("runs").await, State::Timeout);
    assert_eq!(passes(&engine), [11, 11]);
    assert_eq!(engine.metrics().net_acted(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_replica_at_a_time_goes_through_the_jobs_and_another_follows_it() {
    let shared = Shared::new();
    let first = shared.start().await;
    let second = shared.start().await;
    pass(300).await;
    assert_eq!((passes(&first), passes(&second)), ([10, 10], [0, 0]), "one has it, and keeps it");
    first.kill();
    pass(30).await;
    assert_eq!(passes(&second), [0, 0], "the lock of the dead is still there");
    pass(61).await;
    let [reconciled, replayed] = passes(&second);
    assert!((1..=2).contains(&reconciled) && (1..=2).contains(&replayed), "{reconciled} {replayed}");
    pass(300).await;
    assert_eq!(passes(&second), [reconciled + 10, replayed + 10]);
}

#[tokio::test(start_paused = true)]
async fn what_stands_still_is_moved_on_after_two_minutes() {
    let shared = Shared::new();
    let engine = shared.start().await;
    let mut letters = engine.bus.subscribe(subject::JOB_DLQ, None).await.unwrap();
    let (by, comment) = ("ann".to_owned(), String::new());
    let decided = Some(Decided { choice: Choice::Approve, by, key: None, at: shared.now(), comment });
    let held_back = Phase::Pending { judge_at: shared.now() + 600_000, unanswered: 0, throttled: 0 };
    shared.put(shared.submitted("unjudged")).await;
    shared.put(Job { phase: held_back, ..shared.submitted("throttled") }).await;
    shared.put(Job { decided, ..shared.judged("approved", Decision::RequireApproval) }).await;
    shared.put(shared.judged("asked", Decision::RequireApproval)).await;
    shared.put(shared.judged("unseated", Decision::Allow)).await;
    shared.put(shared.judged("denied", Decision::Deny)).await;

    pass(110).await;
    assert_eq!(shared.state("unjudged").await, State::Pending, "two minutes are not over");
    assert!(letters.try_recv().is_none());
    pass(50).await;
    assert_eq!(shared.state("unjudged").await, State::Scheduled);
    assert_eq!(shared.state("approved").await, State::Scheduled);
    assert_eq!(shared.state("throttled").await, State::Pending);
    assert_eq!(shared.state("asked").await, State::ApprovalRequired);
    assert!(letters.try_recv().is_some(), "what was owed is paid");
    assert_eq!(count(&engine, "orphan_replayed_total{topic=\"job.echo\"}"), 4);
    assert_eq!(count(&engine, "safety_net_acted_total{net=\"replayer\"}"), 4);

    // Whoever was not in placement is now, and goes as soon as there is a worker.
    let _listens = TestWorker::listen(&engine.bus, "w").await;
    employ(&engine);
    pass(1).await;
    for id in ["unjudged", "approved", "unseated"] {
        assert_eq!(shared.state(id).await, State::Running, "{id}");
    }
    pass(10).await;
    assert_eq!(engine.metrics().net_acted(), 4, "once is enough");
}

#[tokio::test(start_paused = true)]
async fn a_job_has_three_tries_in_a_pass_and_is_there_in_the_next() {
    let shared = Shared::new();
    let engine = shared.start().await;
    shared.put(shared.submitted("unjudged")).await;
    shared.store.hook.left.store(4, Ordering::SeqCst);
    pass(155).await;
    assert_eq!(shared.store.hook.left.load(Ordering::SeqCst), 1, "three were tried");
    assert_eq!(shared.state("unjudged").await, State::Pending);
    assert_eq!(count(&engine, "safety_net_left_total{net=\"replayer\"}"), 1);
    assert_eq!(count(&engine, "stale_jobs{state=\"PENDING\"}"), 1);
    pass(30).await;
    assert_eq!(shared.state("unjudged").await, State::Scheduled);
    assert_eq!(count(&engine, "safety_net_left_total{net=\"replayer\"}"), 1);
    assert_eq!(engine.metrics().net_acted(), 1);
    pass(30).await;
    assert_eq!(count(&engine, "stale_jobs{state=\"PENDING\"}"), 0);
}
