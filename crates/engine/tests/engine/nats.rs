//! The engine on a real NATS server: what was published is worked on, whoever is there at the time.

use async_nats::{Client, Subscriber, jetstream};
use bytes::Bytes;
use futures_util::StreamExt;
use reveille_bus::{NatsBus, NatsOptions};
use reveille_core::id::JobId;
use reveille_core::job::State;
use reveille_engine::{Engine, Settings};
use reveille_store::DeadPackets;
use reveille_test_kit::{TestClock, TestWorld, job_packet, packet, succeeded, wait_for_state};
use reveille_test_servers::Nats;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{ComponentRole, Handshake, Heartbeat, JobResult, JobStatus};
use reveille_wire::{packet as wire, subject};
use std::sync::Arc;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
const SUBMITS: &str = "dur_cordum-scheduler__sys_job_submit";

fn world() -> TestWorld {
    TestWorld::with_clock(TestClock::of_the_wall())
}

async fn start(nats: &Nats, world: &TestWorld, settings: Settings) -> Engine {
    let options = NatsOptions {
        stream_bytes_max: 64 << 20,
        backoff: vec![Duration::from_millis(400)],
        progress_every: Duration::from_millis(100),
        ..NatsOptions::new([nats.url()])
    };
    let bus = Arc::new(NatsBus::open(options).await.unwrap());
    world.engine().bus(bus).settings(settings).start().await.engine
}

fn job(id: &str) -> Bytes {
    job_packet(id, "job.echo")
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
        let Some(Payload::JobRequest(job)) = wire::decode(&message.payload).unwrap().payload else {
            panic!("not a job")
        };
        let result = JobResult { worker_id: "w".into(), ..succeeded(&job.job_id) };
        self.say(subject::JOB_RESULT, Payload::JobResult(result)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_runs_from_submit_to_result() {
    let (nats, world) = (Nats::start(), world());
    let engine = start(&nats, &world, Settings::default()).await;
    let mut worker = Worker::start(&nats).await;
    worker.greet().await;
    worker.nats.publish(subject::JOB_SUBMIT, job("a")).await.unwrap();
    worker.work().await;
    wait_for_state(&engine, "a", State::Succeeded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_published_while_nobody_was_there_is_worked_on_later() {
    let (nats, world) = (Nats::start(), world());
    // The streams are made by whoever is there first.
    let first = start(&nats, &world, Settings::default()).await;
    first.drain(Duration::from_secs(1)).await;
    drop(first);
    let mut worker = Worker::start(&nats).await;
    worker.nats.publish(subject::JOB_SUBMIT, job("a")).await.unwrap();
    worker.nats.flush().await.unwrap();

    let second = start(&nats, &world, Settings::default()).await;
    wait_for_state(&second, "a", State::Scheduled).await;
    worker.greet().await;
    worker.work().await;
    wait_for_state(&second, "a", State::Succeeded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_that_finds_no_room_comes_back_when_there_is_some() {
    let (nats, world) = (Nats::start(), world());
    let engine = start(&nats, &world, Settings { live_jobs_max: 1, ..Settings::default() }).await;
    let client = async_nats::connect(nats.url()).await.unwrap();
    client.publish(subject::JOB_SUBMIT, job("a")).await.unwrap();
    wait_for_state(&engine, "a", State::Scheduled).await;
    client.publish(subject::JOB_SUBMIT, job("b")).await.unwrap();
    let stream = jetstream::new(client).get_stream("CORDUM_SYS").await.unwrap();
    let came_back = async {
        while stream.consumer_info(SUBMITS).await.unwrap().num_redelivered == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, came_back).await.unwrap();
    engine.jobs().cancel(&JobId::known("a"), "test", "makes room").await.unwrap();
    wait_for_state(&engine, "b", State::Scheduled).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_packet_that_can_never_be_dealt_with_is_kept_and_then_gone_from_its_stream() {
    let (nats, world) = (Nats::start(), world());
    let _engine = start(&nats, &world, Settings::default()).await;
    let client = async_nats::connect(nats.url()).await.unwrap();
    let beat = Payload::Heartbeat(Heartbeat { worker_id: "w".into(), ..Heartbeat::default() });
    client.publish(subject::JOB_SUBMIT, packet("w", beat)).await.unwrap();
    client.flush().await.unwrap();
    let mut stream = jetstream::new(client).get_stream("CORDUM_SYS").await.unwrap();
    let gone = async {
        loop {
            let buried = world.store.buried(None, 10).await.unwrap().items;
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
    let (nats, world) = (Nats::start(), world());
    let engine = start(&nats, &world, Settings::default()).await;
    let worker = Worker::start(&nats).await;
    worker.greet().await;
    worker.nats.publish(subject::JOB_SUBMIT, job("a")).await.unwrap();
    wait_for_state(&engine, "a", State::Running).await;
    let status = JobStatus::FailedFatal as i32;
    let result = JobResult { worker_id: "w".into(), status, ..succeeded("a") };
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
