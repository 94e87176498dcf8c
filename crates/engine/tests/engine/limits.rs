//! What one tenant, one topic or one job may use up, over a real engine.

mod watched;

use bytes::Bytes;
use reveille_a2a::{AddressRules, HttpA2aClient};
use reveille_bus::{Bus, Delivery, LocalBus, Message};
use reveille_core::fleet::{Beat, Load};
use reveille_core::id::{JobId, PoolId, TenantId, Topic, WorkerId};
use reveille_core::job::{Job, State};
use reveille_core::policy::{Document, Policy};
use reveille_core::reason::Reason;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::{
    Clock, Engine, LimitSettings, Parts, Rules, SeededRng, Settings, Submission, SubmitError, Submitted,
    Submitter, SystemClock,
};
use reveille_roster::MemoryRoster;
use reveille_store::suite::hooked::Hooked;
use reveille_store::{BlobKey, MemoryStore, PutMode};
use reveille_traces::Nowhere;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{JobResult, JobStatus, ResourceRef};
use reveille_wire::convert::Introduction;
use reveille_wire::{packet, subject};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use watched::Watched;

/// What outlives a server.
struct Disk(Hooked<Watched>);

/// One life of a server, with a worker `w` that listens.
struct Life {
    engine: Engine,
    bus: LocalBus,
    /// Jobs that reached the worker.
    got: mpsc::UnboundedReceiver<JobId>,
}

impl Disk {
    fn new() -> Self {
        let clock = SystemClock::start();
        Self(Hooked::new(MemoryStore::new(Arc::new(move || clock.now())), Watched::new()))
    }

    async fn start(&self, rules: Rules, settings: Settings, capacity: u32) -> Life {
        let bus = LocalBus::default();
        let engine = Engine::start(Parts {
            store: Arc::new(self.0.clone()),
            roster: Arc::new(MemoryRoster::new()),
            workflows: Arc::new(reveille_store::workflows::MemoryWorkflows::default()),
            bus: Arc::new(bus.clone()),
            courier: Arc::new(HttpA2aClient::new(AddressRules::default())),
            kernel: None,
            traces: Arc::new(Nowhere),
            clock: Arc::new(SystemClock::start()),
            rng: Arc::new(SeededRng::new(1)),
            rules,
            settings,
        })
        .await
        .unwrap();
        let mut jobs = bus.subscribe("worker.w.jobs", None).await.unwrap();
        let (tell, got) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Delivery { message, .. }) = jobs.recv().await {
                let Some(Payload::JobRequest(job)) = packet::decode(&message.payload).unwrap().payload else {
                    continue;
                };
                let _ = tell.send(JobId::known(job.job_id));
            }
        });
        let (worker, tenant) = (WorkerId::known("w"), TenantId::known("default"));
        engine.fleet().introduce(
            &tenant,
            Introduction { worker: worker.clone(), topics: vec![Topic::known("job.echo")] },
        );
        let load = Load { max_parallel_jobs: capacity, ..Load::default() };
        engine.fleet().beat(&worker, &tenant, &Beat { load, ..Beat::default() });
        Life { engine, bus, got }
    }
}

impl Life {
    async fn submit(&self, id: &str, tenant: &str) -> Result<Submitted, SubmitError> {
        let request = Request { tenant: TenantId::known(tenant), ..Request::plain(id, "job.echo") };
        let context = Some(Bytes::from_static(b"{}"));
        self.engine.jobs().submit(Submission { request, context, submitter: Submitter::Listens }).await
    }

    async fn job(&self, id: &str) -> Arc<Job> {
        self.engine.jobs().job(&JobId::known(id)).await.unwrap().unwrap()
    }

    /// The worker has done a job.
    async fn report(&self, id: &JobId, result: JobResult) {
        let result = JobResult {
            job_id: id.to_string(),
            worker_id: "w".to_owned(),
            status: JobStatus::Succeeded as i32,
            ..result
        };
        let packet = packet::envelope("w", "trace", Millis(1), Payload::JobResult(result));
        self.bus.publish(Message::new(subject::JOB_RESULT, packet::encode(&packet))).await.unwrap();
    }

    /// The next job that reaches the worker.
    async fn next(&mut self) -> JobId {
        tokio::time::timeout(Duration::from_mins(1), self.got.recv()).await.unwrap().unwrap()
    }

    async fn ended(&self, id: &str) -> Arc<Job> {
        self.engine.jobs().wait_for_end(&JobId::known(id), Duration::from_mins(1)).await.unwrap().unwrap()
    }
}

fn policy(document: Value) -> Rules {
    let source = document.to_string();
    let document: Document = serde_json::from_value(document).unwrap();
    Rules { policy: Policy::new(document, source.as_bytes()).unwrap(), ..Rules::default() }
}

/// Acme may have three jobs at workers; everything is allowed.
fn three_for_acme() -> Rules {
    policy(json!({
        "rules": [{ "id": "all", "decision": "allow" }],
        "tenants": { "acme": { "max_concurrent_jobs": 3 } },
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tenant_never_has_more_jobs_at_workers_than_it_may_not_even_over_a_restart() {
    let disk = Disk::new();
    let mut life = disk.start(three_for_acme(), Settings::default(), 100).await;
    submit_at_once(&life, "a", 40).await;
    let first: Vec<JobId> = [life.next().await, life.next().await, life.next().await].into();
    life.engine.kill();

    // The next life takes jobs in before it knows what is at workers.
    disk.0.hook.open_lists(false);
    let mut life = disk.start(three_for_acme(), Settings::default(), 100).await;
    submit_at_once(&life, "b", 20).await;
    life.submit("z", "zeta").await.unwrap();
    assert_eq!(life.next().await.as_str(), "z", "who has no limit is not held up");
    assert_eq!(disk.0.hook.active("acme"), 3);
    assert!(!life.engine.is_recovered());
    disk.0.hook.open_lists(true);

    for id in &first {
        life.report(id, JobResult::default()).await;
    }
    let mut done: BTreeSet<JobId> = first.iter().cloned().collect();
    while done.len() < 60 {
        let id = life.next().await;
        if first.contains(&id) {
            continue;
        }
        life.report(&id, JobResult::default()).await;
        assert!(done.insert(id.clone()), "{id} was sent twice");
    }
    for number in 0..40 {
        assert_eq!(life.ended(&format!("a{number}")).await.state(), State::Succeeded);
    }
    assert_eq!(disk.0.hook.most("acme"), 3, "the limit was reached, and never exceeded");
}

async fn submit_at_once(life: &Life, prefix: &str, count: usize) {
    let submits = (0..count).map(|number| {
        let (engine, id) = (life.engine.clone(), format!("{prefix}{number}"));
        tokio::spawn(async move {
            let request = Request { tenant: TenantId::known("acme"), ..Request::plain(&id, "job.echo") };
            let context = Some(Bytes::from_static(b"{}"));
            engine
                .jobs()
                .submit(Submission { request, context, submitter: Submitter::Listens })
                .await
                .unwrap();
        })
    });
    for submit in submits.collect::<Vec<_>>() {
        submit.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flood_of_one_tenant_does_not_hold_up_the_others() {
    let disk = Disk::new();
    let settings = Settings::default();
    let mut life = disk.start(Rules::default(), settings, 3).await;
    for number in 0..5_000 {
        life.submit(&format!("flood{number}"), "flood").await.unwrap();
    }
    for number in 0..10 {
        life.submit(&format!("a{number}"), "acme").await.unwrap();
        life.submit(&format!("z{number}"), "zeta").await.unwrap();
    }
    for _ in 0..40 {
        let id = life.next().await;
        life.report(&id, JobResult::default()).await;
    }
    for number in 0..10 {
        life.ended(&format!("a{number}")).await;
        life.ended(&format!("z{number}")).await;
    }
    let order = disk.0.hook.dispatched();
    let last = order.iter().rposition(|job| !job.as_str().starts_with("flood")).unwrap();
    // Thirty turns for three tenants, and a few that the flood had before the others came.
    assert!(last < 36, "the last of the others went as number {last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tenant_has_no_more_live_jobs_than_it_may_however_many_ask_at_once() {
    let disk = Disk::new();
    let limits = LimitSettings { queued_per_tenant: 10, ..LimitSettings::default() };
    let settings = Settings { limits, ..Settings::default() };
    let rules = policy(json!({
        "rules": [{ "id": "all", "decision": "allow" }],
        "tenants": { "small": { "max_queued_jobs": 2 } },
    }));
    let mut life = disk.start(rules, settings, 100).await;
    let submits: Vec<_> = (0..50)
        .map(|number| {
            let (engine, id) = (life.engine.clone(), format!("a{number}"));
            tokio::spawn(async move {
                let request = Request { tenant: TenantId::known("acme"), ..Request::plain(&id, "job.echo") };
                engine
                    .jobs()
                    .submit(Submission { request, context: None, submitter: Submitter::Listens })
                    .await
            })
        })
        .collect();
    let (mut taken, mut refused) = (0, 0);
    for submit in submits {
        match submit.await.unwrap() {
            Ok(_) => taken += 1,
            Err(SubmitError::QueueFull { tenant, live, max }) => {
                assert_eq!((tenant.as_str(), live, max), ("acme", 10, 10));
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((taken, refused), (10, 40));
    assert!(life.submit("z", "zeta").await.is_ok(), "others have room");
    assert!(life.submit("s0", "small").await.is_ok() && life.submit("s1", "small").await.is_ok());
    assert!(matches!(life.submit("s2", "small").await, Err(SubmitError::QueueFull { max: 2, .. })));

    let id = life.next().await;
    life.report(&id, JobResult::default()).await;
    let tenant = life.ended(id.as_str()).await.request.tenant.clone();
    assert!(life.submit("again", tenant.as_str()).await.is_ok(), "a job that has ended makes room");
    let page = life.engine.metrics_page();
    assert!(page.contains("cordum_scheduler_limited_total{limit=\"queue\"} 41"), "{page}");
}

#[tokio::test]
async fn a_result_that_is_larger_than_policy_allows_does_not_pass() {
    let rules = || {
        policy(json!({ "rules": [{
            "id": "small", "decision": "allow_with_constraints",
            "constraints": { "budgets": { "max_artifact_bytes": 10 } },
        }] }))
    };
    let told = |size_bytes| JobResult {
        artifact_refs: vec![ResourceRef { size_bytes, ..ResourceRef::default() }],
        ..JobResult::default()
    };
    let artifact = JobResult { artifact_ptrs: vec!["redis://art:big".to_owned()], ..JobResult::default() };
    for (result_len, more, passes) in [
        (10, JobResult::default(), true),
        (11, JobResult::default(), false),
        (1, told(10), true),
        (1, told(11), false),
        (1, artifact, false),
    ] {
        let disk = Disk::new();
        let mut life = disk.start(rules(), Settings::default(), 10).await;
        life.submit("j", "acme").await.unwrap();
        let id = life.next().await;
        let (key, far) = (BlobKey::result_of(&id), Millis(i64::MAX));
        let blobs = life.engine.jobs().readable_blobs();
        blobs.put_blob(key.clone(), vec![b'x'; result_len].into(), far, PutMode::Always).await.unwrap();
        let big = BlobKey::from_pointer("redis://art:big").unwrap();
        blobs.put_blob(big, vec![b'x'; 99].into(), far, PutMode::Always).await.unwrap();
        life.report(&id, JobResult { result_ptr: key.pointer(), ..more }).await;
        let job = life.ended("j").await;
        if passes {
            assert_eq!(job.state(), State::Succeeded);
            assert!(blobs.blob(&key).await.unwrap().is_some());
            continue;
        }
        let ending = job.ending().unwrap();
        assert_eq!((job.state(), ending.reason), (State::Failed, Some(Reason::ArtifactTooLarge)));
        assert!(job.dead_letter().is_some() && ending.result_ptr.is_empty());
        assert!(blobs.blob(&key).await.unwrap().is_none(), "nobody reads it");
        assert_eq!(life.engine.jobs().explain(&job).code, "artifact_too_large");
    }
}

#[tokio::test]
async fn a_job_that_waits_for_its_topic_or_its_tenant_says_so() {
    let mut rules = three_for_acme();
    let pools = json!({ "topics": { "job.echo": { "pools": "p", "max_concurrent_jobs": 4 } } });
    rules.routing =
        Arc::new(reveille_core::placement::routing::Routing::Mapped(serde_json::from_value(pools).unwrap()));
    let disk = Disk::new();
    let mut life = disk.start(rules, Settings::default(), 100).await;
    let load = Load { max_parallel_jobs: 100, ..Load::default() };
    let beat = Beat { pool: PoolId::parse("p").ok(), load, ..Beat::default() };
    life.engine.fleet().beat(&WorkerId::known("w"), &TenantId::known("default"), &beat);
    for number in 0..4 {
        life.submit(&format!("a{number}"), "acme").await.unwrap();
    }
    for _ in 0..3 {
        life.next().await;
    }
    life.submit("z0", "zeta").await.unwrap();
    life.next().await;
    life.submit("z1", "zeta").await.unwrap();
    let code = async |id: &str| life.engine.jobs().explain(&*life.job(id).await).code;
    assert_eq!(code("a3").await, "tenant_limit");
    assert_eq!(code("z1").await, "topic_limit");
    let page = life.engine.metrics_page();
    for limit in ["tenant", "topic"] {
        assert!(page.contains(&format!("cordum_scheduler_limited_total{{limit=\"{limit}\"}} 1")), "{page}");
    }
}
