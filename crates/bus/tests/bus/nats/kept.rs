//! Kept messages: what causes redelivery, and what does not.

use super::{BACKOFF, RESULT, SOON, SUBMIT, kept, next, open, options, publish, soon, streams, text};
use reveille_bus::{Bus, DeliveryReport, NatsBus, NatsOptions};
use reveille_test_servers::Nats;
use std::time::Duration;
use tokio::sync::mpsc;

#[tokio::test]
async fn what_nobody_answered_for_comes_back() {
    let nats = Nats::start();
    let bus = open(&nats).await;
    publish(&bus, SUBMIT, "job").await;
    let mut jobs = bus.subscribe(SUBMIT, Some("q")).await.unwrap();
    for delivered in 1..=3 {
        let delivery = next(&mut jobs).await;
        assert_eq!((text(&delivery).as_str(), delivery.from.as_ref().unwrap().delivered), ("job", delivered));
        drop(delivery);
    }
    next(&mut jobs).await.ack.done();
    kept(&nats, &bus, 0).await;
}

#[tokio::test]
async fn what_takes_its_time_is_not_handed_to_another() {
    let nats = Nats::start();
    let (bus, other) = (open(&nats).await, open(&nats).await);
    let mut jobs = bus.subscribe(SUBMIT, Some("q")).await.unwrap();
    publish(&bus, SUBMIT, "long").await;
    let long = next(&mut jobs).await;
    drop(jobs);
    let mut elsewhere = other.subscribe(SUBMIT, Some("q")).await.unwrap();
    // Two that nobody acknowledges are redelivered, one ack wait after the other, and it is not.
    for round in 1..=2 {
        publish(&bus, SUBMIT, format!("short {round}")).await;
        let first = next(&mut elsewhere).await;
        assert_eq!((text(&first), first.from.as_ref().unwrap().delivered), (format!("short {round}"), 1));
        drop(first);
        let again = next(&mut elsewhere).await;
        assert_eq!((text(&again), again.from.as_ref().unwrap().delivered), (format!("short {round}"), 2));
        again.ack.done();
    }
    long.ack.done();
    kept(&nats, &bus, 0).await;
}

#[tokio::test]
async fn what_is_ended_or_done_is_gone_and_what_is_put_off_is_not() {
    let nats = Nats::start();
    let bus = open(&nats).await;
    let mut jobs = bus.subscribe(SUBMIT, Some("q")).await.unwrap();
    for payload in ["done", "ended", "later"] {
        publish(&bus, SUBMIT, payload).await;
    }
    for _ in 0..3 {
        let delivery = next(&mut jobs).await;
        match text(&delivery).as_str() {
            "done" => delivery.ack.done(),
            "ended" => delivery.ack.end(),
            _ => delivery.ack.later(Duration::from_hours(1)),
        }
    }
    kept(&nats, &bus, 1).await;
    assert!(jobs.try_recv().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_share_a_durable_and_none_gets_the_others() {
    const MESSAGES: usize = 2_000;
    let nats = Nats::start();
    let usual = || NatsOptions { backoff: vec![SOON], ..options(&nats) };
    let (first, second) = (NatsBus::open(usual()).await.unwrap(), NatsBus::open(usual()).await.unwrap());
    let (tell, mut told) = mpsc::unbounded_channel();
    for (name, bus) in [(1, &first), (2, &second)] {
        let mut results = bus.subscribe(RESULT, Some("cordum-scheduler")).await.unwrap();
        let tell = tell.clone();
        tokio::spawn(async move {
            while let Some(delivery) = results.recv().await {
                tell.send((text(&delivery).parse::<usize>().unwrap(), name)).unwrap();
                delivery.ack.done();
            }
        });
    }
    let publishers = (0..MESSAGES).map(|number| {
        let bus = first.clone();
        tokio::spawn(async move { publish(&bus, RESULT, number.to_string()).await })
    });
    for heard in futures_util::future::join_all(publishers).await {
        assert_eq!(heard.unwrap(), DeliveryReport::Somebody { by: None });
    }
    let mut got = Vec::new();
    while got.len() < MESSAGES {
        got.push(soon(told.recv()).await.unwrap());
    }
    assert!(got.iter().any(|(_, name)| *name == 1) && got.iter().any(|(_, name)| *name == 2));
    let mut numbers: Vec<_> = got.into_iter().map(|(number, _)| number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..MESSAGES).collect::<Vec<_>>(), "each reached exactly one of them");
    kept(&nats, &first, 0).await;
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn a_consumer_with_older_settings_is_brought_up_to_date() {
    let nats = Nats::start();
    let bus = open(&nats).await;
    publish(&bus, SUBMIT, "job").await;
    drop(bus.subscribe(SUBMIT, Some("q")).await.unwrap());
    let newer = NatsOptions { backoff: vec![BACKOFF * 2, BACKOFF * 4], ..options(&nats) };
    let newer = NatsBus::open(newer).await.unwrap();
    let mut jobs = newer.subscribe(SUBMIT, Some("q")).await.unwrap();
    let stream = streams(&nats).await.get_stream("CORDUM_SYS").await.unwrap();
    let consumer = stream.consumer_info("dur_q__sys_job_submit").await.unwrap();
    assert_eq!(consumer.config.backoff, [BACKOFF * 2, BACKOFF * 4]);
    assert_eq!(text(&next(&mut jobs).await), "job");
}

#[tokio::test]
async fn submits_and_results_do_not_hold_each_other_up() {
    let nats = Nats::start();
    let bus = open(&nats).await;
    let mut results = bus.subscribe(RESULT, Some("q")).await.unwrap();
    // Nobody takes the jobs; the results arrive all the same.
    let _jobs = bus.subscribe(SUBMIT, Some("q")).await.unwrap();
    for number in 0..1_000 {
        publish(&bus, SUBMIT, number.to_string()).await;
    }
    publish(&bus, RESULT, "result").await;
    let result = next(&mut results).await;
    assert_eq!(text(&result), "result");
    let key = result.from.clone().unwrap();
    assert_eq!((&*key.stream, &*key.durable), ("CORDUM_SYS", "dur_q__sys_job_result"));
}

#[tokio::test]
async fn what_waits_here_is_given_back_when_we_leave() {
    const MESSAGES: usize = 300;
    let nats = Nats::start();
    // An ack wait that outlasts the test: whatever is redelivered was released.
    let usual = || NatsOptions { backoff: vec![SOON * 10], ..options(&nats) };
    let (bus, other) = (NatsBus::open(usual()).await.unwrap(), NatsBus::open(usual()).await.unwrap());
    let jobs = bus.subscribe(SUBMIT, Some("q")).await.unwrap();
    for number in 0..MESSAGES {
        publish(&bus, SUBMIT, number.to_string()).await;
    }
    soon(async {
        while jobs.waiting() < 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(jobs);
    let mut elsewhere = other.subscribe(SUBMIT, Some("q")).await.unwrap();
    let mut numbers = Vec::new();
    for _ in 0..MESSAGES {
        let delivery = next(&mut elsewhere).await;
        numbers.push(text(&delivery).parse::<usize>().unwrap());
        delivery.ack.done();
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..MESSAGES).collect::<Vec<_>>());
}
