//! What one tenant, one topic or one job may use up, over a real engine.

mod watched;

use reveille_core::fleet::Beat;
use reveille_core::id::{JobId, PoolId, TenantId, WorkerId};
use reveille_core::job::{Job, State};
use reveille_core::reason::Reason;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::{Engine, LimitSettings, Rules, Settings, Submission, SubmitError, Submitted};
use reveille_store::suite::hooked::HookedStore;
use reveille_store::{BlobKey, PutMode};
use reveille_test_kit::{TestWorker, TestWorld, idle, job, rules, submission, submit, tenant};
use reveille_wire::cap::{JobResult, JobStatus, ResourceRef};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use watched::Watched;

/// What outlives a server.
struct Disk {
    world: TestWorld,
    store: HookedStore<Watched>,
}

/// One life of a server, with a worker `w` that listens.
struct Life {
    engine: Engine,
    worker: TestWorker,
}

impl Disk {
    fn new() -> Self {
        let world = TestWorld::new();
        Self { store: HookedStore::new(world.store.clone(), Watched::new()), world }
    }

    async fn start(&self, rules: Rules, settings: Settings, capacity: u32) -> Life {
        let engine = self.world.engine().store(Arc::new(self.store.clone()));
        let server = engine.rules(rules).settings(settings).start().await;
        Life { worker: server.hire("w", &["job.echo"], capacity).await, engine: server.engine }
    }
}

impl Life {
    async fn submit(&self, id: &str, tenant: &str) -> Result<Submitted, SubmitError> {
        submit(&self.engine, of_tenant(tenant, id)).await
    }

    async fn job(&self, id: &str) -> Arc<Job> {
        job(&self.engine, id).await
    }

    /// The worker has done a job.
    async fn report(&self, id: &JobId, result: JobResult) {
        let (job_id, status) = (id.to_string(), JobStatus::Succeeded as i32);
        self.worker.report(JobResult { job_id, status, ..result }).await;
    }

    /// The next job that reaches the worker.
    async fn next(&mut self) -> JobId {
        JobId::known(self.worker.next().await.job_id)
    }

    async fn ended(&self, id: &str) -> Arc<Job> {
        self.engine.jobs().wait_for_end(&JobId::known(id), Duration::from_mins(1)).await.unwrap().unwrap()
    }
}

fn of_tenant(tenant: &str, id: &str) -> Request {
    Request { tenant: TenantId::known(tenant), ..Request::plain(id, "job.echo") }
}

/// Acme may have three jobs at workers; everything is allowed.
fn three_for_acme() -> Rules {
    rules(json!({
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
    disk.store.hook.open_lists(false);
    let mut life = disk.start(three_for_acme(), Settings::default(), 100).await;
    submit_at_once(&life, "b", 20).await;
    life.submit("z", "zeta").await.unwrap();
    assert_eq!(life.next().await.as_str(), "z", "who has no limit is not held up");
    assert_eq!(disk.store.hook.active("acme"), 3);
    assert!(!life.engine.is_recovered());
    disk.store.hook.open_lists(true);

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
    assert_eq!(disk.store.hook.most("acme"), 3, "the limit was reached, and never exceeded");
}

async fn submit_at_once(life: &Life, prefix: &str, count: usize) {
    let submits = (0..count).map(|number| {
        let (engine, id) = (life.engine.clone(), format!("{prefix}{number}"));
        tokio::spawn(async move {
            submit(&engine, of_tenant("acme", &id)).await.unwrap();
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
    let order = disk.store.hook.dispatched();
    let last = order.iter().rposition(|job| !job.as_str().starts_with("flood")).unwrap();
    // Thirty turns for three tenants, and a few that the flood had before the others came.
    assert!(last < 36, "the last of the others went as number {last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tenant_has_no_more_live_jobs_than_it_may_however_many_ask_at_once() {
    let disk = Disk::new();
    let limits = LimitSettings { queued_per_tenant: 10, ..LimitSettings::default() };
    let settings = Settings { limits, ..Settings::default() };
    let rules = rules(json!({
        "rules": [{ "id": "all", "decision": "allow" }],
        "tenants": { "small": { "max_queued_jobs": 2 } },
    }));
    let mut life = disk.start(rules, settings, 100).await;
    let submits: Vec<_> = (0..50)
        .map(|number| {
            let (engine, id) = (life.engine.clone(), format!("a{number}"));
            tokio::spawn(async move {
                let request = of_tenant("acme", &id);
                engine.jobs().submit(Submission { context: None, ..submission(request) }).await
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
    let small = || {
        rules(json!({ "rules": [{
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
        let mut life = disk.start(small(), Settings::default(), 10).await;
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
    let beat = Beat { pool: PoolId::parse("p").ok(), load: idle(100), ..Beat::default() };
    life.engine.fleet().beat(&WorkerId::known("w"), &tenant(), &beat);
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
