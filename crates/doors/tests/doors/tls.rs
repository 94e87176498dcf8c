//! The doors with a certificate: stock clients are at home, and others do no harm.

use crate::memory_blobs::MemoryBlobs;
use crate::support::{Door, Raw, open};
use futures_util::StreamExt;
use reveille_bus::{Bus, Message};
use reveille_doors::nats::NatsLimits;
use reveille_doors::resp::RespLimits;
use reveille_doors::tls::DoorTls;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// More than a socket and the TLS session before it take at once.
const LARGE: usize = 8 * 1024 * 1024;

/// A certificate for this machine, as files.
struct Certificate(TempDir);

impl Certificate {
    fn make() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("cert.pem")
    }

    fn tls(&self) -> DoorTls {
        DoorTls::load(&self.path(), &self.0.path().join("key.pem")).unwrap()
    }

    async fn nats_door(&self, limits: NatsLimits) -> Door {
        Door::nats_with(Some(self.tls()), open(), limits).await
    }

    async fn resp_door(&self, limits: RespLimits) -> Door {
        Door::resp_with(Some(self.tls()), open(), MemoryBlobs::default(), limits).await
    }

    async fn nats(&self, door: &Door) -> async_nats::Client {
        let options = async_nats::ConnectOptions::new().require_tls(true).add_root_certificates(self.path());
        options.connect(door.address.to_string()).await.unwrap()
    }

    /// A client that has agreed on keys, from the first byte on.
    async fn client(&self, door: &Door) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.path()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let socket = TcpStream::connect(door.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap()
    }
}

async fn ask(client: &mut TlsStream<TcpStream>, words: &str, expected: &str) {
    client.write_all(words.as_bytes()).await.unwrap();
    client.flush().await.unwrap();
    let mut read = vec![0; expected.len()];
    let answer = tokio::time::timeout(Duration::from_secs(20), client.read_exact(&mut read)).await;
    assert!(matches!(answer, Ok(Ok(_))), "no answer: {answer:?}");
    assert!(read == expected.as_bytes(), "{} bytes that differ", read.len());
}

#[tokio::test]
async fn async_nats_publishes_and_subscribes_over_tls() {
    let certificate = Certificate::make();
    let door = certificate.nats_door(NatsLimits::default()).await;
    let client = certificate.nats(&door).await;
    let mut jobs = client.subscribe("worker.w.jobs").await.unwrap();
    let mut heartbeats = door.bus.subscribe("sys.heartbeat", None).await.unwrap();
    client.publish("sys.heartbeat", "alive".into()).await.unwrap();
    assert_eq!(heartbeats.recv().await.unwrap().message.payload, "alive");

    // Enough that the door's writes are taken in part.
    let payload = "x".repeat(1024 * 1024);
    for _ in 0..6 {
        door.bus.publish(Message::new("worker.w.jobs", payload.clone())).await.unwrap();
    }
    for _ in 0..6 {
        let message = tokio::time::timeout(Duration::from_secs(20), jobs.next()).await.unwrap().unwrap();
        assert!(message.payload == payload, "{} bytes that differ", message.payload.len());
    }
    door.close().await;
}

#[tokio::test]
async fn redis_commands_go_over_tls() {
    let certificate = Certificate::make();
    let door = certificate.resp_door(RespLimits::default()).await;
    let mut client = certificate.client(&door).await;
    ask(&mut client, "SET ctx:1 hello\r\n", "+OK\r\n").await;
    ask(&mut client, "GET ctx:1\r\n", "$5\r\nhello\r\n").await;
    let blob = "x".repeat(LARGE);
    let set = format!("*3\r\n$3\r\nSET\r\n$5\r\nres:1\r\n${LARGE}\r\n{blob}\r\n");
    ask(&mut client, &set, "+OK\r\n").await;
    ask(&mut client, "GET res:1\r\n", &format!("${LARGE}\r\n{blob}\r\n")).await;
    // The end is a proper one, as TLS wants it.
    ask(&mut client, "QUIT\r\n", "+OK\r\n").await;
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn plain_text_is_cut_off_and_others_go_on() {
    let certificate = Certificate::make();
    let nats = certificate.nats_door(NatsLimits::default()).await;
    let resp = certificate.resp_door(RespLimits::default()).await;
    let (listener, mut redis) = (certificate.nats(&nats).await, certificate.client(&resp).await);
    let mut jobs = listener.subscribe("a").await.unwrap();
    listener.flush().await.unwrap();

    let mut plain = Raw::connect(&nats).await;
    let info = plain.line().await;
    assert!(info.contains(r#""tls_required":true"#), "{info}");
    plain.send("CONNECT {}\r\nPUB a 5\r\nplain\r\nPING\r\n").await;
    assert_is_no_answer(&plain.rest().await, "PONG");

    let mut plain = Raw::connect(&resp).await;
    plain.send("SET ctx:1 plain\r\nPING\r\n").await;
    assert_is_no_answer(&plain.rest().await, "+");

    nats.bus.publish(Message::new("a", "from us")).await.unwrap();
    assert_eq!(jobs.next().await.unwrap().payload, "from us", "what came in plain text was not published");
    ask(&mut redis, "GET ctx:1\r\n", "$-1\r\n").await;
}

/// At most a TLS alert comes back.
fn assert_is_no_answer(rest: &str, answer: &str) {
    assert!(!rest.contains(answer) && rest.len() < 16, "{rest:?}");
}

#[tokio::test]
async fn a_handshake_that_is_not_finished_makes_room_for_one_that_is() {
    let certificate = Certificate::make();
    let door = certificate.resp_door(RespLimits { connections_max: 1, ..RespLimits::default() }).await;
    let mut stalled = Raw::connect(&door).await;
    let mut client = certificate.client(&door).await;
    ask(&mut client, "PING\r\n", "+PONG\r\n").await;
    assert_eq!(stalled.rest().await, "");
    assert_eq!(Raw::connect(&door).await.rest().await, "", "the door is full, and says nothing in the clear");
    drop(client);
    door.close().await;
}
