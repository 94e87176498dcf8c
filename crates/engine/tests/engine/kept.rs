//! What a bus that keeps packets is told of each of them, and when.

use bytes::Bytes;
use reveille_bus::{
    Ack, Bus, BusError, Delivery, DeliveryReport, Listener, LocalBus, Message, MessageKey, Subscription, Word,
};
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_engine::{Engine, Settings};
use reveille_test_kit::{TestWorld, job_packet};
use reveille_traces::{TraceCounts, Traces};
use reveille_wire::subject;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A local bus whose packets count as kept: each was handed out as often as its id says.
struct KeepingBus {
    inner: LocalBus,
    words: mpsc::UnboundedSender<Word>,
}

#[async_trait::async_trait]
impl Bus for KeepingBus {
    async fn publish(&self, message: Message) -> Result<DeliveryReport, BusError> {
        self.inner.publish(message).await
    }

    async fn subscribe(&self, subject: &str, queue: Option<&str>) -> Result<Subscription, BusError> {
        let mut inner = self.inner.subscribe(subject, queue).await?;
        let (deliveries, subscription) = mpsc::channel(1);
        let (words, durable) = (self.words.clone(), subject.to_owned());
        tokio::spawn(async move {
            while let Some(Delivery { message, .. }) = inner.recv().await {
                let words = words.clone();
                let from = MessageKey {
                    stream: "TEST".into(),
                    durable: durable.as_str().into(),
                    kept_at: 0,
                    // Of one content there is one packet.
                    seq: message.payload.iter().map(|byte| u64::from(*byte)).sum(),
                    delivered: message.id.as_deref().unwrap().parse().unwrap(),
                };
                let ack = Ack::new(move |word| words.send(word).unwrap());
                deliveries.send(Delivery { message, ack, from: Some(from) }).await.unwrap();
            }
        });
        Ok(Subscription::new(subscription))
    }

    fn shows_listeners(&self) -> bool {
        self.inner.shows_listeners()
    }

    async fn listeners_changed(&self) -> Vec<Listener> {
        self.inner.listeners_changed().await
    }
}

/// Holds up a server that is leaving for as long as it has patience.
struct LongStory;

#[async_trait::async_trait]
impl Traces for LongStory {
    fn export(&self, _job: &Arc<Job>) {}

    fn counts(&self) -> TraceCounts {
        TraceCounts::default()
    }

    async fn finish(&self, patience: Duration) {
        tokio::time::sleep(patience).await;
    }
}

struct Bench {
    engine: Engine,
    bus: LocalBus,
    words: mpsc::UnboundedReceiver<Word>,
}

impl Bench {
    async fn start(settings: Settings) -> Self {
        let bus = LocalBus::default();
        let (tell, words) = mpsc::unbounded_channel();
        let keeping = KeepingBus { inner: bus.clone(), words: tell };
        let engine = TestWorld::new().engine().bus(Arc::new(keeping)).traces(Arc::new(LongStory));
        Self { engine: engine.settings(settings).start().await.engine, bus, words }
    }

    /// What is said of a submitted packet that was handed out this many times.
    async fn said_of(&mut self, payload: Bytes, delivered: u64) -> Word {
        self.hand_out(payload, delivered).await;
        self.words.recv().await.unwrap()
    }

    async fn hand_out(&self, payload: Bytes, delivered: u64) {
        let id = Some(delivered.to_string());
        self.bus.publish(Message { id, ..Message::new(subject::JOB_SUBMIT, payload) }).await.unwrap();
    }

    async fn has(&self, job: &str) -> bool {
        self.engine.jobs().job(&JobId::known(job)).await.unwrap().is_some()
    }
}

fn job(id: &str) -> Bytes {
    job_packet(id, "job.echo")
}

const fn later(seconds: u64) -> Word {
    Word::Later(Duration::from_secs(seconds))
}

#[tokio::test]
async fn a_packet_is_done_with_once_its_job_is_stored_or_refused() {
    let mut bench = Bench::start(Settings::default()).await;
    assert_eq!(bench.said_of(job("a"), 1).await, Word::Done);
    assert!(bench.has("a").await);
    assert_eq!(bench.said_of(job("a"), 2).await, Word::Done, "it was handed out again");
    assert_eq!(bench.said_of(job("not an id"), 1).await, Word::End);
}

#[tokio::test]
async fn a_packet_that_nobody_can_read_comes_back_three_times_and_then_never() {
    let mut bench = Bench::start(Settings::default()).await;
    for delivered in 1..=3 {
        assert_eq!(bench.said_of(Bytes::from_static(b"\xff garbage"), delivered).await, later(5));
    }
    assert_eq!(bench.said_of(Bytes::from_static(b"\xff garbage"), 4).await, Word::End);
}

#[tokio::test]
async fn what_finds_no_room_is_given_back_for_longer_each_time() {
    let mut bench = Bench::start(Settings { live_jobs_max: 1, ..Settings::default() }).await;
    assert_eq!(bench.said_of(job("a"), 1).await, Word::Done);
    for (delivered, pause) in [(1, 2), (2, 4), (5, 32), (6, 60), (49, 60)] {
        assert_eq!(bench.said_of(job("b"), delivered).await, later(pause), "delivered {delivered} times");
    }
    assert!(!bench.has("b").await);
}

#[tokio::test]
async fn what_was_given_back_too_often_waits_here() {
    let mut bench = Bench::start(Settings { live_jobs_max: 1, ..Settings::default() }).await;
    assert_eq!(bench.said_of(job("a"), 1).await, Word::Done);
    bench.hand_out(job("b"), 50).await;
    // Another packet is dealt with meanwhile, and nothing was said of the first.
    assert_eq!(bench.said_of(Bytes::from_static(b"\xff garbage"), 4).await, Word::End);
    bench.engine.jobs().cancel(&JobId::known("a"), "test", "makes room").await.unwrap();
    assert_eq!(bench.words.recv().await.unwrap(), Word::Done);
    assert!(bench.has("b").await);
}

#[tokio::test]
async fn a_server_that_is_leaving_gives_packets_back() {
    let mut bench = Bench::start(Settings::default()).await;
    let engine = bench.engine.clone();
    tokio::spawn(async move { engine.drain(Duration::from_mins(1)).await });
    while !bench.engine.is_draining() {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.said_of(job("a"), 1).await, later(2));
}
