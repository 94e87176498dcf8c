//! Packets that can never be dealt with are kept before the bus is told to forget them.

use crate::reconcile::Shared;
use bytes::Bytes;
use reveille_bus::{
    Ack, Bus, BusError, Delivery, DeliveryReport, Listener, LocalBus, Message, MessageKey, Subscription, Word,
};
use reveille_core::id::JobId;
use reveille_store::{DeadPacket, DeadPackets, JobStore};
use reveille_test_kit::{job_packet, pass};
use reveille_wire::subject;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// A bus that keeps submits: the test hands them out, and hears what became of each.
#[derive(Clone)]
struct Keeping {
    rest: LocalBus,
    submits: Arc<Mutex<Option<Subscription>>>,
}

#[async_trait::async_trait]
impl Bus for Keeping {
    async fn publish(&self, message: Message) -> Result<DeliveryReport, BusError> {
        self.rest.publish(message).await
    }

    async fn subscribe(&self, subject: &str, queue: Option<&str>) -> Result<Subscription, BusError> {
        if subject == subject::JOB_SUBMIT {
            return Ok(self.submits.lock().unwrap().take().unwrap());
        }
        self.rest.subscribe(subject, queue).await
    }

    fn shows_listeners(&self) -> bool {
        self.rest.shows_listeners()
    }

    async fn listeners_changed(&self) -> Vec<Listener> {
        self.rest.listeners_changed().await
    }
}

struct Bench {
    shared: Shared,
    submits: mpsc::Sender<Delivery>,
    said: mpsc::UnboundedReceiver<Word>,
    says: mpsc::UnboundedSender<Word>,
}

impl Bench {
    async fn start() -> Self {
        let (submits, subscription) = mpsc::channel(8);
        let bus = Keeping {
            rest: LocalBus::default(),
            submits: Arc::new(Mutex::new(Some(Subscription::new(subscription)))),
        };
        let shared = Shared::new();
        shared.start_with(|engine| engine.bus(Arc::new(bus))).await;
        let (says, said) = mpsc::unbounded_channel();
        Self { shared, submits, said, says }
    }

    /// Hands a packet out for the so-manyth time. What is said of it comes later.
    async fn hand_out(&self, payload: impl Into<Bytes>, delivered: u64) {
        let says = self.says.clone();
        let from = MessageKey {
            stream: "CORDUM_SYS".into(),
            durable: "durable".into(),
            seq: 42,
            kept_at: 1,
            delivered,
        };
        let ack = Ack::new(move |word| says.send(word).unwrap());
        let message = Message::new(subject::JOB_SUBMIT, payload);
        self.submits.send(Delivery { message, ack, from: Some(from) }).await.unwrap();
    }

    async fn becomes(&mut self, payload: impl Into<Bytes>, delivered: u64) -> Word {
        self.hand_out(payload, delivered).await;
        self.said.recv().await.unwrap()
    }

    async fn buried(&self) -> Vec<DeadPacket> {
        self.shared.store.buried(None, 100).await.unwrap().items
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_read_is_tried_three_times_and_then_kept() {
    let mut bench = Bench::start().await;
    for delivered in 1..=3 {
        assert_eq!(bench.becomes("garbage", delivered).await, Word::Later(Duration::from_secs(5)));
        assert_eq!(bench.buried().await, []);
    }
    assert_eq!(bench.becomes("garbage", 4).await, Word::End);
    let [packet] = &bench.buried().await[..] else { panic!("one is kept") };
    assert_eq!((packet.key.as_str(), &packet.content[..]), ("CORDUM_SYS:42", &b"garbage"[..]));
    assert_eq!((packet.about.subject.as_str(), packet.about.deliveries), (subject::JOB_SUBMIT, 4));
    assert!(packet.about.reason.contains("Protobuf"), "{}", packet.about.reason);
}

#[tokio::test(start_paused = true)]
async fn what_can_be_read_and_never_done_is_kept_at_once() {
    let mut bench = Bench::start().await;
    assert_eq!(bench.becomes(job_packet("a", "no topic at all"), 1).await, Word::End);
    assert_eq!(bench.buried().await.len(), 1);
    assert_eq!(bench.becomes(job_packet("b", "job.echo"), 1).await, Word::Done);
    assert_eq!(bench.buried().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_handed_out_a_hundred_times_is_not_tried_again() {
    let mut bench = Bench::start().await;
    assert_eq!(bench.becomes(job_packet("a", "job.echo"), 99).await, Word::Done);
    assert_eq!(bench.becomes(job_packet("b", "job.echo"), 100).await, Word::End);
    assert_eq!(bench.buried().await[0].about.deliveries, 100);
    for (id, is_made) in [("a", true), ("b", false)] {
        assert_eq!(bench.shared.store.job(&JobId::known(id)).await.unwrap().is_some(), is_made, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_is_not_ended() {
    let mut bench = Bench::start().await;
    let away = &bench.shared.store.hook.clone().is_away;
    away.store(true, Ordering::SeqCst);
    for delivered in 4..10 {
        assert_eq!(bench.becomes("garbage", delivered).await, Word::Later(Duration::from_secs(5)));
    }
    // The last time that the bus hands it out it must not be given back.
    bench.hand_out("garbage", 100).await;
    pass(600).await;
    assert!(bench.said.try_recv().is_err(), "it waits here");
    away.store(false, Ordering::SeqCst);
    assert_eq!(bench.said.recv().await, Some(Word::End));
    assert_eq!(bench.buried().await.len(), 1);
}

/// Whoever sends nonsense again and again has one place among the dead.
#[tokio::test(start_paused = true)]
async fn where_nothing_is_kept_the_same_packet_is_buried_once() {
    let shared = Shared::new();
    let bus = shared.start().await.bus;
    let mut inbox = bus.subscribe("_INBOX.test", None).await.unwrap();
    for payload in ["garbage", "garbage", "rubbish", "garbage"] {
        let message = Message::new(subject::JOB_RESULT, payload);
        bus.publish(Message { reply: Some("_INBOX.test".to_owned()), ..message }).await.unwrap();
        inbox.recv().await.unwrap();
    }
    // Beats are worth nothing a moment later.
    bus.publish(Message::new(subject::HEARTBEAT, "garbage")).await.unwrap();
    pass(1).await;
    let buried = shared.store.buried(None, 100).await.unwrap().items;
    let contents: Vec<&[u8]> = buried.iter().map(|packet| &packet.content[..]).collect();
    assert_eq!(contents, [&b"garbage"[..], b"rubbish"]);
}
