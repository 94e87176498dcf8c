//! A connection ends with the key that opened it.

use crate::memory_blobs::MemoryBlobs;
use crate::support::{Door, EndingKey, Raw};
use futures_util::StreamExt;
use redis::AsyncCommands;
use reveille_bus::{Bus, DeliveryReport, Message};
use reveille_doors::Standing;
use reveille_doors::nats::NatsLimits;
use reveille_doors::resp::RespLimits;
use std::time::{Duration, Instant};

/// How long a session may outlive its key.
const SESSION_END_MAX: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_nats_client_is_cut_off_when_its_key_ends() {
    for (standing, words) in [
        (Standing::Revoked, "-ERR 'Authorization Violation'\r\n"),
        (Standing::Expired, "-ERR 'User Authentication Expired'\r\n"),
    ] {
        let key = EndingKey::valid();
        let door = Door::nats(key.clone(), NatsLimits::default()).await;
        let mut client = Raw::nats(&door, r#"{"auth_token":"right"}"#).await;
        client.send("SUB worker.w.jobs 1\r\n").await;
        client.sync().await;
        key.end(standing);
        let ended = Instant::now();
        assert_eq!(client.rest().await, words);
        assert!(ended.elapsed() < SESSION_END_MAX, "{:?}", ended.elapsed());
        let report = door.bus.publish(Message::new("worker.w.jobs", "job")).await.unwrap();
        assert!(matches!(report, DeliveryReport::Nobody), "it is given no more jobs: {report:?}");
    }
}

#[tokio::test]
async fn a_redis_client_is_cut_off_when_its_key_ends() {
    for (standing, words) in [
        (Standing::Revoked, "-NOAUTH the key of this connection was revoked\r\n"),
        (Standing::Expired, "-NOAUTH the key of this connection has expired\r\n"),
    ] {
        let key = EndingKey::valid();
        let door = Door::resp(key.clone(), MemoryBlobs::default(), RespLimits::default()).await;
        let mut client = Raw::connect(&door).await;
        client.ask("AUTH right\r\nSET ctx:1 x\r\n", "+OK\r\n+OK\r\n").await;
        key.end(standing);
        let ended = Instant::now();
        assert_eq!(client.rest().await, words);
        assert!(ended.elapsed() < SESSION_END_MAX, "{:?}", ended.elapsed());
    }
}

#[tokio::test]
async fn async_nats_is_given_no_more_jobs_when_its_key_is_revoked() {
    let key = EndingKey::valid();
    let door = Door::nats(key.clone(), NatsLimits::default()).await;
    let options = async_nats::ConnectOptions::new().token("right".into());
    let client = options.connect(door.address.to_string()).await.unwrap();
    let mut jobs = client.subscribe("worker.w.jobs").await.unwrap();
    let mut results = door.bus.subscribe("sys.job.result", None).await.unwrap();
    client.publish("sys.job.result", "first".into()).await.unwrap();
    assert_eq!(results.recv().await.unwrap().message.payload, "first");
    door.bus.publish(Message::new("worker.w.jobs", "job")).await.unwrap();
    assert_eq!(jobs.next().await.unwrap().payload, "job");

    key.end(Standing::Revoked);
    tokio::time::sleep(SESSION_END_MAX).await;
    let report = door.bus.publish(Message::new("worker.w.jobs", "job")).await.unwrap();
    assert!(matches!(report, DeliveryReport::Nobody), "{report:?}");
    // It tries to come back, and is not let in.
    let _ = client.publish("sys.job.result", "late".into()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(results.try_recv().is_none(), "its result does not count");
}

#[tokio::test]
async fn redis_reads_no_more_blobs_when_its_key_is_revoked() {
    let key = EndingKey::valid();
    let door = Door::resp(key.clone(), MemoryBlobs::default(), RespLimits::default()).await;
    let client = redis::Client::open(format!("redis://:right@{}", door.address)).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let (): () = connection.set("ctx:1", "hello").await.unwrap();
    key.end(Standing::Revoked);
    tokio::time::sleep(SESSION_END_MAX).await;
    assert!(connection.get::<_, Option<String>>("ctx:1").await.is_err());
}
