//! Several servers on one store: together they keep what one alone would keep, and what one leaves behind the
//! others pick up.

mod credentials;
mod once;
mod remembered;
mod runs;
mod watching;

use bytes::Bytes;
use reveille_a2a::{A2aClient, A2aError, A2aReply, A2aRequest, Received};
use reveille_bus::{Bus, LocalBus};
use reveille_core::audit::EventType;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{Job, State};
use reveille_core::policy::Policy;
use reveille_core::presence::agent::AgentBeat;
use reveille_core::presence::delegation::DelegationStatus;
use reveille_core::presence::workspace::Pulse;
use reveille_core::request::Request;
use reveille_engine::{
    Audience, Engine, EventId, NewWorkspace, NextEvents, Settings, Snapshot, SubmitError, Submitted, What,
    WorkerChange, WorkspaceRegistration,
};
use reveille_store::{AuditQuery, AuditTrail, BlobKey, Blobs, JobQuery, JobStore, Locks};
use reveille_test_kit::{
    EngineBuilder, TestWorker, beat, idle, introduce, keep_beating, policy, succeeded, tenant,
};
use serde_json::json;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// One that can do ten is given nine.
const CAN_DO: u32 = 10;
const IS_GIVEN: usize = 9;

/// Every workspace takes what it is brought, and says later what became of it.
struct Slow;

#[async_trait::async_trait]
impl A2aClient for Slow {
    async fn check(&self, _url: &str) -> Result<(), A2aError> {
        Ok(())
    }

    async fn post(&self, _letter: A2aRequest, received: Received) -> Result<A2aReply, A2aError> {
        received();
        Ok(A2aReply { status: 202, body: Bytes::from_static(br#"{"queued":true}"#), retry_after: None })
    }
}

/// What the servers share.
struct World {
    kept: reveille_test_kit::TestWorld,
    bus: LocalBus,
    policy: Policy,
}

impl Deref for World {
    type Target = reveille_test_kit::TestWorld;
    fn deref(&self) -> &Self::Target {
        &self.kept
    }
}

impl World {
    fn new() -> Self {
        Self {
            kept: reveille_test_kit::TestWorld::new(),
            bus: LocalBus::default(),
            policy: Policy::builtin(),
        }
    }

    async fn server(&self, name: &str) -> Engine {
        self.server_on(name, Arc::new(self.bus.clone())).await
    }

    async fn server_on(&self, name: &str, bus: Arc<dyn Bus>) -> Engine {
        self.replica(name).bus(bus).start().await.engine
    }

    fn replica(&self, name: &str) -> EngineBuilder {
        let engine = self.engine().store(Arc::new(self.store.as_replica(name))).a2a(Arc::new(Slow));
        let settings = Settings { replica: name.to_owned(), ..Settings::default() };
        engine.seed(name.len() as u64).policy(self.policy.clone()).settings(settings)
    }

    /// Two servers that know each other and have picked up what there was.
    async fn two(&self) -> [Engine; 2] {
        let servers = [self.server("a").await, self.server("bb").await];
        sleep(5_000).await;
        assert!(servers.iter().all(Engine::is_recovered));
        servers
    }

    /// A worker that all of the servers hear, and that takes `ms` over a job. Counts what it was given.
    async fn worker(&self, servers: &[Engine], name: &str, ms: u64) -> Arc<AtomicUsize> {
        let (worker, given) = (TestWorker::listen(&self.bus, name).await, Arc::new(AtomicUsize::new(0)));
        let (reporter, count) = (worker.reporter(), given.clone());
        worker.work(move |job| {
            count.fetch_add(1, Ordering::Relaxed);
            let reporter = reporter.clone();
            tokio::spawn(async move {
                sleep(ms).await;
                reporter.report(succeeded(&job.job_id)).await;
            });
            async { None }
        });
        for server in servers {
            introduce(server, &tenant(), name, &["job.echo"]);
            keep_beating(server, &tenant(), name, CAN_DO, Duration::from_secs(2));
        }
        given
    }

    async fn count(&self, states: &[State]) -> usize {
        let page = self.store.jobs(&JobQuery { limit: 500, ..JobQuery::default() }).await.unwrap();
        page.items.iter().filter(|job| states.contains(&job.state())).count()
    }

    async fn job(&self, id: &str) -> Arc<Job> {
        self.store.job(&JobId::known(id)).await.unwrap().unwrap()
    }
}

async fn submit(server: &Engine, id: &str) -> Result<Submitted, SubmitError> {
    reveille_test_kit::submit(server, Request::plain(id, "job.echo")).await
}

async fn sleep(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn together_they_give_a_worker_no_more_than_fits() {
    let world = World::new();
    let servers = world.two().await;
    world.worker(&servers, "w", 1_000).await;
    let mut submits = tokio::task::JoinSet::new();
    for number in 0..60 {
        let server = servers[number % 2].clone();
        submits.spawn(async move { submit(&server, &format!("j{number}")).await.unwrap() });
    }
    submits.join_all().await;
    for _ in 0..100 {
        let at_worker = world.count(&[State::Dispatched, State::Running]).await;
        assert!(at_worker <= IS_GIVEN, "{at_worker} at a worker that may have {IS_GIVEN}");
        sleep(100).await;
    }
    assert_eq!(world.count(&[State::Succeeded]).await, 60);
}

/// Fault 8.3.11 of the reference: replicas that each count for themselves.
#[tokio::test(start_paused = true)]
async fn together_they_keep_a_tenants_limits() {
    let mut world = World::new();
    let limits = json!({"default": {"max_concurrent_jobs": 3, "max_queued_jobs": 20}});
    world.policy = policy(json!({"default_decision": "allow", "tenants": limits}));
    let servers = world.two().await;
    world.worker(&servers, "w", 300).await;
    let mut submits = tokio::task::JoinSet::new();
    for number in 0..60 {
        let server = servers[number % 2].clone();
        submits.spawn(async move { submit(&server, &format!("j{number}")).await });
    }
    let taken = submits.join_all().await.into_iter().flatten().count();
    assert_eq!(taken, 20, "the queue of a tenant is one, whoever is asked");
    for _ in 0..100 {
        let at_worker = world.count(&[State::Dispatched, State::Running]).await;
        assert!(at_worker <= 3, "{at_worker} of a tenant that may have 3");
        sleep(50).await;
    }
    assert_eq!(world.count(&[State::Succeeded]).await, 20);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_told_though_another_server_took_the_result() {
    let world = World::new();
    let servers = world.two().await;
    world.worker(&servers, "w", 100).await;
    for number in 0..20 {
        let id = format!("j{number}");
        submit(&servers[0], &id).await.unwrap();
        let ended = servers[0]
            .jobs()
            .wait_for_end(&JobId::known(id.as_str()), Duration::from_secs(30))
            .await
            .unwrap();
        assert_eq!(ended.unwrap().state(), State::Succeeded, "{id}");
    }
    let (a, b) = (servers[0].metrics_page(), servers[1].metrics_page());
    let handled = |page: &str| page.lines().any(|line| line.contains("SUCCEEDED") && !line.ends_with(" 0"));
    assert!(handled(&a) && handled(&b), "both have taken results");
}

/// Fault 8.3.5: what a replica left between its write and its message.
#[tokio::test(start_paused = true)]
async fn what_a_killed_server_leaves_behind_is_taken_over() {
    let world = World::new();
    let servers = world.two().await;
    for number in 0..20 {
        submit(&servers[0], &format!("j{number}")).await.unwrap();
    }
    assert_eq!(world.count(&[State::Scheduled]).await, 20, "there is no worker yet");
    servers[0].kill();
    let given = world.worker(&servers[1..], "w", 100).await;
    let began = Instant::now();
    while world.count(&[State::Succeeded]).await < 20 {
        sleep(100).await;
        assert!(began.elapsed() < Duration::from_secs(10), "left behind");
    }
    assert_eq!(given.load(Ordering::Relaxed), 20);
}

/// One that is stopped for longer than every TTL and then goes on: it changes nothing that others have done.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_taken_for_dead_joins_again() {
    let world = World::new();
    let servers = world.two().await;
    submit(&servers[0], "j").await.unwrap();
    let lives = |server: &Engine| server.cluster().members();
    assert_eq!(lives(&servers[1]), ["a", "bb"]);
    servers[0].kill();
    sleep(5_000).await;
    assert_eq!(lives(&servers[1]), ["bb"]);
    let back = world.server("a").await;
    sleep(5_000).await;
    assert_eq!(lives(&servers[1]), ["a", "bb"]);
    assert!(back.is_recovered());
    let both = [back, servers[1].clone()];
    let given = world.worker(&both, "w", 100).await;
    sleep(2_000).await;
    assert_eq!(world.job("j").await.state(), State::Succeeded);
    assert_eq!(given.load(Ordering::Relaxed), 1, "it was given to the worker once");
}

/// Fault 8.3.6, with nobody left who gave the job out.
#[tokio::test(start_paused = true)]
async fn a_dead_workers_job_goes_on_though_its_server_died_too() {
    let world = World::new();
    let servers = world.two().await;
    // It takes the job, is heard once, and never again.
    let mut silent = world.bus.subscribe("worker.gone.jobs", None).await.unwrap();
    for server in &servers {
        introduce(server, &tenant(), "gone", &["job.echo"]);
        beat(server, &tenant(), "gone", idle(1));
    }
    submit(&servers[0], "j").await.unwrap();
    assert!(silent.recv().await.is_some());
    sleep(100).await;
    servers[0].kill();
    let given = world.worker(&servers[1..], "w", 100).await;
    let began = Instant::now();
    while world.job("j").await.state() != State::Succeeded {
        sleep(500).await;
        assert!(began.elapsed() < Duration::from_mins(1), "{:?}", world.job("j").await.phase);
    }
    assert_eq!(given.load(Ordering::Relaxed), 1);
}

/// An agent beats over HTTP at one of them, and all of them know it.
#[tokio::test(start_paused = true)]
async fn a_beat_that_one_has_heard_is_known_to_all() {
    let world = World::new();
    let servers = world.two().await;
    let tenant = TenantId::known("acme");
    let beat = AgentBeat { agent_id: "voice-1".into(), name: "voice".into(), ..AgentBeat::default() };
    // For longer than its TTL, always at the same server.
    for _ in 0..20 {
        servers[0].fleet().agent_beat(&tenant, &beat).unwrap();
        sleep(10_000).await;
        for server in &servers {
            let agents = server.fleet().agents(&Audience::Tenant(tenant.clone()), usize::MAX);
            assert!(agents.len() == 1 && !agents[0].offline, "{agents:?}");
        }
    }
    sleep(60_000).await;
    assert!(
        servers
            .iter()
            .all(|server| server.fleet().agents(&Audience::Tenant(tenant.clone()), usize::MAX)[0].offline)
    );
}

#[tokio::test(start_paused = true)]
async fn one_server_writes_the_snapshot_until_it_dies() {
    let world = World::new();
    let [first, second] = world.two().await;
    let writer = async || {
        let found = world.store.blob(&BlobKey::workers_snapshot()).await.unwrap().unwrap();
        let snapshot: Snapshot = serde_json::from_slice(&found).unwrap();
        (snapshot.writer_id, snapshot.captured_at_ms)
    };
    sleep(6_000).await;
    let (holder, mut captured) = writer().await;
    for _ in 0..20 {
        sleep(5_000).await;
        let (now_by, at) = writer().await;
        assert_eq!(now_by, holder, "it keeps the place");
        assert!(at > captured, "and writes");
        captured = at;
    }
    let (dead, heir) = if holder == "a" { (first, "bb") } else { (second, "a") };
    dead.kill();
    // The TTL of the lock, and then the time to the next try.
    sleep(15_100).await;
    assert_eq!(writer().await.0, heir);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_leaves_the_snapshot_to_another_at_once() {
    let world = World::new();
    let [first, second] = world.two().await;
    sleep(6_000).await;
    let found = world.store.blob(&BlobKey::workers_snapshot()).await.unwrap().unwrap();
    let holder = serde_json::from_slice::<Snapshot>(&found).unwrap().writer_id;
    let holder = if holder == "a" { first } else { second };
    holder.drain(Duration::from_secs(1)).await;
    let lock = world.store.lock("cordum:scheduler:snapshot:writer", 10_000).await.unwrap();
    assert!(lock.is_some(), "the lock was given back");
}

/// Words between servers save waiting and nothing else, also about jobs of one's own.
#[tokio::test(start_paused = true)]
async fn what_another_server_has_ended_is_found_though_no_word_came() {
    let mut world = World::new();
    // A job that waits for a person has no moment of its own at which it would be looked at.
    world.policy = policy(json!({"default_decision": "require_approval"}));
    let servers = [world.server("a").await, world.server_on("bb", Arc::new(LocalBus::default())).await];
    sleep(5_000).await;
    submit(&servers[0], "j").await.unwrap();
    servers[1].jobs().cancel(&JobId::known("j"), "ann", "").await.unwrap();
    let live = |server: &Engine| {
        let page = server.metrics_page();
        page.lines().find_map(|line| line.strip_prefix("cordum_scheduler_live_jobs ")).map(str::to_owned)
    };
    sleep(1_000).await;
    assert_eq!(live(&servers[0]).as_deref(), Some("1"), "it has not heard of it");
    sleep(310_000).await;
    assert_eq!(live(&servers[0]).as_deref(), Some("0"));
}
