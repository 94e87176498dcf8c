//! Measurements, run by hand: `cargo test --release -p reveille-doors -- --ignored --nocapture throughput`.

use crate::support::{Door, Raw};
use reveille_bus::{Bus, Message};
use std::time::Instant;

const MESSAGES: usize = 500_000;

fn report(what: &str, count: usize, began: Instant) {
    println!("{what}: {:.0} per second", count as f64 / began.elapsed().as_secs_f64());
}

#[tokio::test]
#[ignore = "a measurement"]
async fn from_a_client_to_us() {
    let door = Door::open_nats().await;
    let mut ours = door.bus.subscribe("sys.heartbeat", None).await.unwrap();
    let mut client = Raw::nats(&door, "{}").await;
    let beat = format!("PUB sys.heartbeat 64\r\n{}\r\n", "x".repeat(64));
    let began = Instant::now();
    tokio::spawn(async move {
        let burst = beat.repeat(100);
        for _ in 0..MESSAGES / 100 {
            client.send(&burst).await;
        }
        client.rest().await;
    });
    for _ in 0..MESSAGES {
        ours.recv().await.unwrap();
    }
    report("client to us", MESSAGES, began);
}

#[tokio::test]
#[ignore = "a measurement"]
async fn from_us_to_a_client() {
    let door = Door::open_nats().await;
    let mut client = Raw::nats(&door, "{}").await;
    client.send("SUB worker.w.jobs 1\r\n").await;
    client.sync().await;
    let expected = format!("MSG worker.w.jobs 1 64\r\n{}\r\n", "x".repeat(64)).repeat(1000);
    let payload = bytes::Bytes::from("x".repeat(64));
    let began = Instant::now();
    for _ in 0..MESSAGES / 1000 {
        for _ in 0..1000 {
            door.bus.publish(Message::new("worker.w.jobs", payload.clone())).await.unwrap();
        }
        client.expect(&expected).await;
    }
    report("us to a client", MESSAGES, began);
}

#[tokio::test]
#[ignore = "a measurement"]
async fn request_and_reply_between_two_clients() {
    const REQUESTS: usize = 20_000;
    let door = Door::open_nats().await;
    let mut service = Raw::nats(&door, "{}").await;
    service.send("SUB svc 1\r\n").await;
    service.sync().await;
    let mut asker = Raw::nats(&door, "{}").await;
    asker.send("SUB _INBOX.a 1\r\n").await;
    let began = Instant::now();
    for _ in 0..REQUESTS {
        asker.send("PUB svc _INBOX.a 2\r\nhi\r\n").await;
        service.expect("MSG svc 1 _INBOX.a 2\r\nhi\r\n").await;
        service.send("PUB _INBOX.a 2\r\nho\r\n").await;
        asker.expect("MSG _INBOX.a 1 2\r\nho\r\n").await;
    }
    report("round trips, one at a time", REQUESTS, began);
}

#[tokio::test]
#[ignore = "a measurement"]
async fn pipelined_blob_commands() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    let value = "v".repeat(256);
    let sets: String =
        (0..64).map(|n| format!("*3\r\n$3\r\nSET\r\n$6\r\nres:{n:02}\r\n$256\r\n{value}\r\n")).collect();
    let gets: String = (0..64).map(|n| format!("*2\r\n$3\r\nGET\r\n$6\r\nres:{n:02}\r\n")).collect();
    let (stored, got) = ("+OK\r\n".repeat(64), format!("$256\r\n{value}\r\n").repeat(64));
    let began = Instant::now();
    for _ in 0..MESSAGES / 128 {
        client.ask(&sets, &stored).await;
        client.ask(&gets, &got).await;
    }
    report("blob commands", MESSAGES, began);
}
