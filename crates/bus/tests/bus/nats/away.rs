//! A server that dies and comes back.

use super::{SUBMIT, next, open, publish, soon, streams, text, wait_for_link};
use reveille_bus::{Bus, BusError, DeliveryReport, Message, NatsLink};
use reveille_test_servers::Nats;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::mpsc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_kept_is_delivered_though_the_server_was_killed() {
    const MESSAGES: usize = 500;
    let mut nats = Nats::start();
    let bus = open(&nats).await;
    let mut jobs = bus.subscribe(SUBMIT, Some("q")).await.unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(delivery) = jobs.recv().await {
            tell.send(text(&delivery)).unwrap();
            delivery.ack.done();
        }
    });
    let publisher = tokio::spawn({
        let bus = bus.clone();
        async move {
            let mut promised = BTreeSet::new();
            let mut number = 0;
            while promised.len() < MESSAGES {
                number += 1;
                let name = format!("job {number}");
                match bus.publish(Message::new(SUBMIT, name.clone())).await {
                    Ok(_) => drop(promised.insert(name)),
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
            promised
        }
    });
    let mut got = BTreeSet::new();
    while got.len() < MESSAGES / 4 {
        got.insert(soon(told.recv()).await.unwrap());
    }
    tokio::task::block_in_place(|| nats.server().kill());
    wait_for_link(&bus, NatsLink::Away).await;
    tokio::task::block_in_place(|| nats.server().restart());
    let promised = soon(publisher).await.unwrap();
    while !got.is_superset(&promised) {
        got.insert(soon(told.recv()).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_come_back_with_the_server() {
    let mut nats = Nats::start();
    let bus = open(&nats).await;
    let mut beats = bus.subscribe("sys.heartbeat", None).await.unwrap();
    let mut jobs = bus.subscribe(SUBMIT, Some("q")).await.unwrap();
    assert!(bus.is_connected());
    publish(&bus, "sys.heartbeat", "before").await;
    assert_eq!(text(&next(&mut beats).await), "before");

    tokio::task::block_in_place(|| nats.server().kill());
    wait_for_link(&bus, NatsLink::Away).await;
    assert!(!bus.is_connected());
    for subject in ["sys.heartbeat", SUBMIT] {
        let outcome = soon(bus.publish(Message::new(subject, "lost"))).await;
        assert!(matches!(outcome, Err(BusError::Unavailable(_))), "{subject}: {outcome:?}");
    }

    tokio::task::block_in_place(|| nats.server().restart());
    wait_for_link(&bus, NatsLink::Connected).await;
    publish(&bus, "sys.heartbeat", "after").await;
    assert_eq!(text(&next(&mut beats).await), "after");
    soon(async { while bus.publish(Message::new(SUBMIT, "job")).await.is_err() {} }).await;
    let job = next(&mut jobs).await;
    assert_eq!(text(&job), "job");
    job.ack.done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_answering_is_away_for_publishers() {
    let mut nats = Nats::start();
    let bus = open(&nats).await;
    nats.server().stop();
    // One of its threads may still get something done before it stops.
    soon(async { while bus.publish(Message::new("worker.w.jobs", "x")).await.is_ok() {} }).await;
    for subject in ["worker.w.jobs", SUBMIT] {
        let outcome = soon(bus.publish(Message::new(subject, "x"))).await;
        assert!(matches!(outcome, Err(BusError::Unavailable(_))), "{subject}: {outcome:?}");
    }
    nats.server().go_on();
    let nobody = |outcome| matches!(outcome, Ok(DeliveryReport::Nobody));
    soon(async { while !nobody(bus.publish(Message::new("worker.w.jobs", "x")).await) {} }).await;
}

#[tokio::test]
async fn a_consumer_that_somebody_deletes_is_made_again() {
    let nats = Nats::start();
    let bus = open(&nats).await;
    let mut jobs = bus.subscribe(SUBMIT, Some("q")).await.unwrap();
    publish(&bus, SUBMIT, "one").await;
    next(&mut jobs).await.ack.done();
    bus.flush().await.unwrap();
    let stream = streams(&nats).await.get_stream("CORDUM_SYS").await.unwrap();
    stream.delete_consumer("dur_q__sys_job_submit").await.unwrap();
    publish(&bus, SUBMIT, "two").await;
    assert_eq!(text(&next(&mut jobs).await), "two");
}
