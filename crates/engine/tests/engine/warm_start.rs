//! Warm start: who is known right after a restart, and what happens when the snapshot cannot be used.

use bytes::Bytes;
use reveille_core::fleet::{Beat, Load, Who};
use reveille_core::id::{PoolId, TenantId, WorkerId};
use reveille_core::placement::routing::Routing;
use reveille_core::presence::agent::{AgentBeat, AgentStatus};
use reveille_core::request::Request;
use reveille_engine::{Audience, Clock, Engine, Rules};
use reveille_store::{BlobKey, Blobs, PutMode};
use reveille_test_kit::{TestServer, TestWorker, TestWorld, job, new_job, pass, tenant};
use std::sync::Arc;

/// A server with a mapped topic, so that only a worker whose pool is known gets its jobs.
async fn start(world: &TestWorld) -> TestServer {
    let routing = Arc::new(Routing::mapped([("job.echo", vec!["echo"])], [("echo", vec![])]));
    world.engine().rules(Rules { routing, ..Rules::default() }).start().await
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

async fn submit(engine: &Engine, id: &str) -> String {
    new_job(engine, Request::plain(id, "job.echo")).await.state().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_restarted_server_knows_its_workers_with_all_that_placement_needs() {
    let world = TestWorld::new();
    let engine = start(&world).await;
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    let before = engine.fleet().worker(Who::Worker("w")).unwrap();
    pass(6).await;
    engine.kill();

    pass(20).await;
    let engine = start(&world).await;
    let after = engine.fleet().worker(Who::Worker("w")).unwrap();
    assert!(after.worker.restored && !after.worker.offline);
    assert_eq!(after.profile, before.profile);
    assert_eq!(after.worker.agent_name(), "ada");
    assert_eq!(after.worker.capacity(), 4);
    assert_eq!(after.worker.last_seen, engine.now(), "it counts as heard at our start");

    // It is back on the bus: that is enough, its first beat may come later.
    let _listens = TestWorker::listen(&engine.bus, "w").await;
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    assert_eq!(submit(&engine, "j").await, "DISPATCHED");
    assert!(!engine.fleet().worker(Who::Worker("w")).unwrap().worker.restored, "a live beat confirms it");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_died_while_we_were_down_is_gone_one_ttl_after_the_start() {
    let world = TestWorld::new();
    let engine = start(&world).await;
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    pass(6).await;
    engine.kill();
    let engine = start(&world).await;
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
        let world = TestWorld::new();
        let key = BlobKey::workers_snapshot();
        let until = world.clock.now() + 1_000_000;
        world.store.put_blob(key, Bytes::copy_from_slice(bad), until, PutMode::Always).await.unwrap();
        let engine = start(&world).await;
        assert!(engine.fleet().workers().is_empty());
        engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
        assert_eq!(engine.fleet().workers().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_has_the_references_shape() {
    let world = TestWorld::new();
    let engine = start(&world).await;
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    pass(6).await;
    let blob = world.store.blob(&BlobKey::workers_snapshot()).await.unwrap().unwrap();
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
    let world = TestWorld::new();
    let engine = start(&world).await;
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
    let engine = start(&world).await;
    let agents = engine.fleet().agents(&Audience::Tenant(acme.clone()), usize::MAX);
    let names: Vec<(&str, bool, bool)> =
        agents.iter().map(|worker| (worker.id.as_str(), worker.offline, worker.restored)).collect();
    assert_eq!(names, [("alive", false, true), ("dead", true, false)]);
    pass(46).await;
    assert!(
        engine
            .fleet()
            .agents(&Audience::Tenant(acme.clone()), usize::MAX)
            .iter()
            .all(|worker| worker.offline),
        "nobody beat"
    );
    assert!(engine.fleet().agents(&Audience::Tenant(TenantId::known("other")), usize::MAX).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_drain_outlives_a_restart_and_ends_when_an_operator_says_so() {
    use reveille_core::presence::Drained;
    let world = TestWorld::new();
    let engine = start(&world).await;
    let _listens = TestWorker::listen(&engine.bus, "w").await;
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    let what = Drained::Pool(PoolId::known("echo"));
    engine.fleet().drain_workers(what.clone(), 60, "ann").await.unwrap();
    assert_eq!(submit(&engine, "a").await, "SCHEDULED");
    assert_eq!(engine.jobs().explain(&*job(&engine, "a").await).code, "workers_drained");
    engine.kill();
    let engine = start(&world).await;
    let _listens = TestWorker::listen(&engine.bus, "w").await;
    engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat());
    pass(1).await;
    assert_eq!(submit(&engine, "b").await, "SCHEDULED", "still drained");
    assert!(engine.fleet().undrain_workers(what, "ann").await.unwrap());
    pass(1).await;
    for id in ["a", "b"] {
        let job = job(&engine, id).await;
        assert!(job.attempt().is_some(), "{id} is {}", job.state());
    }
}
