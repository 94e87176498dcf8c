//! Clients that have not shown a key yet: how much they may send, and how many places they may take.

use crate::memory_blobs::MemoryBlobs;
use crate::support::{Door, Locked, Raw};
use reveille_doors::nats::NatsLimits;
use reveille_doors::resp::RespLimits;
use std::time::{Duration, Instant};

/// Well before a client that shows no key is cut off for that.
const AT_ONCE: Duration = Duration::from_secs(3);

const RIGHT: &str = r#"{"auth_token":"right"}"#;

/// Twelve places, so three for strangers.
const CONNECTIONS_MAX: usize = 12;
const STRANGERS_MAX: usize = 3;

async fn small_nats_door() -> Door {
    Door::nats(Locked, NatsLimits { connections_max: CONNECTIONS_MAX, ..NatsLimits::default() }).await
}

async fn nats_stranger(door: &Door) -> Raw {
    let mut stranger = Raw::connect(door).await;
    let greeting = stranger.line().await;
    assert!(greeting.starts_with("INFO {"), "{greeting}");
    stranger
}

#[tokio::test]
async fn a_stranger_cannot_make_the_nats_door_hold_a_large_message() {
    let door = Door::nats(Locked, NatsLimits::default()).await;
    let mut stranger = Raw::connect(&door).await;
    assert!(stranger.line().await.contains(r#""max_payload":1048576"#));
    let began = Instant::now();
    stranger.send(format!("PUB a 1000000\r\n{}", "x".repeat(20_000))).await;
    assert_eq!(stranger.rest().await, "-ERR 'Authorization Violation'\r\n");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_guest_may_send_a_large_message_right_behind_its_key() {
    let door = Door::nats(Locked, NatsLimits::default()).await;
    let mut client = Raw::connect(&door).await;
    client.line().await;
    let payload = "x".repeat(1_000_000);
    client.send(format!("CONNECT {RIGHT}\r\nPUB a 1000000\r\n{payload}\r\nPING\r\n")).await;
    client.expect("PONG\r\n").await;

    let door = Door::resp(Locked, MemoryBlobs::default(), RespLimits::default()).await;
    let mut client = Raw::connect(&door).await;
    client
        .ask(
            &format!("AUTH right\r\n*3\r\n$3\r\nSET\r\n$5\r\nctx:1\r\n$1000000\r\n{payload}\r\n"),
            "+OK\r\n+OK\r\n",
        )
        .await;
}

#[tokio::test]
async fn a_stranger_may_not_go_on_talking_to_the_resp_door() {
    let door = Door::resp(Locked, MemoryBlobs::default(), RespLimits::default()).await;
    let mut stranger = Raw::connect(&door).await;
    let began = Instant::now();
    stranger.send("PING\r\n".repeat(1000)).await;
    let answers = stranger.rest().await;
    let goodbye = "-ERR too many commands before authentication\r\n";
    assert_eq!(answers, "-NOAUTH Authentication required.\r\n".repeat(16) + goodbye);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

#[tokio::test]
async fn the_oldest_stranger_makes_room_for_the_next() {
    let door = small_nats_door().await;
    let mut guest = Raw::nats(&door, RIGHT).await;
    let mut oldest = nats_stranger(&door).await;
    let mut others = Vec::new();
    let began = Instant::now();
    for _ in 0..STRANGERS_MAX {
        others.push(nats_stranger(&door).await);
    }
    assert_eq!(oldest.rest().await, "");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    for stranger in &mut others {
        stranger.ask(&format!("CONNECT {RIGHT}\r\nPING\r\n"), "PONG\r\n").await;
    }
    guest.ask("PING\r\n", "PONG\r\n").await;
}

#[tokio::test]
async fn strangers_do_not_keep_guests_out() {
    let door = small_nats_door().await;
    let mut strangers = Vec::new();
    for _ in 0..3 * CONNECTIONS_MAX {
        strangers.push(Raw::connect(&door).await);
    }
    let mut guests = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        guests.push(Raw::nats(&door, RIGHT).await);
    }
    let refused = Raw::connect(&door).await.rest().await;
    assert_eq!(refused, "-ERR 'maximum connections exceeded'\r\n", "guests make no room");

    let limits = RespLimits { connections_max: CONNECTIONS_MAX, ..RespLimits::default() };
    let door = Door::resp(Locked, MemoryBlobs::default(), limits).await;
    for _ in 0..3 * CONNECTIONS_MAX {
        strangers.push(Raw::connect(&door).await);
    }
    for _ in 0..CONNECTIONS_MAX {
        let mut guest = Raw::connect(&door).await;
        guest.ask("AUTH right\r\n", "+OK\r\n").await;
        guests.push(guest);
    }
}
