//! Whether a subscriber received a message.

use super::{foreign_client, next, open, publish, soon};
use futures_util::StreamExt;
use futures_util::future::join_all;
use reveille_bus::{Bus, DeliveryReport, Message};
use reveille_test_servers::Nats;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_thousands_at_once_each_is_told_whether_it_was_heard() {
    const AT_ONCE: usize = 3_000;
    let nats = Nats::start();
    let bus = open(&nats).await;
    let worker = foreign_client(&nats).await;
    let mut listening = Vec::new();
    for number in (0..AT_ONCE).step_by(2) {
        listening.push(worker.subscribe(format!("worker.{number}.jobs")).await.unwrap());
    }
    // The server has handled the last of them, so it has handled all.
    let mut ready = worker.subscribe("ready").await.unwrap();
    worker.publish("ready", "".into()).await.unwrap();
    soon(ready.next()).await.unwrap();

    let asked = (0..AT_ONCE).map(|number| {
        let bus = bus.clone();
        tokio::spawn(async move { publish(&bus, &format!("worker.{number}.jobs"), "job").await })
    });
    for (number, heard) in join_all(asked).await.into_iter().enumerate() {
        let expected =
            if number % 2 == 0 { DeliveryReport::Somebody { by: None } } else { DeliveryReport::Nobody };
        assert_eq!(heard.unwrap(), expected, "worker {number}");
    }
    for jobs in &mut listening {
        assert_eq!(soon(jobs.next()).await.unwrap().payload, "job");
    }
}

#[tokio::test]
async fn a_worker_that_leaves_is_not_heard_any_more() {
    let nats = Nats::start();
    let bus = open(&nats).await;
    let worker = foreign_client(&nats).await;
    let jobs = worker.queue_subscribe("job.echo", "job.echo".into()).await.unwrap();
    worker.flush().await.unwrap();
    soon(async { while publish(&bus, "job.echo", "x").await == DeliveryReport::Nobody {} }).await;
    drop((jobs, worker));
    soon(async { while publish(&bus, "job.echo", "x").await != DeliveryReport::Nobody {} }).await;
}

#[tokio::test]
async fn a_worker_that_answers_has_heard() {
    let nats = Nats::start();
    let bus = open(&nats).await;
    let worker = foreign_client(&nats).await;
    let mut jobs = worker.subscribe("worker.w.jobs").await.unwrap();
    worker.flush().await.unwrap();
    tokio::spawn(async move {
        while let Some(job) = jobs.next().await {
            worker.publish(job.reply.unwrap(), "got it".into()).await.unwrap();
        }
    });
    soon(async { while publish(&bus, "worker.w.jobs", "x").await == DeliveryReport::Nobody {} }).await;
    for _ in 0..100 {
        assert_eq!(publish(&bus, "worker.w.jobs", "x").await, DeliveryReport::Somebody { by: None });
    }
}

#[tokio::test]
async fn whoever_asks_is_told_by_the_server_that_nobody_listens() {
    let nats = Nats::start();
    let bus = open(&nats).await;
    let mut inbox = bus.subscribe("_INBOX.ask", None).await.unwrap();
    let request = Message { reply: Some("_INBOX.ask".to_owned()), ..Message::new("nobody", "x") };
    soon(bus.publish(request)).await.unwrap();
    assert_eq!(next(&mut inbox).await.message.headers.unwrap(), "NATS/1.0 503\r\n\r\n");
}
