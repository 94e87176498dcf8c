//! What depends on time, on paused time; the rest is tested over real sockets in `tests/`.

use super::*;
use crate::gate::{Denied, OpenGate, Standing};
use crate::listener::DoorPeer;
use crate::unauthenticated::UnauthenticatedClients;
use reveille_bus::{Bus, INBOX_LEN_MAX};
use reveille_core::id::TenantId;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::io::{AsyncReadExt, BufWriter, DuplexStream, duplex, split};

/// A gate that wants to see a secret.
struct Locked;

#[async_trait::async_trait]
impl Gate for Locked {
    async fn admit(&self, secret: Option<&str>) -> Result<Guest, Denied> {
        if secret == Some("right") {
            Ok(Guest { tenant: TenantId::known("acme"), role: Role::Worker, key: None })
        } else {
            Err(Denied)
        }
    }

    fn standing(&self, _: &Guest) -> Standing {
        Standing::Valid
    }
}

/// Admits whoever says `right`, until the key is revoked.
#[derive(Default)]
struct RevocableKey(AtomicBool);

#[async_trait::async_trait]
impl Gate for RevocableKey {
    async fn admit(&self, secret: Option<&str>) -> Result<Guest, Denied> {
        Locked.admit(secret).await
    }

    fn standing(&self, _: &Guest) -> Standing {
        if self.0.load(Relaxed) { Standing::Revoked } else { Standing::Valid }
    }
}

struct Harness {
    client: DuplexStream,
    bus: LocalBus,
    /// Kept so that the door stays open.
    _open: watch::Sender<bool>,
}

fn connect(gate: Arc<dyn Gate>) -> Harness {
    let (client, mut server) = duplex(1024);
    let (open, shutdown) = watch::channel(false);
    let bus = LocalBus::new();
    let door = Arc::new(NatsDoor::new(bus.clone(), gate, NatsLimits::default(), None, None));
    tokio::spawn(async move {
        let (stranger, _) = UnauthenticatedClients::default().enter(DoorPeer::User(None));
        let newcomer = greet(&mut server, stranger, &door).await.unwrap();
        let (reader, writer) = split(server);
        // It holds back what is not flushed, as TLS may.
        let writer = BufWriter::new(writer);
        run(newcomer, reader, writer, door, shutdown).await;
    });
    Harness { client, bus, _open: open }
}

impl Harness {
    async fn read_until(&mut self, wanted: &str) -> String {
        let mut read = String::new();
        while !read.ends_with(wanted) {
            read.push(char::from(self.client.read_u8().await.expect("the connection is open")));
        }
        read
    }

    async fn read_to_end(&mut self) -> String {
        let mut read = String::new();
        self.client.read_to_string(&mut read).await.unwrap();
        read
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_pinged_twice_and_then_cut_off() {
    let mut harness = connect(Arc::new(OpenGate(TenantId::known("acme"))));
    let began = Instant::now();
    harness.read_until("}\r\n").await;
    assert_eq!(harness.read_to_end().await, "PING\r\nPING\r\n-ERR 'Stale Connection'\r\n");
    assert_eq!(began.elapsed().as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_or_talks_stays() {
    let mut harness = connect(Arc::new(OpenGate(TenantId::known("acme"))));
    harness.read_until("}\r\n").await;
    for _ in 0..10 {
        assert_eq!(harness.read_until("PING\r\n").await, "PING\r\n");
        harness.client.write_all(b"PONG\r\n").await.unwrap();
    }
    for _ in 0..10 {
        tokio::time::advance(Duration::from_secs(20)).await;
        harness.client.write_all(b"PING\r\n").await.unwrap();
        assert_eq!(harness.read_until("\r\n").await, "PONG\r\n", "it is not pinged while it talks");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_must_be_shown_in_time() {
    let mut harness = connect(Arc::new(Locked));
    let began = Instant::now();
    assert!(harness.read_until("}\r\n").await.contains("\"auth_required\":true"));
    harness.client.write_all(b"CONN").await.unwrap();
    assert_eq!(harness.read_to_end().await, "-ERR 'Authentication Timeout'\r\n");
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn without_a_secret_nothing_but_connect_is_heard() {
    for (input, answer) in [
        ("PING\r\n", "-ERR 'Authorization Violation'\r\n"),
        ("SUB > 1\r\n", "-ERR 'Authorization Violation'\r\n"),
        ("CONNECT {}\r\n", "-ERR 'Authorization Violation'\r\n"),
        ("CONNECT {\"auth_token\":\"wrong\"}\r\n", "-ERR 'Authorization Violation'\r\n"),
        ("CONNECT {\"user\":\"right\"}\r\n", "-ERR 'Authorization Violation'\r\n"),
        ("CONNECT nonsense\r\n", "-ERR 'Unknown Protocol Operation'\r\n"),
    ] {
        let mut harness = connect(Arc::new(Locked));
        harness.read_until("}\r\n").await;
        harness.client.write_all(input.as_bytes()).await.unwrap();
        assert_eq!(harness.read_to_end().await, answer, "{input}");
    }
    for input in ["CONNECT {\"auth_token\":\"right\"}\r\n", "CONNECT {\"user\":\"x\",\"pass\":\"right\"}\r\n"]
    {
        let mut harness = connect(Arc::new(Locked));
        harness.read_until("}\r\n").await;
        harness.client.write_all(format!("{input}PING\r\n").as_bytes()).await.unwrap();
        assert_eq!(harness.read_until("\r\n").await, "PONG\r\n");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_not_known_is_refused_even_at_an_open_door() {
    let mut harness = connect(Arc::new(OpenGate(TenantId::known("acme"))));
    harness.read_until("}\r\n").await;
    harness.client.write_all(b"CONNECT {\"pass\":\"mistyped\"}\r\n").await.unwrap();
    assert_eq!(harness.read_to_end().await, "-ERR 'Authorization Violation'\r\n");
}

#[tokio::test(start_paused = true)]
async fn what_is_published_with_a_revoked_key_does_not_count() {
    let key = Arc::new(RevocableKey::default());
    let mut harness = connect(key.clone());
    let mut results = harness.bus.subscribe("sys.job.result", None).await.unwrap();
    harness.read_until("}\r\n").await;
    harness.client.write_all(b"CONNECT {\"auth_token\":\"right\"}\r\nPING\r\n").await.unwrap();
    harness.read_until("PONG\r\n").await;
    key.0.store(true, Relaxed);
    tokio::time::advance(Duration::from_millis(1001)).await;
    harness.client.write_all(b"PUB sys.job.result 1\r\nx\r\n").await.unwrap();
    assert_eq!(harness.read_to_end().await, "-ERR 'Authorization Violation'\r\n");
    assert!(results.try_recv().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_waits_for_us_is_cut_off_too_when_its_key_is_revoked() {
    let key = Arc::new(RevocableKey::default());
    let mut harness = connect(key.clone());
    let _full = harness.bus.subscribe("sys.job.result", None).await.unwrap();
    harness.read_until("}\r\n").await;
    harness.client.write_all(b"CONNECT {\"auth_token\":\"right\"}\r\n").await.unwrap();
    for _ in 0..INBOX_LEN_MAX {
        harness.client.write_all(b"PUB sys.job.result 1\r\nx\r\n").await.unwrap();
    }
    harness.client.write_all(b"PING\r\n").await.unwrap();
    harness.read_until("PONG\r\n").await;
    harness.client.write_all(b"PUB sys.job.result 1\r\nx\r\n").await.unwrap();
    key.0.store(true, Relaxed);
    let revoked = Instant::now();
    let end = tokio::time::timeout(Duration::from_mins(1), harness.read_to_end()).await;
    assert_eq!(end.expect("it ends"), "-ERR 'Authorization Violation'\r\n");
    assert!(revoked.elapsed() < Duration::from_secs(2), "{:?}", revoked.elapsed());
}
