//! The promises of [`Bus`](crate::Bus) as tests, run over every adapter.
//!
//! An adapter's tests call [`run`] on a fresh bus. Subjects carry the name of the check, so that the checks do not
//! receive each other's messages even where the bus is a shared server. What only one adapter can know (who received
//! a message, who listens) is tested beside that adapter. An adapter that keeps messages runs [`run_kept`] too, on a
//! subject that it keeps.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed check is a failed test")]

use crate::{Bus, BusError, Delivery, DeliveryReport, Message, Subscription};
use std::time::Duration;

/// How long a message may take before the check fails; on paused time it costs nothing.
const ARRIVAL_MAX: Duration = Duration::from_secs(5);

/// Runs every check, in order.
pub async fn run(bus: &dyn Bus) {
    a_message_reaches_every_plain_subscriber(bus).await;
    wildcards_match_whole_tokens(bus).await;
    a_queue_group_shares_its_messages(bus).await;
    a_request_is_answered_on_its_reply_subject(bus).await;
    nobody_hears_an_unknown_subject(bus).await;
    dropping_a_subscription_unsubscribes(bus).await;
    a_bad_subject_is_refused(bus).await;
}

pub async fn a_message_reaches_every_plain_subscriber(bus: &dyn Bus) {
    let mut first = bus.subscribe("suite.delivery", None).await.unwrap();
    let mut second = bus.subscribe("suite.delivery", None).await.unwrap();
    publish(bus, "suite.delivery", "one").await;
    publish(bus, "suite.delivery", "two").await;
    for subscription in [&mut first, &mut second] {
        assert_eq!(next(subscription).await, ("suite.delivery".into(), "one".into()));
        assert_eq!(next(subscription).await, ("suite.delivery".into(), "two".into()));
    }
}

pub async fn wildcards_match_whole_tokens(bus: &dyn Bus) {
    let mut one_token = bus.subscribe("suite.wild.*", None).await.unwrap();
    let mut tail = bus.subscribe("suite.wild.>", None).await.unwrap();
    for subject in ["suite.wild.a.b", "suite.wild", "suite.wildly.a", "suite.wild.c"] {
        publish(bus, subject, subject).await;
    }
    assert_eq!(next(&mut one_token).await.0, "suite.wild.c");
    assert_eq!(next(&mut tail).await.0, "suite.wild.a.b");
    assert_eq!(next(&mut tail).await.0, "suite.wild.c");
}

pub async fn a_queue_group_shares_its_messages(bus: &dyn Bus) {
    const MESSAGES: usize = 20;
    let mut first = bus.subscribe("suite.queue", Some("workers")).await.unwrap();
    let mut second = bus.subscribe("suite.queue", Some("workers")).await.unwrap();
    let mut watcher = bus.subscribe("suite.queue", None).await.unwrap();
    for number in 0..MESSAGES {
        publish(bus, "suite.queue", &number.to_string()).await;
    }
    let mut shared = Vec::new();
    for _ in 0..MESSAGES {
        next(&mut watcher).await;
        let message = tokio::select! {
            message = next(&mut first) => message,
            message = next(&mut second) => message,
        };
        shared.push(message.1.parse::<usize>().unwrap());
    }
    shared.sort_unstable();
    assert_eq!(shared, (0..MESSAGES).collect::<Vec<_>>(), "each message reached exactly one member");
}

pub async fn a_request_is_answered_on_its_reply_subject(bus: &dyn Bus) {
    let mut service = bus.subscribe("suite.service", None).await.unwrap();
    let mut inbox = bus.subscribe("_INBOX.suite.1", None).await.unwrap();
    let request = Message { reply: Some("_INBOX.suite.1".into()), ..Message::new("suite.service", "ask") };
    bus.publish(request).await.unwrap();

    let request = receive(&mut service).await;
    let reply = request.reply.expect("the reply subject came along");
    publish(bus, &reply, "answer").await;
    assert_eq!(next(&mut inbox).await.1, "answer");
}

pub async fn nobody_hears_an_unknown_subject(bus: &dyn Bus) {
    assert_eq!(publish(bus, "suite.nobody", "x").await, DeliveryReport::Nobody);
    let _somebody = bus.subscribe("suite.nobody", None).await.unwrap();
    assert_eq!(publish(bus, "suite.nobody", "x").await, DeliveryReport::Somebody { by: None });
}

pub async fn dropping_a_subscription_unsubscribes(bus: &dyn Bus) {
    drop(bus.subscribe("suite.drop", Some("group")).await.unwrap());
    // A server far away learns of it a little later.
    let nobody = async { while publish(bus, "suite.drop", "x").await != DeliveryReport::Nobody {} };
    tokio::time::timeout(ARRIVAL_MAX, nobody).await.expect("nobody listens any more");

    let mut stayed = bus.subscribe("suite.drop", Some("group")).await.unwrap();
    for payload in ["one", "two", "three"] {
        publish(bus, "suite.drop", payload).await;
        assert_eq!(next(&mut stayed).await.1, payload, "the one that is there gets everything");
    }
}

pub async fn a_bad_subject_is_refused(bus: &dyn Bus) {
    for subject in ["", "suite..bad", "suite.bad subject", "suite.*"] {
        let outcome = bus.publish(Message::new(subject, "")).await;
        assert!(matches!(outcome, Err(BusError::BadSubject(_))), "{subject:?}: {outcome:?}");
    }
    assert!(bus.subscribe("suite.>.bad", None).await.is_err());
}

/// Runs every check about kept messages. Nobody else may use the subject.
pub async fn run_kept(bus: &dyn Bus, subject: &str) {
    // One member throughout: what is delivered to one that is just leaving is redelivered late.
    let mut group = what_is_published_before_anybody_listens_is_kept(bus, subject).await;
    what_is_put_off_comes_back(bus, subject, &mut group).await;
    a_repeated_message_is_kept_once(bus, subject, &mut group).await;
    headers_are_kept_and_replies_are_not(bus, subject, &mut group).await;
    members_of_a_group_share_what_is_kept(bus, subject, &mut group).await;
}

async fn what_is_published_before_anybody_listens_is_kept(bus: &dyn Bus, subject: &str) -> Subscription {
    for payload in ["one", "two"] {
        assert_eq!(publish(bus, subject, payload).await, DeliveryReport::Somebody { by: None }, "it is kept");
    }
    let mut group = bus.subscribe(subject, Some("suite")).await.unwrap();
    let (one, two) = (delivery(&mut group).await, delivery(&mut group).await);
    assert_eq!((&one.message.payload[..], &two.message.payload[..]), (&b"one"[..], &b"two"[..]));
    let (first, second) = (one.from.unwrap(), two.from.unwrap());
    assert_eq!((first.delivered, second.delivered), (1, 1));
    assert_eq!((&first.stream, &first.durable), (&second.stream, &second.durable));
    assert!(first.seq < second.seq);
    one.ack.done();
    two.ack.done();
    group
}

async fn what_is_put_off_comes_back(bus: &dyn Bus, subject: &str, group: &mut Subscription) {
    publish(bus, subject, "again").await;
    let first = delivery(group).await;
    let key = first.from.unwrap();
    first.ack.later(Duration::from_millis(50));
    let second = delivery(group).await;
    let again = second.from.unwrap();
    assert_eq!((again.seq, again.delivered), (key.seq, 2));
    second.ack.done();
}

async fn members_of_a_group_share_what_is_kept(bus: &dyn Bus, subject: &str, first: &mut Subscription) {
    const MESSAGES: u64 = 50;
    let mut second = bus.subscribe(subject, Some("suite")).await.unwrap();
    for number in 0..MESSAGES {
        publish(bus, subject, &number.to_string()).await;
    }
    let mut shared = Vec::new();
    for _ in 0..MESSAGES {
        let delivery = tokio::select! {
            delivery = delivery(first) => delivery,
            delivery = delivery(&mut second) => delivery,
        };
        assert_eq!(delivery.from.unwrap().delivered, 1, "nobody else had it");
        shared.push(String::from_utf8_lossy(&delivery.message.payload).parse::<u64>().unwrap());
        delivery.ack.done();
    }
    shared.sort_unstable();
    assert_eq!(shared, (0..MESSAGES).collect::<Vec<_>>());
}

async fn a_repeated_message_is_kept_once(bus: &dyn Bus, subject: &str, group: &mut Subscription) {
    for (id, payload) in [("suite:1", "one"), ("suite:1", "one again"), ("suite:2", "two")] {
        let message = Message { id: Some(id.to_owned()), ..Message::new(subject, payload) };
        assert_eq!(bus.publish(message).await.unwrap(), DeliveryReport::Somebody { by: None });
    }
    for (id, payload) in [("suite:1", "one"), ("suite:2", "two")] {
        let Delivery { message, ack, .. } = delivery(group).await;
        assert_eq!((message.id.as_deref(), &message.payload[..]), (Some(id), payload.as_bytes()));
        ack.done();
    }
}

async fn headers_are_kept_and_replies_are_not(bus: &dyn Bus, subject: &str, group: &mut Subscription) {
    let message = Message { reply: Some("_INBOX.suite.3".into()), ..Message::new(subject, "x") };
    bus.publish(message.with_headers([("traceparent", "00-a")])).await.unwrap();
    let Delivery { message, ack, .. } = delivery(group).await;
    assert_eq!(message.header("traceparent").collect::<Vec<_>>(), [b"00-a"]);
    assert_eq!(message.reply, None, "whoever published it was answered by the bus");
    ack.done();
}

async fn publish(bus: &dyn Bus, subject: &str, payload: &str) -> DeliveryReport {
    bus.publish(Message::new(subject, payload.to_owned())).await.unwrap()
}

async fn receive(subscription: &mut Subscription) -> Message {
    delivery(subscription).await.message
}

async fn delivery(subscription: &mut Subscription) -> Delivery {
    let arrival = tokio::time::timeout(ARRIVAL_MAX, subscription.recv()).await;
    arrival.expect("a message arrives in time").expect("the subscription is open")
}

async fn next(subscription: &mut Subscription) -> (String, String) {
    let message = receive(subscription).await;
    (message.subject, String::from_utf8_lossy(&message.payload).into_owned())
}
