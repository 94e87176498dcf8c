//! The engine on a real NATS server: what was published is worked on, whoever is there at the time.

use async_nats::{Client, Subscriber, jetstream};
use bytes::Bytes;
use futures_util::StreamExt;
use reveille_a2a::{AddressRules, HttpA2aClient};
use reveille_bus::{NatsBus, NatsOptions};
use reveille_core::id::JobId;
use reveille_core::job::State;
use reveille_core::time::Millis;
use reveille_engine::{Clock, Engine, Parts, Rules, SeededRng, Settings, SystemClock};
use reveille_roster::MemoryRoster;
use reveille_store::{MemoryStore, Store};
use reveille_test_servers::Nats;
use reveille_traces::Nowhere;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{ComponentRole, Handshake, Heartbeat, JobRequest, JobResult, JobStatus};
use reveille_wire::{packet, subject};
use std::sync::Arc;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
const SUBMITS: &str = "dur_cordum-scheduler__sys_job_submit";

fn store() -> Arc<dyn Store> {
    let clock = SystemClock::start();
    Arc::new(MemoryStore::new(Arc::new(move || clock.now())))
}

async fn start(nats: &Nats, store: &Arc<dyn Store>, settings: Settings) -> Engine {
    let options = NatsOptions {
        stream_bytes_max: 64 << 20,
        backoff: vec![Duration::from_millis(400)],
        progress_every: Duration::from_millis(100),
        ..NatsOptions::new([nats.url()])
    };
    let parts = Parts {
        store: store.clone(),
        roster: Arc::new(MemoryRoster::new()),
        workflows: Arc::new(reveille_store::workflows::MemoryWorkflows::default()),
        bus: Arc::new(NatsBus::open(options).await.unwrap()),
        courier: Arc::new(HttpA2aClient::new(AddressRules::default())),
        kernel: None,
        traces: Arc::new(Nowhere),
        clock: Arc::new(SystemClock::start()),
        rng: Arc::new(SeededRng::new(1)),
        rules: Rules::default(),
        settings,
    };
    Engine::start(parts).await.unwrap()
}

async fn until(engine: &Engine, job: &str, state: State) {
    let id = JobId::known(job);
    let reached = async {
        while engine.jobs().job(&id).await.unwrap().map(|job| job.state()) != Some(state) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, reached).await.unwrap_or_else(|_| panic!("{job} is never {state}"));
}

fn packet(sender: &str, payload: Payload) -> Bytes {
    packet::encode(&packet::envelope(sender, "trace", Millis(1), payload))
}

fn job(id: &str) -> Bytes {
    let job = JobRequest { job_id: id.into(), topic: "job.echo".into(), ..JobRequest::default() };
    packet("client", Payload::JobRequest(job))
}

/// A worker as the stock SDK makes one: it publishes, and keeps nothing.
struct Worker {
    nats: Client,
    jobs: Subscriber,
}

impl Worker {
    async fn start(nats: &Nats) -> Self {
        let nats = async_nats::connect(nats.url()).await.unwrap();
        let jobs = nats.subscribe("worker.w.jobs").await.unwrap();
        Self { nats, jobs }
    }

    async fn greet(&self) {
        let handshake = Handshake {
            component_id: "w".into(),
            role: ComponentRole::Worker as i32,
            ready_topics: vec!["job.echo".into()],
            ..Handshake::default()
        };
        self.say(subject::HANDSHAKE, Payload::Handshake(handshake)).await;
        let beat = Heartbeat { worker_id: "w".into(), max_parallel_jobs: 10, ..Heartbeat::default() };
        self.say(subject::HEARTBEAT, Payload::Heartbeat(beat)).await;
    }

    async fn say(&self, subject: &'static str, payload: Payload) {
        self.nats.publish(subject, packet("w", payload)).await.unwrap();
    }

    async fn work(&mut self) {
        let message = tokio::time::timeout(SOON, self.jobs.next()).await.unwrap().unwrap();
        let Some(Payload::JobRequest(job)) = packet::decode(&message.payload).unwrap().payload else {
            panic!("not a job")
        };
        let result = JobResult {
            job_id: job.job_id,
            worker_id: "w".into(),
            status: JobStatus::Succeeded as i32,
            ..JobResult::default()
        };
        self.say(subject::JOB_RESULT, Payload::JobResult(result)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_runs_from_submit_to_result() {
    let (nats, store) = (Nats::start(), store());
    let engine = start(&nats, &store, Settings::default()).await;
    let mut worker = Worker::start(&nats).await;
    worker.greet().await;
    worker.nats.publish(subject::JOB_SUBMIT, job("a")).await.unwrap();
    worker.work().await;
    until(&engine, "a", State::Succeeded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_published_while_nobody_was_there_is_worked_on_later() {
    let (nats, store) = (Nats::start(), store());
    // The streams are made by whoever is there first.
    let first = start(&nats, &store, Settings::default()).await;
    first.drain(Duration::from_secs(1)).await;
    drop(first);
    let mut worker = Worker::start(&nats).await;
    worker.nats.publish(subject::JOB_SUBMIT, job("a")).await.unwrap();
    worker.nats.flush().await.unwrap();

    let second = start(&nats, &store, Settings::default()).await;
    until(&second, "a", State::Scheduled).await;
    worker.greet().await;
    worker.work().await;
    until(&second, "a", State::Succeeded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_that_finds_no_room_comes_back_when_there_is_some() {
    let (nats, store) = (Nats::start(), store());
    let engine = start(&nats, &store, Settings { live_jobs_max: 1, ..Settings::default() }).await;
    let client = async_nats::connect(nats.url()).await.unwrap();
    client.publish(subject::JOB_SUBMIT, job("a")).await.unwrap();
    until(&engine, "a", State::Scheduled).await;
    client.publish(subject::JOB_SUBMIT, job("b")).await.unwrap();
    let stream = jetstream::new(client).get_stream("CORDUM_SYS").await.unwrap();
    let came_back = async {
        while stream.consumer_info(SUBMITS).await.unwrap().num_redelivered == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, came_back).await.unwrap();
    engine.jobs().cancel(&JobId::known("a"), "test", "makes room").await.unwrap();
    until(&engine, "b", State::Scheduled).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_packet_that_can_never_be_dealt_with_is_kept_and_then_gone_from_its_stream() {
    let (nats, store) = (Nats::start(), store());
    let _engine = start(&nats, &store, Settings::default()).await;
    let client = async_nats::connect(nats.url()).await.unwrap();
    let beat = Payload::Heartbeat(Heartbeat { worker_id: "w".into(), ..Heartbeat::default() });
    client.publish(subject::JOB_SUBMIT, packet("w", beat)).await.unwrap();
    client.flush().await.unwrap();
    let mut stream = jetstream::new(client).get_stream("CORDUM_SYS").await.unwrap();
    let gone = async {
        loop {
            let buried = store.buried(None, 10).await.unwrap().items;
            if stream.info().await.unwrap().state.messages == 0 && !buried.is_empty() {
                return buried;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let buried = tokio::time::timeout(SOON, gone).await.unwrap();
    assert_eq!((buried.len(), buried[0].key.as_str()), (1, "CORDUM_SYS:1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_of_a_dead_letter_says_which_it_is() {
    let (nats, store) = (Nats::start(), store());
    let engine = start(&nats, &store, Settings::default()).await;
    let worker = Worker::start(&nats).await;
    worker.greet().await;
    worker.nats.publish(subject::JOB_SUBMIT, job("a")).await.unwrap();
    until(&engine, "a", State::Running).await;
    let result = JobResult {
        job_id: "a".into(),
        worker_id: "w".into(),
        status: JobStatus::FailedFatal as i32,
        ..JobResult::default()
    };
    worker.say(subject::JOB_RESULT, Payload::JobResult(result)).await;
    let stream = jetstream::new(worker.nats.clone()).get_stream("CORDUM_DLQ").await.unwrap();
    let told = async {
        loop {
            if let Ok(notice) = stream.get_last_raw_message_by_subject(subject::JOB_DLQ).await {
                return notice;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let notice = tokio::time::timeout(SOON, told).await.unwrap();
    let id = notice.headers.get("Nats-Msg-Id").map(async_nats::HeaderValue::as_str);
    assert_eq!(id, Some("sys.job.dlq:a:FAILED"));
}
