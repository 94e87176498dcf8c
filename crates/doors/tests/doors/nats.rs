//! The NATS door, byte for byte.

use crate::support::{Door, Locked, Raw, open};
use reveille_bus::{Bus, DeliveryReport, Message, MessageOrigin, MessageSender};
use reveille_core::id::{KeyId, TenantId};
use reveille_doors::nats::NatsLimits;

/// Who heard it: a name, or nothing if nobody or several did.
async fn publish(door: &Door, subject: &str, payload: &str) -> Option<String> {
    match door.bus.publish(Message::new(subject, payload.to_owned())).await.unwrap() {
        DeliveryReport::Somebody { by } => by?.name,
        DeliveryReport::Nobody => None,
    }
}

#[tokio::test]
async fn a_message_travels_from_client_to_client_byte_by_byte() {
    let door = Door::open_nats().await;
    let mut listener = Raw::nats(&door, "{}").await;
    listener.send_byte_by_byte("SUB job.* 9\r\n").await;
    listener.sync().await;
    let mut publisher = Raw::connect(&door).await;
    publisher.line().await;
    publisher.send_byte_by_byte("PUB job.echo _INBOX.7 5\r\nhello\r\nPUB job.echo 0\r\n\r\n").await;
    listener.expect("MSG job.echo 9 _INBOX.7 5\r\nhello\r\nMSG job.echo 9 0\r\n\r\n").await;
}

#[tokio::test]
async fn what_clients_publish_reaches_us_with_their_tenant_and_key() {
    let door = Door::nats(Locked, NatsLimits::default()).await;
    let mut ours = door.bus.subscribe("sys.>", None).await.unwrap();
    let mut client = Raw::nats(&door, r#"{"auth_token":"right"}"#).await;
    client.send("HPUB sys.heartbeat 12 14\r\nNATS/1.0\r\n\r\nhi\r\n").await;
    let message = ours.recv().await.unwrap().message;
    let sender = MessageSender { tenant: TenantId::known("acme"), key: Some(KeyId::known("right")) };
    assert_eq!(message.origin, MessageOrigin::Worker(sender));
    assert_eq!(message.headers.unwrap(), "NATS/1.0\r\n\r\n");
    assert_eq!(message.payload, "hi");
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_the_right_one_is_not() {
    let door = Door::nats(Locked, NatsLimits::default()).await;
    let mut client = Raw::connect(&door).await;
    assert!(client.line().await.contains(r#""auth_required":true"#));
    client.send("CONNECT {\"user\":\"u\",\"pass\":\"wrong\"}\r\n").await;
    assert_eq!(client.rest().await, "-ERR 'Authorization Violation'\r\n");
    Raw::nats(&door, r#"{"user":"u","pass":"right"}"#).await;
}

#[tokio::test]
async fn a_queue_group_shares_and_a_gone_member_does_not_count() {
    let door = Door::open_nats().await;
    let mut one = Raw::nats(&door, r#"{"name":"one"}"#).await;
    let mut two = Raw::nats(&door, r#"{"name":"two"}"#).await;
    for client in [&mut one, &mut two] {
        client.send("SUB job.echo workers 1\r\n").await;
        client.sync().await;
    }
    let turns = [publish(&door, "job.echo", "a").await, publish(&door, "job.echo", "b").await];
    assert_eq!(turns, [Some("one".to_owned()), Some("two".to_owned())]);
    one.expect("MSG job.echo 1 1\r\na\r\n").await;
    two.expect("MSG job.echo 1 1\r\nb\r\n").await;
    drop(one);
    while door.bus.listeners_changed().await.iter().all(|listener| !listener.subjects.is_empty()) {}
    assert_eq!(publish(&door, "job.echo", "c").await, Some("two".to_owned()));
    assert_eq!(publish(&door, "job.echo", "d").await, Some("two".to_owned()));
}

#[tokio::test]
async fn a_request_is_answered_and_one_that_nobody_hears_gets_503() {
    let door = Door::open_nats().await;
    let mut service = Raw::nats(&door, "{}").await;
    service.send("SUB svc 1\r\n").await;
    service.sync().await;
    let mut asker = Raw::nats(&door, r#"{"headers":true,"no_responders":true}"#).await;
    asker.send("SUB _INBOX.a.* 4\r\nPUB svc _INBOX.a.1 3\r\nask\r\n").await;
    service.expect("MSG svc 1 _INBOX.a.1 3\r\nask\r\n").await;
    service.send("PUB _INBOX.a.1 6\r\nanswer\r\n").await;
    asker.expect("MSG _INBOX.a.1 4 6\r\nanswer\r\n").await;
    asker
        .ask("PUB nobody _INBOX.a.2 1\r\nx\r\n", "HMSG _INBOX.a.2 4 16 16\r\nNATS/1.0 503\r\n\r\n\r\n")
        .await;

    let mut plain = Raw::nats(&door, "{}").await;
    plain.send("SUB _INBOX.b 4\r\nPUB nobody _INBOX.b 1\r\nx\r\n").await;
    plain.ask("PING\r\n", "PONG\r\n").await;
}

#[tokio::test]
async fn nobody_can_make_the_door_speak_to_others() {
    let door = Door::open_nats().await;
    let mut ours = door.bus.subscribe("sys.job.submit", None).await.unwrap();
    let mut client = Raw::nats(&door, r#"{"headers":true,"no_responders":true}"#).await;
    client.send("PUB nobody sys.job.submit 1\r\nx\r\n").await;
    client.sync().await;
    assert!(ours.try_recv().is_none(), "the 503 goes to who asked, not to where it points");
}

#[tokio::test]
async fn headers_reach_those_who_understand_them() {
    let door = Door::open_nats().await;
    let mut modern = Raw::nats(&door, r#"{"headers":true}"#).await;
    let mut plain = Raw::nats(&door, "{}").await;
    for client in [&mut modern, &mut plain] {
        client.send("SUB a 1\r\n").await;
        client.sync().await;
    }
    modern.send("HPUB a r 18 20\r\nNATS/1.0\r\nK: v\r\n\r\nhi\r\n").await;
    modern.expect("HMSG a 1 r 18 20\r\nNATS/1.0\r\nK: v\r\n\r\nhi\r\n").await;
    plain.expect("MSG a 1 r 2\r\nhi\r\n").await;
}

#[tokio::test]
async fn verbose_clients_are_told_that_all_is_well() {
    let door = Door::open_nats().await;
    let mut client = Raw::connect(&door).await;
    client.line().await;
    client.ask("CONNECT {\"verbose\":true}\r\n", "+OK\r\n").await;
    client.ask("SUB a 1\r\n", "+OK\r\n").await;
    client.ask("PUB b 0\r\n\r\n", "+OK\r\n").await;
    client.ask("UNSUB 1\r\n", "+OK\r\n").await;
    client.ask("PING\r\n", "PONG\r\n").await;
    client.ask("SUB a..b 1\r\n", "-ERR 'Invalid Subject'\r\n").await;
}

#[tokio::test]
async fn a_subscription_can_end_by_itself() {
    let door = Door::open_nats().await;
    let mut client = Raw::nats(&door, "{}").await;
    client.send("SUB a 1\r\nUNSUB 1 2\r\nPUB a 1\r\n1\r\nPUB a 1\r\n2\r\nPUB a 1\r\n3\r\nPING\r\n").await;
    client.expect("MSG a 1 1\r\n1\r\nMSG a 1 1\r\n2\r\nPONG\r\n").await;
}

#[tokio::test]
async fn without_echo_a_client_does_not_hear_itself() {
    let door = Door::open_nats().await;
    let mut client = Raw::nats(&door, r#"{"echo":false}"#).await;
    client.ask("SUB a 1\r\nPUB a 1\r\nx\r\nPING\r\n", "PONG\r\n").await;
}

#[tokio::test]
async fn a_bad_subject_does_not_end_the_connection() {
    let door = Door::open_nats().await;
    let mut client = Raw::nats(&door, "{}").await;
    client.ask("SUB a.>.b 1\r\n", "-ERR 'Invalid Subject'\r\n").await;
    client.ask("PUB a.* 1\r\nx\r\n", "-ERR 'Invalid Publish Subject'\r\n").await;
    client.ask("PUB a r..r 1\r\nx\r\n", "-ERR 'Invalid Publish Subject'\r\n").await;
    client.ask("PING\r\n", "PONG\r\n").await;
}

#[tokio::test]
async fn violations_end_it_in_the_words_of_nats() {
    let door = Door::open_nats().await;
    let long_line = format!("SUB {}", "a".repeat(5000));
    for (input, words) in [
        ("GET / HTTP/1.1\r\n", "Unknown Protocol Operation"),
        ("PUB a 1048577\r\n", "Maximum Payload Violation"),
        (&long_line, "Maximum Control Line Exceeded"),
        ("PUB a 1\r\nxyz", "Unknown Protocol Operation"),
    ] {
        let mut client = Raw::nats(&door, "{}").await;
        client.send(input).await;
        assert_eq!(client.rest().await, format!("-ERR '{words}'\r\n"), "{input:.20}");
    }
}

#[tokio::test]
async fn a_client_reads_why_even_if_it_had_more_to_say() {
    let door = Door::open_nats().await;
    let mut client = Raw::nats(&door, "{}").await;
    client.send(format!("PUB a 2000000\r\n{}\r\n", "x".repeat(2_000_000))).await;
    assert_eq!(client.rest().await, "-ERR 'Maximum Payload Violation'\r\n");
}

#[tokio::test]
async fn the_largest_message_passes() {
    let door = Door::open_nats().await;
    let mut ours = door.bus.subscribe("big", None).await.unwrap();
    let mut client = Raw::nats(&door, "{}").await;
    client.send(format!("PUB big 1048576\r\n{}\r\n", "x".repeat(1_048_576))).await;
    assert_eq!(ours.recv().await.unwrap().message.payload.len(), 1_048_576);
}

#[tokio::test]
async fn subscriptions_and_connections_are_limited() {
    let limits = NatsLimits { connections_max: 1, subscriptions_max: 2, ..NatsLimits::default() };
    let door = Door::nats(open(), limits).await;
    let mut client = Raw::nats(&door, "{}").await;
    client.send("SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n").await;
    client.expect("-ERR 'maximum subscriptions exceeded'\r\n").await;
    client.ask("UNSUB 1\r\nSUB c 3\r\nPUB c 0\r\n\r\n", "MSG c 3 0\r\n\r\n").await;
    let mut second = Raw::connect(&door).await;
    assert_eq!(second.rest().await, "-ERR 'maximum connections exceeded'\r\n");
}

#[tokio::test]
async fn a_slow_consumer_is_cut_off_and_the_others_go_on() {
    let door = Door::nats(open(), NatsLimits { outbox_len_max: 256 * 1024, ..NatsLimits::default() }).await;
    let mut slow = Raw::nats(&door, r#"{"name":"slow"}"#).await;
    let mut good = Raw::nats(&door, r#"{"name":"good"}"#).await;
    for client in [&mut slow, &mut good] {
        client.send("SUB flood 1\r\n").await;
        client.sync().await;
    }
    let payload = "x".repeat(64 * 1024);
    let message = format!("MSG flood 1 65536\r\n{payload}\r\n");
    while publish(&door, "flood", &payload).await != Some("good".to_owned()) {
        good.expect(&message).await;
    }
    good.expect(&message).await;
    let received = slow.rest().await;
    assert!(received.ends_with("\r\n-ERR 'Slow Consumer'\r\n"), "…{}", &received[received.len() - 40..]);
    assert_eq!(publish(&door, "flood", "on").await, Some("good".to_owned()));
    good.expect("MSG flood 1 2\r\non\r\n").await;
}

#[tokio::test]
async fn who_listens_where_is_known_and_a_name_may_come_late() {
    let door = Door::open_nats().await;
    let mut client = Raw::connect(&door).await;
    client.line().await;
    client.send("SUB worker.w1.jobs 1\r\nSUB _INBOX.x 2\r\n").await;
    client.sync().await;
    let listeners = door.bus.listeners_changed().await;
    assert_eq!(listeners[0].name, None);
    assert_eq!(listeners[0].subjects, ["worker.w1.jobs"]);
    client.send("CONNECT {\"name\":\"w1\"}\r\n").await;
    client.sync().await;
    assert_eq!(door.bus.listeners_changed().await[0].name.as_deref(), Some("w1"));
    assert_eq!(publish(&door, "worker.w1.jobs", "x").await, Some("w1".to_owned()));
}

#[tokio::test]
async fn a_closing_door_lets_what_waits_be_written() {
    let door = Door::open_nats().await;
    let mut client = Raw::nats(&door, "{}").await;
    client.send("SUB a 1\r\n").await;
    client.sync().await;
    publish(&door, "a", "last").await;
    door.close().await;
    assert_eq!(client.rest().await, "MSG a 1 4\r\nlast\r\n");
}

#[tokio::test]
async fn a_submitter_can_neither_listen_in_nor_speak_as_a_worker() {
    let door = Door::nats(Locked, NatsLimits::default()).await;
    let mut submits = door.bus.subscribe("sys.job.submit", None).await.unwrap();
    let mut client = Raw::nats(&door, r#"{"auth_token":"submitter"}"#).await;
    client.send("SUB worker.> 1\r\n").await;
    client.expect("-ERR 'Permissions Violation for Subscription to \"worker.>\"'\r\n").await;
    client.send("PUB sys.job.result 1\r\nx\r\n").await;
    client.expect("-ERR 'Permissions Violation for Publish to \"sys.job.result\"'\r\n").await;
    client.send("SUB _INBOX.me.* 2\r\nPUB sys.job.submit 1\r\ny\r\n").await;
    assert_eq!(submits.recv().await.unwrap().message.payload, "y");
}
