//! The other side of the bus: sends jobs, hears results, answers them when a test says so.

use std::time::Duration;

use async_nats::{Client, HeaderMap, Message, Subscriber};
use futures_util::StreamExt;
use redis::AsyncCommands;
use reveille_core::time::Millis;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{Budget, BusPacket, DispatchIdentity, Heartbeat, JobCancel, JobRequest, JobResult};
use reveille_wire::{packet, subject};
use reveille_worker::{Connect, Error, Worker};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::servers::Servers;

/// Longer than any pause of the worker, shorter than patience.
const WAIT_MAX: Duration = Duration::from_secs(20);

pub const TOPIC: &str = "job.test";
pub const WORKER: &str = "w-1";
pub const DIRECT: &str = "worker.w-1.jobs";

pub struct Scheduler {
    pub servers: Servers,
    pub nats: Client,
    results: Subscriber,
    heartbeats: Subscriber,
}

/// A worker that runs beside the test.
pub struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), Error>>,
}

impl Scheduler {
    pub async fn start() -> Self {
        let servers = Servers::start().await;
        let nats = servers.nats_client().await;
        let results = nats.subscribe(subject::JOB_RESULT).await.unwrap();
        let heartbeats = nats.subscribe(subject::HEARTBEAT).await.unwrap();
        nats.flush().await.unwrap();
        Self { servers, nats, results, heartbeats }
    }

    /// Starts the worker and waits for its first heartbeat.
    pub async fn employ(&mut self, worker: Worker) -> Running {
        let running = Running::start(worker, self.servers.connect());
        self.heartbeat().await;
        running
    }

    pub async fn redis(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.servers.connect().redis_url).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }

    /// Stores the input and sends the job.
    pub async fn dispatch(&self, to: &'static str, request: JobRequest, input: &Value) {
        let key = format!("ctx:{}", request.job_id);
        let () = self.redis().await.set(key, input.to_string()).await.unwrap();
        self.send(to, request).await;
    }

    pub async fn send(&self, to: &'static str, request: JobRequest) {
        self.publish(to, Payload::JobRequest(request)).await;
    }

    /// Sends a job that needs no input, with headers.
    pub async fn send_with(&self, to: &'static str, request: JobRequest, headers: &[(&str, &str)]) {
        let packet = packet::envelope("scheduler", "trace-1", Millis(1), Payload::JobRequest(request));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, *value);
        }
        self.nats.publish_with_headers(to, map, packet::encode(&packet)).await.unwrap();
    }

    pub async fn cancel(&self, job_id: &str) {
        let (job_id, requested_by) = (job_id.to_owned(), "ann".to_owned());
        let cancel = JobCancel { job_id, requested_by, ..JobCancel::default() };
        self.publish(subject::JOB_CANCEL, Payload::JobCancel(cancel)).await;
    }

    async fn publish(&self, to: &'static str, payload: Payload) {
        let packet = packet::envelope("scheduler", "trace-1", Millis(1), payload);
        self.nats.publish(to, packet::encode(&packet)).await.unwrap();
    }

    /// The next result, which is answered.
    pub async fn result(&mut self) -> JobResult {
        let (message, packet) = self.unanswered_result().await;
        assert_eq!(packet.trace_id, "trace-1");
        self.answer(&message).await;
        result_of(packet)
    }

    pub async fn unanswered_result(&mut self) -> (Message, BusPacket) {
        let message = soon("a result", self.results.next()).await.unwrap();
        let packet = packet::decode(&message.payload).unwrap();
        (message, packet)
    }

    pub async fn answer(&self, message: &Message) {
        let reply = message.reply.clone().expect("a result asks for an answer");
        self.nats.publish(reply, r#"{"ok":true}"#.into()).await.unwrap();
    }

    pub async fn heartbeat(&mut self) -> Heartbeat {
        let message = soon("a heartbeat", self.heartbeats.next()).await.unwrap();
        match packet::decode(&message.payload).unwrap().payload {
            Some(Payload::Heartbeat(heartbeat)) => heartbeat,
            other => panic!("{other:?}"),
        }
    }
}

impl Running {
    pub fn start(worker: Worker, connect: Connect) -> Self {
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        let task = tokio::spawn(worker.run(connect, shutdown));
        Self { stop: Some(stop), task }
    }

    pub fn begin_stop(&mut self) {
        self.stop.take().expect("a worker is stopped once").send(()).unwrap();
    }

    pub async fn stopped(&mut self) {
        soon("the worker's end", &mut self.task).await.unwrap().unwrap();
    }
}

pub fn request(job_id: &str) -> JobRequest {
    JobRequest {
        job_id: job_id.into(),
        topic: TOPIC.into(),
        context_ptr: format!("redis://ctx:{job_id}"),
        ..JobRequest::default()
    }
}

pub fn attempt(job_id: &str, attempt: u64) -> JobRequest {
    let dispatch_id = format!("{job_id}:{attempt}");
    let dispatch = DispatchIdentity { dispatch_id, attempt, assigned_worker_id: WORKER.into() };
    JobRequest { dispatch: Some(dispatch), ..request(job_id) }
}

pub fn with_deadline(request: JobRequest, deadline_ms: i64) -> JobRequest {
    JobRequest { budget: Some(Budget { deadline_ms, ..Budget::default() }), ..request }
}

pub fn result_of(packet: BusPacket) -> JobResult {
    match packet.payload {
        Some(Payload::JobResult(result)) => result,
        other => panic!("{other:?}"),
    }
}

/// What a broken worker would make us wait for is a failure with a name.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(WAIT_MAX, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}
