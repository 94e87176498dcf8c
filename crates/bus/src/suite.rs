//! The promises of [`Bus`](crate::Bus) as tests, run over every adapter.
//!
//! An adapter's tests call [`run`] on a fresh bus. Subjects carry the name of the check, so that
//! the checks do not hear one another even where the bus is a shared server. What only one adapter
//! can know (who heard a message, who listens) is tested beside that adapter.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed check is a failed test")]

use crate::{Bus, BusError, Heard, Message, Subscription};
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
    // A server far away only says so where an answer is wanted.
    let inbox = bus.subscribe("_INBOX.suite.2", None).await.unwrap();
    let request = Message { reply: Some("_INBOX.suite.2".into()), ..Message::new("suite.nobody", "x") };
    assert_eq!(bus.publish(request).await.unwrap(), Heard::Nobody);
    drop(inbox);
}

pub async fn dropping_a_subscription_unsubscribes(bus: &dyn Bus) {
    let mut kept = bus.subscribe("suite.drop", Some("group")).await.unwrap();
    let dropped = bus.subscribe("suite.drop", Some("group")).await.unwrap();
    drop(dropped);
    for payload in ["one", "two", "three"] {
        publish(bus, "suite.drop", payload).await;
        assert_eq!(next(&mut kept).await.1, payload, "the one that stayed gets everything");
    }
}

pub async fn a_bad_subject_is_refused(bus: &dyn Bus) {
    for subject in ["", "suite..bad", "suite.bad subject", "suite.*"] {
        let outcome = bus.publish(Message::new(subject, "")).await;
        assert!(matches!(outcome, Err(BusError::BadSubject(_))), "{subject:?}: {outcome:?}");
    }
    assert!(bus.subscribe("suite.>.bad", None).await.is_err());
}

async fn publish(bus: &dyn Bus, subject: &str, payload: &str) -> Heard {
    bus.publish(Message::new(subject, payload.to_owned())).await.unwrap()
}

async fn receive(subscription: &mut Subscription) -> Message {
    let arrival = tokio::time::timeout(ARRIVAL_MAX, subscription.messages.recv()).await;
    arrival.expect("a message arrives in time").expect("the subscription is open")
}

async fn next(subscription: &mut Subscription) -> (String, String) {
    let message = receive(subscription).await;
    (message.subject, String::from_utf8_lossy(&message.payload).into_owned())
}
