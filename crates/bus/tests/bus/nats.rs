//! The NATS bus on a real server.

mod away;
mod kept;
mod listener_probe;
mod opening;

use async_nats::Client;
use async_nats::jetstream::Context;
use reveille_bus::{
    Bus, BusError, Delivery, DeliveryReport, Message, MessageOrigin, MessageSender, NatsBus, NatsLink,
    NatsOptions, Subscription, suite,
};
use reveille_core::id::TenantId;
use reveille_test_servers::Nats;
use std::time::Duration;

/// How long anything may take before a test fails.
const SOON: Duration = Duration::from_secs(30);
/// Backoff and progress intervals short enough for a test, and long enough for a busy machine.
const BACKOFF: Duration = Duration::from_millis(1_500);
const PROGRESS_EVERY: Duration = Duration::from_millis(150);

const SUBMIT: &str = "sys.job.submit";
const RESULT: &str = "sys.job.result";

fn options(nats: &Nats) -> NatsOptions {
    NatsOptions {
        stream_bytes_max: 64 << 20,
        backoff: vec![BACKOFF],
        progress_every: PROGRESS_EVERY,
        ..NatsOptions::new([nats.url()])
    }
}

async fn open(nats: &Nats) -> NatsBus {
    NatsBus::open(options(nats)).await.unwrap()
}

/// A client that speaks NATS and knows nothing of us.
async fn foreign_client(nats: &Nats) -> Client {
    async_nats::connect(nats.url()).await.unwrap()
}

/// The streams, as an operator looks at them.
async fn streams(nats: &Nats) -> Context {
    async_nats::jetstream::new(foreign_client(nats).await)
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, work).await.expect("it does not take that long")
}

async fn next(subscription: &mut Subscription) -> Delivery {
    soon(subscription.recv()).await.expect("the subscription is open")
}

async fn publish(bus: &NatsBus, subject: &str, payload: impl Into<bytes::Bytes>) -> DeliveryReport {
    soon(bus.publish(Message::new(subject, payload))).await.unwrap()
}

fn text(delivery: &Delivery) -> String {
    String::from_utf8(delivery.message.payload.to_vec()).unwrap()
}

/// Waits until this many jobs and results are stored: the server accepts a message and processes it a little later.
async fn kept(nats: &Nats, bus: &NatsBus, wanted: u64) {
    bus.flush().await.unwrap();
    let stream = streams(nats).await.get_stream("CORDUM_SYS").await.unwrap();
    soon(async {
        while stream.get_info().await.unwrap().state.messages != wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

async fn wait_for_link(bus: &NatsBus, wanted: NatsLink) {
    soon(bus.state().wait_for(|link| *link == wanted)).await.unwrap();
}

#[tokio::test]
async fn the_nats_bus_keeps_the_promises_of_the_port() {
    let nats = Nats::start();
    let bus = open(&nats).await;
    suite::run(&bus).await;
    // Nothing in the suite is late here: the server's usual ack wait.
    let nats = Nats::start();
    let usual = NatsOptions { backoff: vec![Duration::from_secs(30)], ..options(&nats) };
    let bus = NatsBus::open(usual).await.unwrap();
    suite::run_kept(&bus, SUBMIT).await;
    kept(&nats, &bus, 0).await;
}

#[tokio::test]
async fn a_stranger_is_who_we_say_and_another_replica_is_one_of_us() {
    let nats = Nats::start();
    let worker = MessageOrigin::Worker(MessageSender { tenant: TenantId::known("acme"), key: None });
    let bus = NatsBus::open(NatsOptions { origin: worker.clone(), ..options(&nats) }).await.unwrap();
    let other = NatsBus::open(NatsOptions { replica: "r2".to_owned(), ..options(&nats) }).await.unwrap();
    let mut cancels = bus.subscribe("sys.job.cancel", Some("cordum-scheduler")).await.unwrap();
    let foreign_client = foreign_client(&nats).await;
    foreign_client.publish("sys.job.cancel", "theirs".into()).await.unwrap();
    assert_eq!(next(&mut cancels).await.message.origin, worker);
    publish(&other, "sys.job.cancel", "ours").await;
    let cancel = next(&mut cancels).await;
    assert_eq!((cancel.message.origin, cancel.message.reply), (MessageOrigin::Ourselves, None));
}

#[tokio::test]
async fn what_is_too_large_is_not_the_servers_fault() {
    let nats = Nats::start();
    let bus = open(&nats).await;
    for subject in [SUBMIT, "worker.w.jobs"] {
        let outcome = bus.publish(Message::new(subject, vec![0; 2 << 20])).await;
        assert!(matches!(outcome, Err(BusError::TooLarge { .. })), "{subject}: {outcome:?}");
    }
}
