//! Workers whose role is limited: what they hear, what they may say, and which blobs they have.

use crate::memory_blobs::MemoryBlobs;
use crate::support::{Door, Limited, Raw};
use reveille_bus::{Bus, DeliveryReport, Message, MessageOrigin, MessageSender};
use reveille_core::id::{KeyId, TenantId};
use reveille_doors::nats::NatsLimits;
use reveille_doors::resp::RespLimits;

const CONNECT: &str = r#"{"auth_token":"limited"}"#;

#[tokio::test]
async fn a_limited_worker_listens_on_its_topics_and_as_itself_alone() {
    let door = Door::nats(Limited, NatsLimits::default()).await;
    let mut client = Raw::nats(&door, CONNECT).await;
    for subject in ["job.pay", "job.>", ">", "worker.w2.jobs", "worker.*.jobs", "sys.job.result"] {
        client.send(&format!("SUB {subject} 9\r\n")).await;
        let refusal = format!("-ERR 'Permissions Violation for Subscription to \"{subject}\"'\r\n");
        client.expect(&refusal).await;
    }
    client.send("SUB worker.w1.jobs 1\r\nSUB job.echo job.echo 2\r\n").await;
    client.sync().await;
    let (ours, theirs) = (TenantId::known("acme"), TenantId::known("beta"));
    for subject in ["worker.w1.jobs", "job.echo"] {
        let message = Message::new(subject, "secret").about(&theirs);
        assert_eq!(door.bus.publish(message).await.unwrap(), DeliveryReport::Nobody, "{subject}");
    }
    door.bus.publish(Message::new("worker.w1.jobs", "x").about(&ours)).await.unwrap();
    client.expect("MSG worker.w1.jobs 1 1\r\nx\r\n").await;
}

#[tokio::test]
async fn a_limited_worker_reports_in_its_own_name_and_submits_nothing() {
    let door = Door::nats(Limited, NatsLimits::default()).await;
    let mut results = door.bus.subscribe("sys.job.result", None).await.unwrap();
    let mut client = Raw::nats(&door, CONNECT).await;
    for subject in ["sys.job.submit", "sys.job.cancel", "job.echo", "worker.w1.jobs"] {
        client.send(&format!("PUB {subject} 1\r\nx\r\n")).await;
        client.expect(&format!("-ERR 'Permissions Violation for Publish to \"{subject}\"'\r\n")).await;
    }
    client.send("PUB sys.job.result 1\r\ny\r\n").await;
    let sender = MessageSender { tenant: TenantId::known("acme"), key: Some(KeyId::known("limited")) };
    let result = results.recv().await.unwrap().message;
    assert_eq!(result.origin, MessageOrigin::Client(sender), "it is not trusted with every tenant's jobs");
}

#[tokio::test]
async fn a_limited_worker_has_the_blobs_that_the_gate_gives_it() {
    let blobs = MemoryBlobs::default();
    blobs.insert("ctx:theirs", "secret");
    let door = Door::resp(Limited, blobs, RespLimits::default()).await;
    let mut client = Raw::connect(&door).await;
    client.ask("AUTH limited\r\n", "+OK\r\n").await;
    client.ask("GET ctx:own\r\n", "$5\r\ninput\r\n").await;
    client.ask("GET ctx:theirs\r\n", "$-1\r\n").await;
}
