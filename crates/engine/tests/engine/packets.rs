//! Packets that should not be: each is answered with what is wrong, and changes nothing.

use bytes::Bytes;
use reveille_a2a::{AddressRules, HttpA2aClient};
use reveille_bus::{Bus, LocalBus, Message, MessageOrigin, MessageSender};
use reveille_core::fleet::{Beat, Load};
use reveille_core::id::{JobId, KeyId, TenantId, Topic, WorkerId};
use reveille_core::job::State;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::{Clock, Engine, Parts, Rules, SeededRng, Settings, Submission, Submitter, SystemClock};
use reveille_roster::MemoryRoster;
use reveille_store::MemoryStore;
use reveille_traces::Nowhere;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{BusPacket, Heartbeat, JobRequest, JobResult, JobStatus};
use reveille_wire::convert::Introduction;
use reveille_wire::{packet, subject};
use std::sync::Arc;
use std::time::Duration;

struct Bench {
    engine: Engine,
    bus: LocalBus,
}

impl Bench {
    /// An engine with one worker, `w`, that serves `job.echo` and really listens.
    async fn start() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let (bus, now) = (LocalBus::default(), clock.clone());
        let engine = Engine::start(Parts {
            store: Arc::new(MemoryStore::new(Arc::new(move || now.now()))),
            roster: Arc::new(MemoryRoster::new()),
            workflows: Arc::new(reveille_store::workflows::MemoryWorkflows::default()),
            bus: Arc::new(bus.clone()),
            courier: Arc::new(HttpA2aClient::new(AddressRules::default())),
            kernel: None,
            traces: Arc::new(Nowhere),
            clock,
            rng: Arc::new(SeededRng::new(1)),
            rules: Rules::default(),
            settings: Settings::default(),
        })
        .await
        .unwrap();
        let mut jobs = bus.subscribe("worker.w.jobs", None).await.unwrap();
        tokio::spawn(async move { while jobs.recv().await.is_some() {} });
        let tenant = TenantId::known("default");
        engine.fleet().introduce(
            &tenant,
            Introduction { worker: WorkerId::known("w"), topics: vec![Topic::known("job.echo")] },
        );
        let load = Load { max_parallel_jobs: 10, ..Load::default() };
        engine.fleet().beat(&WorkerId::known("w"), &tenant, &Beat { load, ..Beat::default() });
        Self { engine, bus }
    }

    async fn submit(&self, id: &str) {
        let request = Request::plain(id, "job.echo");
        let submission =
            Submission { request, context: Some(Bytes::from_static(b"{}")), submitter: Submitter::Listens };
        self.engine.jobs().submit(submission).await.unwrap();
    }

    async fn state(&self, id: &str) -> State {
        self.engine.jobs().job(&JobId::known(id)).await.unwrap().unwrap().state()
    }

    /// Publishes with a reply inbox and returns the answer.
    async fn ask(&self, subject: &str, payload: impl Into<Bytes>) -> String {
        let mut inbox = self.bus.subscribe("_INBOX.test", None).await.unwrap();
        let message = Message { reply: Some("_INBOX.test".to_owned()), ..Message::new(subject, payload) };
        self.bus.publish(message).await.unwrap();
        let answer =
            tokio::time::timeout(Duration::from_secs(5), inbox.recv()).await.unwrap().unwrap().message;
        String::from_utf8(answer.payload.to_vec()).unwrap()
    }

    async fn report(&self, job: &str, worker: &str) -> String {
        self.ask(subject::JOB_RESULT, packet::encode(&sent_by(worker, result(job, worker)))).await
    }
}

fn sent_by(sender: &str, payload: Payload) -> BusPacket {
    packet::envelope(sender, "trace", Millis(1), payload)
}

fn result(job: &str, worker: &str) -> Payload {
    Payload::JobResult(JobResult {
        job_id: job.to_owned(),
        worker_id: worker.to_owned(),
        status: JobStatus::Succeeded as i32,
        ..JobResult::default()
    })
}

#[tokio::test]
async fn a_result_counts_once_and_only_from_the_worker_that_has_the_job() {
    let bench = Bench::start().await;
    bench.submit("j").await;
    assert_eq!(bench.state("j").await, State::Dispatched);
    assert!(bench.report("nope", "w").await.contains("there is no such job"));
    assert!(bench.report("j", "stranger").await.contains("stranger does not hold this job"));
    assert_eq!(bench.state("j").await, State::Dispatched);
    assert!(bench.report("j", "w").await.contains("SUCCEEDED"));
    assert!(bench.report("j", "w").await.contains("a job that is SUCCEEDED takes no"));
    assert_eq!(bench.state("j").await, State::Succeeded);
}

#[tokio::test]
async fn a_packet_that_breaks_the_protocol_is_told_which_field() {
    let bench = Bench::start().await;
    bench.submit("j").await;
    let broken = |change: fn(&mut BusPacket)| {
        let mut packet = sent_by("w", result("j", "w"));
        change(&mut packet);
        packet::encode(&packet)
    };
    for (payload, words) in [
        (broken(|packet| packet.protocol_version = 2), "protocol_version"),
        (broken(|packet| packet.trace_id.clear()), "trace_id"),
        (broken(|packet| packet.sender_id = "other".to_owned()), "worker_id"),
        (broken(|packet| packet.created_at = None), "created_at"),
        (broken(|packet| packet.payload = None), "payload"),
        (Bytes::from_static(b"\xff\xff garbage"), "Protobuf"),
        (Bytes::from(vec![0; packet::PACKET_LEN_MAX + 1]), "bytes"),
    ] {
        let answer = bench.ask(subject::JOB_RESULT, payload).await;
        assert!(answer.contains("\"ok\":false") && answer.contains(words), "{words}: {answer}");
    }
    let misplaced = packet::encode(&sent_by(
        "w",
        Payload::Heartbeat(Heartbeat { worker_id: "w".into(), ..Heartbeat::default() }),
    ));
    assert!(bench.ask(subject::JOB_RESULT, misplaced).await.contains("does not belong on this subject"));
    assert!(!bench.state("j").await.is_terminal(), "none of them counted");
}

#[tokio::test]
async fn a_job_on_the_bus_cannot_choose_its_tenant_or_take_a_taken_id() {
    let bench = Bench::start().await;
    let submit = |id: &str, tenant: &str| {
        let job = JobRequest {
            job_id: id.into(),
            topic: "job.echo".into(),
            tenant_id: tenant.into(),
            ..JobRequest::default()
        };
        packet::encode(&sent_by("client", Payload::JobRequest(job)))
    };
    assert!(bench.ask(subject::JOB_SUBMIT, submit("a", "someone-else")).await.contains("tenant_id"));
    assert!(bench.engine.jobs().job(&JobId::known("a")).await.unwrap().is_none());
    let (first, again) = (
        bench.ask(subject::JOB_SUBMIT, submit("a", "")).await,
        bench.ask(subject::JOB_SUBMIT, submit("a", "")).await,
    );
    assert!(
        first.contains("\"ok\":true") && again.contains("\"ok\":true"),
        "a repeated packet is the same job"
    );
    assert_eq!(bench.engine.jobs().job(&JobId::known("a")).await.unwrap().unwrap().attempts.len(), 1);
}

#[tokio::test]
async fn a_job_on_the_bus_remembers_the_key_it_came_with() {
    let bench = Bench::start().await;
    let job = JobRequest { job_id: "a".into(), topic: "job.echo".into(), ..JobRequest::default() };
    let packet = packet::encode(&sent_by("client", Payload::JobRequest(job)));
    let key = Some(KeyId::known("key_1"));
    let origin = MessageOrigin::Client(MessageSender { tenant: TenantId::known("acme"), key: key.clone() });
    let mut inbox = bench.bus.subscribe("_INBOX.key", None).await.unwrap();
    let reply = Some("_INBOX.key".to_owned());
    let message = Message { reply, origin, ..Message::new(subject::JOB_SUBMIT, packet) };
    bench.bus.publish(message).await.unwrap();
    inbox.recv().await.unwrap();
    let job = bench.engine.jobs().job(&JobId::known("a")).await.unwrap().unwrap();
    assert_eq!((&job.request.submitted_by, job.request.tenant.as_str()), (&key, "acme"));
}
