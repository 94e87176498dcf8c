//! Workers with keys of their own: whose jobs they get, what they may report, and which blobs they see.

use bytes::Bytes;
use reveille_bus::{Bus, Message, MessageOrigin, MessageSender};
use reveille_core::fleet::{ServedTenants, WorkerGrant};
use reveille_core::id::{KeyId, TenantId, WorkerId};
use reveille_core::job::State;
use reveille_core::request::Request;
use reveille_engine::{Engine, Submission};
use reveille_store::{BlobKey, Blobs, PutMode, StoreError};
use reveille_test_kit::{
    NOON, TestServer, TestWorker, TestWorld, job, new_job, soon, state, submission, succeeded, worker_key,
};
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{ComponentRole, Handshake, Heartbeat, JobProgress, JobResult};
use reveille_wire::{packet, subject};
use std::sync::Arc;

/// A tenant's worker on the bus, as the door shows it: with its key behind everything that it sends.
struct Hand {
    server: TestServer,
    tenant: &'static str,
    key: KeyId,
    name: &'static str,
}

impl Hand {
    async fn ask(&self, subject: &str, payload: Payload) -> String {
        let sender = MessageSender { tenant: TenantId::known(self.tenant), key: Some(self.key.clone()) };
        let mut inbox = self.server.bus.subscribe("_INBOX.test", None).await.unwrap();
        let message = Message {
            reply: Some("_INBOX.test".to_owned()),
            origin: MessageOrigin::Client(sender),
            ..Message::new(subject, packet::encode(&packet::envelope(self.name, "trace", NOON, payload)))
        };
        self.server.bus.publish(message).await.unwrap();
        let answer = soon(inbox.recv()).await.unwrap().message;
        String::from_utf8(answer.payload.to_vec()).unwrap()
    }

    async fn beat(&self, pool: &str) -> String {
        let beat = Heartbeat {
            worker_id: self.name.to_owned(),
            pool: pool.to_owned(),
            max_parallel_jobs: 5,
            ..Heartbeat::default()
        };
        self.ask(subject::HEARTBEAT, Payload::Heartbeat(beat)).await
    }

    async fn shake(&self) -> String {
        let handshake = Handshake {
            component_id: self.name.to_owned(),
            role: ComponentRole::Worker as i32,
            ready_topics: vec!["job.echo".to_owned()],
            ..Handshake::default()
        };
        self.ask(subject::HANDSHAKE, Payload::Handshake(handshake)).await
    }

    async fn report(&self, job: &str) -> String {
        let result = JobResult { worker_id: self.name.to_owned(), ..succeeded(job) };
        self.ask(subject::JOB_RESULT, Payload::JobResult(result)).await
    }
}

async fn hand(server: &TestServer, tenant: &'static str, name: &'static str, grant: WorkerGrant) -> Hand {
    let key = worker_key(server, &format!("{tenant}-workers"), tenant, grant).await;
    Hand { server: server.clone(), tenant, key, name }
}

fn own(tenant: &str) -> WorkerGrant {
    WorkerGrant::of_tenant(&TenantId::known(tenant))
}

async fn submit(engine: &Engine, id: &str, tenant: &str) {
    new_job(engine, Request { tenant: TenantId::known(tenant), ..Request::plain(id, "job.echo") }).await;
}

#[tokio::test]
async fn a_worker_of_one_tenant_is_given_that_tenants_jobs_and_explain_says_why_others_wait() {
    let server = TestWorld::new().start().await;
    let ours = hand(&server, "acme", "w", own("acme")).await;
    let mut jobs = TestWorker::listen(&server.bus, "w").await;
    assert!(ours.shake().await.contains("\"ok\":true"));
    assert!(ours.beat("").await.contains("\"ok\":true"));
    submit(&server, "theirs", "beta").await;
    submit(&server, "ours", "acme").await;
    assert_eq!(jobs.next().await.job_id, "ours");
    assert_eq!(state(&server, "theirs").await, State::Scheduled);
    let why = server.jobs().explain(&*job(&server, "theirs").await);
    assert_eq!(why.code, "tenant_not_served");
    assert!(why.words.contains("none of them serves it for tenant beta"), "{}", why.words);
    assert!(ours.report("ours").await.contains("SUCCEEDED"));

    let shared = WorkerGrant { tenants: ServedTenants::Everyone, ..WorkerGrant::default() };
    let shared = hand(&server, "ops", "shared", shared).await;
    let mut jobs = TestWorker::listen(&server.bus, "shared").await;
    shared.shake().await;
    assert_eq!(jobs.next().await.job_id, "theirs");
    assert!(shared.report("theirs").await.contains("SUCCEEDED"));
}

#[tokio::test]
async fn a_worker_key_neither_reports_for_anothers_worker_nor_beats_in_its_name() {
    let server = TestWorld::new().start().await;
    let ours = hand(&server, "acme", "w", own("acme")).await;
    let theirs = hand(&server, "beta", "w", own("beta")).await;
    let colleague = hand(&server, "acme", "w2", own("acme")).await;
    let mut jobs = TestWorker::listen(&server.bus, "w").await;
    ours.shake().await;
    submit(&server, "j", "acme").await;
    assert_eq!(jobs.next().await.job_id, "j");
    for answer in [theirs.shake().await, theirs.beat("").await, theirs.report("j").await] {
        assert!(answer.contains("with another credential"), "{answer}");
    }
    assert!(colleague.report("j").await.contains("does not hold this job"));
    assert_eq!(state(&server, "j").await, State::Dispatched);
    assert!(ours.report("j").await.contains("SUCCEEDED"));
}

#[tokio::test]
async fn a_worker_key_reports_nothing_of_tenants_that_it_does_not_serve() {
    let server = TestWorld::new().start().await;
    let mut jobs = server.hire("w", &["job.echo"], 5).await;
    submit(&server, "j", "acme").await;
    assert_eq!(jobs.next().await.job_id, "j");
    let theirs = hand(&server, "beta", "b", own("beta")).await;
    assert!(theirs.report("j").await.contains("there is no such job"));
    let progress = JobProgress { job_id: "j".to_owned(), percent: 5, status: 2, ..JobProgress::default() };
    let answer = theirs.ask(subject::JOB_PROGRESS, Payload::JobProgress(progress)).await;
    assert!(answer.contains("there is no such job"), "{answer}");
}

#[tokio::test]
async fn only_a_workers_key_makes_a_worker_and_only_in_its_pools() {
    let server = TestWorld::new().start().await;
    let reader = server.engine.access();
    server.key("viewer", "acme", &[reveille_roster::Scope::Read]).await;
    let key = reader.list_keys().into_iter().find(|key| key.name == "viewer").unwrap().id;
    let viewer = Hand { server: server.clone(), tenant: "acme", key, name: "w" };
    assert!(viewer.beat("").await.contains("is not a worker's"));

    let grant = WorkerGrant { pools: [reveille_core::id::PoolId::known("gpu")].into(), ..own("acme") };
    let ours = hand(&server, "acme", "w", grant).await;
    assert!(ours.beat("cpu").await.contains("does not have this pool"));
    assert!(ours.beat("gpu").await.contains("\"ok\":true"));
    server.access().revoke_key(&ours.key, "ann").await.unwrap();
    assert!(ours.beat("gpu").await.contains("is not a worker's"), "a revoked key's last packet");
}

async fn get(blobs: &Arc<dyn Blobs>, key: &str) -> Option<Bytes> {
    blobs.blob(&BlobKey::parse(key).unwrap()).await.unwrap()
}

async fn put(blobs: &Arc<dyn Blobs>, key: &str, value: &'static str) -> Result<bool, StoreError> {
    blobs.put_blob(BlobKey::parse(key).unwrap(), value.into(), NOON + 60_000, PutMode::Always).await
}

#[tokio::test]
async fn a_worker_sees_the_blobs_of_jobs_that_it_was_given_and_no_others() {
    let world = TestWorld::new();
    let server = world.start().await;
    let all = server.jobs().readable_blobs();
    for id in ["mine", "other", "theirs"] {
        put(&all, &format!("ctx:{id}"), "input").await.unwrap();
    }
    put(&all, "art:lent", "artifact").await.unwrap();
    let ours = hand(&server, "acme", "w", own("acme")).await;
    let blobs = server.jobs().blobs_of(&server.access().worker_credential(&ours.key).unwrap());
    let mut jobs = TestWorker::listen(&server.bus, "w").await;
    ours.shake().await;
    ours.beat("").await;
    let lent = Request { context_ptr: "redis://art:lent".to_owned(), ..Request::plain("undo", "job.echo") };
    assert_eq!(get(&blobs, "art:lent").await, None, "it has no job on it yet");
    submit(&server, "mine", "acme").await;
    let lent = submission(Request { tenant: TenantId::known("acme"), ..lent });
    server.jobs().submit(Submission { context: None, ..lent }).await.unwrap();
    submit(&server, "theirs", "beta").await;
    jobs.next().await;
    jobs.next().await;
    server.hire("anybodys", &["job.other"], 5).await;
    new_job(&server, Request { tenant: TenantId::known("acme"), ..Request::plain("other", "job.other") })
        .await;

    assert!(get(&blobs, "ctx:mine").await.is_some());
    assert_eq!(get(&blobs, "art:lent").await.unwrap(), "artifact");
    for key in ["ctx:other", "ctx:theirs", "ctx:nobody", "res:other"] {
        assert_eq!(get(&blobs, key).await, None, "{key}");
        assert!(matches!(put(&blobs, key, "x").await, Err(StoreError::Refused(_))), "{key}");
    }
    assert!(put(&blobs, "art:lent", "forged").await.is_err(), "an artifact that is there stays");
    assert!(put(&blobs, "art:new", "made").await.unwrap());
    assert!(put(&blobs, "res:mine", "result").await.unwrap());
    let keys = ["ctx:mine", "ctx:theirs", "art:lent"].map(|key| BlobKey::parse(key).unwrap());
    assert_eq!(blobs.delete_blobs(keys.to_vec()).await.unwrap(), 0);
    assert!(ours.report("mine").await.contains("SUCCEEDED"));
    assert_eq!(get(&blobs, "ctx:mine").await, None, "the job is over");
}

#[tokio::test]
async fn a_worker_serves_no_more_tenants_after_a_restart_than_before() {
    let world = TestWorld::new();
    let first = world.start().await;
    let ours = hand(&first, "acme", "w", own("acme")).await;
    ours.shake().await;
    ours.beat("").await;
    first.engine.drain(std::time::Duration::from_secs(1)).await;

    let second = world.engine().seed(2).start().await;
    let worker = WorkerId::known("w");
    let view = second.fleet().worker(reveille_core::fleet::Who::Worker(worker.as_str())).unwrap();
    assert!(view.worker.restored);
    assert_eq!(view.profile.credential.as_ref().unwrap().grant, own("acme"));
    let theirs = hand(&second, "beta", "w", own("beta")).await;
    assert!(theirs.beat("").await.contains("with another credential"));
}
