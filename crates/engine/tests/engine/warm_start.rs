//! Warm start: who is known right after a restart, and what happens when the snapshot cannot be used.

use bytes::Bytes;
use reveille_a2a::{AddressRules, HttpA2aClient};
use reveille_bus::{Bus, LocalBus};
use reveille_core::fleet::{Beat, Load, Who};
use reveille_core::id::{PoolId, TenantId, WorkerId};
use reveille_core::placement::routing::Routing;
use reveille_core::presence::agent::{AgentBeat, AgentStatus};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::{Clock, Engine, Parts, Rules, SeededRng, Settings, Submission, Submitted, Submitter};
use reveille_roster::MemoryRoster;
use reveille_store::{BlobKey, Blobs, MemoryStore, PutMode};
use reveille_traces::Nowhere;
use std::sync::Arc;
use std::time::Duration;

/// Time that passes as tokio's does, so that a test can skip ahead.
struct PausedClock(tokio::time::Instant);

impl Clock for PausedClock {
    fn now(&self) -> Millis {
        Millis(1_000_000_000) + self.0.elapsed().as_millis() as i64
    }
}

/// What outlives a server.
struct Disk {
    store: MemoryStore,
    roster: MemoryRoster,
    clock: Arc<dyn Clock>,
}

impl Disk {
    fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(PausedClock(tokio::time::Instant::now()));
        let now = clock.clone();
        Self { store: MemoryStore::new(Arc::new(move || now.now())), roster: MemoryRoster::new(), clock }
    }

    /// A server with a mapped topic, so that only a worker whose pool is known gets its jobs.
    async fn start(&self) -> (Engine, LocalBus) {
        let bus = LocalBus::default();
        let routing = Arc::new(Routing::mapped([("job.echo", vec!["echo"])], [("echo", vec![])]));
        let engine = Engine::start(Parts {
            store: Arc::new(self.store.clone()),
            roster: Arc::new(self.roster.clone()),
            workflows: Arc::new(reveille_store::workflows::MemoryWorkflows::default()),
            bus: Arc::new(bus.clone()),
            courier: Arc::new(HttpA2aClient::new(AddressRules::default())),
            kernel: None,
            traces: Arc::new(Nowhere),
            clock: self.clock.clone(),
            rng: Arc::new(SeededRng::new(1)),
            rules: Rules { routing, ..Rules::default() },
            settings: Settings::default(),
        })
        .await
        .unwrap();
        (engine, bus)
    }
}

fn beat() -> Beat {
    let load = Load { max_parallel_jobs: 4, ..Load::default() };
    let labels = [("region".to_owned(), "eu".to_owned())].into();
    let pool = Some(PoolId::known("echo"));
    Beat {
        pool,
        labels,
        region: "eu".into(),
        kind: "gpu".into(),
        agent_name: "ada".into(),
        load,
        ..Beat::default()
    }
}

fn tenant() -> TenantId {
    TenantId::known("default")
}

async fn pass(seconds: u64) {
    // In small steps, so that the server's own ticks are not late.
    for _ in 0..seconds * 4 {
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

async fn submit(engine: &Engine, id: &str) -> String {
    let context = Some(Bytes::from_static(b"{}"));
    let request = Request::plain(id, "job.echo");
    let submitted =
        engine.jobs().submit(Submission { request, context, submitter: Submitter::Listens }).await;
    let Ok(Submitted::New(job)) = submitted else { panic!("not taken") };
    job.state().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_restarted_server_knows_its_workers_with_all_that_placement_needs() {
    let disk = Disk::new();
    let (engine, _bus) = disk.start().await;
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    let before = engine.fleet().worker(Who::Worker("w")).unwrap();
    pass(6).await;
    engine.kill();

    pass(20).await;
    let (engine, bus) = disk.start().await;
    let after = engine.fleet().worker(Who::Worker("w")).unwrap();
    assert!(after.worker.restored && !after.worker.offline);
    assert_eq!(after.profile, before.profile);
    assert_eq!(after.worker.agent_name(), "ada");
    assert_eq!(after.worker.capacity(), 4);
    assert_eq!(after.worker.last_seen, engine.now(), "it counts as heard at our start");

    // It is back on the bus: that is enough, its first beat may come later.
    let _jobs = bus.subscribe("worker.w.jobs", None).await.unwrap();
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    assert_eq!(submit(&engine, "j").await, "DISPATCHED");
    assert!(!engine.fleet().worker(Who::Worker("w")).unwrap().worker.restored, "a live beat confirms it");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_died_while_we_were_down_is_gone_one_ttl_after_the_start() {
    let disk = Disk::new();
    let (engine, _bus) = disk.start().await;
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    pass(6).await;
    engine.kill();
    let (engine, _bus) = disk.start().await;
    pass(29).await;
    assert!(engine.fleet().worker(Who::Worker("w")).is_some());
    pass(2).await;
    assert!(engine.fleet().worker(Who::Worker("w")).is_none());
    let page = engine.metrics_page();
    assert!(page.contains("cordum_scheduler_stale_restored_seconds_count 1"), "{page}");
    assert!(page.contains("cordum_scheduler_workers_hydrated 1"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_cannot_be_used_means_a_cold_start_and_nothing_worse() {
    for bad in [&b"not json"[..], b"{\"workers\": 7}", b"", b"[]"] {
        let disk = Disk::new();
        let key = BlobKey::workers_snapshot();
        let until = disk.clock.now() + 1_000_000;
        disk.store.put_blob(key, Bytes::copy_from_slice(bad), until, PutMode::Always).await.unwrap();
        let (engine, _bus) = disk.start().await;
        assert!(engine.fleet().workers().is_empty());
        engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
        assert_eq!(engine.fleet().workers().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_has_the_references_shape() {
    let disk = Disk::new();
    let (engine, _bus) = disk.start().await;
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    pass(6).await;
    let blob = disk.store.blob(&BlobKey::workers_snapshot()).await.unwrap().unwrap();
    let snapshot: serde_json::Value = serde_json::from_slice(&blob).unwrap();
    assert!(snapshot["captured_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(snapshot["writer_id"], "reveille");
    assert_eq!(snapshot["pools"]["echo"], serde_json::json!({"workers": 1, "active_jobs": 0, "capacity": 4}));
    let worker = &snapshot["workers"][0];
    for (field, value) in [
        ("worker_id", "w"),
        ("pool", "echo"),
        ("region", "eu"),
        ("type", "gpu"),
        ("agent_name", "ada"),
        ("contract", "cap"),
        ("tenant", "default"),
    ] {
        assert_eq!(worker[field], value, "{field}");
    }
    assert_eq!(worker["labels"]["region"], "eu");
    assert_eq!(worker["max_parallel_jobs"], 4);
}

#[tokio::test(start_paused = true)]
async fn agents_are_known_after_a_restart_the_living_and_the_dead() {
    let disk = Disk::new();
    let (engine, _bus) = disk.start().await;
    let acme = TenantId::known("acme");
    let told = |id: &'static str| AgentBeat {
        agent_id: id.into(),
        name: "voice".into(),
        project: "default".into(),
        status: AgentStatus::Busy,
        active_sessions: 2,
        ..AgentBeat::default()
    };
    engine.fleet().agent_beat(&acme, &told("dead")).unwrap();
    pass(50).await;
    engine.fleet().agent_beat(&acme, &told("alive")).unwrap();
    pass(1).await;
    engine.kill();
    pass(600).await;
    let (engine, _bus) = disk.start().await;
    let agents = engine.fleet().agents(&acme);
    let names: Vec<(&str, bool, bool)> =
        agents.iter().map(|worker| (worker.id.as_str(), worker.offline, worker.restored)).collect();
    assert_eq!(names, [("alive", false, true), ("dead", true, false)]);
    pass(46).await;
    assert!(engine.fleet().agents(&acme).iter().all(|worker| worker.offline), "nobody beat");
    assert!(engine.fleet().agents(&TenantId::known("other")).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_drain_outlives_a_restart_and_ends_when_an_operator_says_so() {
    use reveille_core::presence::Drained;
    let disk = Disk::new();
    let (engine, bus) = disk.start().await;
    let _jobs = bus.subscribe("worker.w.jobs", None).await.unwrap();
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    let what = Drained::Pool(PoolId::known("echo"));
    engine.fleet().drain_workers(what.clone(), 60, "ann").await.unwrap();
    assert_eq!(submit(&engine, "a").await, "SCHEDULED");
    let job = engine.jobs().job(&reveille_core::id::JobId::known("a")).await.unwrap().unwrap();
    assert_eq!(engine.jobs().explain(&job).code, "workers_drained");
    engine.kill();
    let (engine, bus) = disk.start().await;
    let _jobs = bus.subscribe("worker.w.jobs", None).await.unwrap();
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    pass(1).await;
    assert_eq!(submit(&engine, "b").await, "SCHEDULED", "still drained");
    assert!(engine.fleet().undrain_workers(what, "ann").await.unwrap());
    pass(1).await;
    for id in ["a", "b"] {
        let job = engine.jobs().job(&reveille_core::id::JobId::known(id)).await.unwrap().unwrap();
        assert!(job.attempt().is_some(), "{id} is {}", job.state());
    }
}
