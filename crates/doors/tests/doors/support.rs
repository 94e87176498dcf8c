//! Doors on free ports, and a client that speaks raw bytes.

use crate::memory_blobs::{MemoryBlobs, NOW};
use reveille_bus::LocalBus;
use reveille_core::fleet::{WorkerCredential, WorkerGrant};
use reveille_core::id::{KeyId, TenantId};
use reveille_doors::nats::{self, NatsLimits};
use reveille_doors::resp::{self, RespLimits};
use reveille_doors::tls::DoorTls;
use reveille_doors::{Denied, Gate, Guest, OpenGate, Role, Standing};
use reveille_store::Blobs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long an answer may take before the test fails.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A door that stays open as long as this lives.
pub struct Door {
    pub address: SocketAddr,
    pub bus: LocalBus,
    shutdown: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Door {
    pub async fn nats(gate: impl Gate, limits: NatsLimits) -> Self {
        Self::nats_with(None, gate, limits).await
    }

    pub async fn nats_with(tls: Option<DoorTls>, gate: impl Gate, limits: NatsLimits) -> Self {
        let (listener, address) = listen().await;
        let (shutdown, closing) = watch::channel(false);
        let bus = LocalBus::new();
        let serving = tokio::spawn(nats::serve(listener, tls, bus.clone(), Arc::new(gate), limits, closing));
        Self { address, bus, shutdown, serving }
    }

    pub async fn open_nats() -> Self {
        Self::nats(open(), NatsLimits::default()).await
    }

    pub async fn resp(gate: impl Gate, blobs: MemoryBlobs, limits: RespLimits) -> Self {
        Self::resp_with(None, gate, blobs, limits).await
    }

    pub async fn resp_with(
        tls: Option<DoorTls>,
        gate: impl Gate,
        blobs: MemoryBlobs,
        limits: RespLimits,
    ) -> Self {
        let (listener, address) = listen().await;
        let (shutdown, closing) = watch::channel(false);
        let clock = Arc::new(|| NOW);
        let serving =
            tokio::spawn(resp::serve(listener, tls, Arc::new(blobs), Arc::new(gate), clock, limits, closing));
        Self { address, bus: LocalBus::new(), shutdown, serving }
    }

    pub async fn open_resp() -> Self {
        Self::resp(open(), MemoryBlobs::default(), RespLimits::default()).await
    }

    pub async fn close(self) {
        self.shutdown.send(true).unwrap();
        self.serving.await.unwrap();
    }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

pub fn open() -> OpenGate {
    OpenGate(TenantId::known("everyone"))
}

/// Knows two secrets: `right`, a worker's, and `submitter`.
pub struct Locked;

#[async_trait::async_trait]
impl Gate for Locked {
    async fn admit(&self, secret: Option<&str>) -> Result<Guest, Denied> {
        let role = match secret {
            Some("right") => Role::Worker,
            Some("submitter") => Role::Submitter,
            _ => return Err(Denied),
        };
        Ok(Guest { tenant: TenantId::known("acme"), role, key: secret.map(KeyId::known) })
    }

    fn standing(&self, _: &Guest) -> Standing {
        Standing::Valid
    }
}

/// Knows the secret `limited`: a worker of tenant `acme` that serves `job.echo`, may be `w1` only, and has one blob.
pub struct Limited;

#[async_trait::async_trait]
impl Gate for Limited {
    async fn admit(&self, secret: Option<&str>) -> Result<Guest, Denied> {
        let (Some("limited"), tenant) = (secret, TenantId::known("acme")) else { return Err(Denied) };
        let topics = ["job.echo".to_owned()].into();
        let grant = WorkerGrant { topics, ..WorkerGrant::of_tenant(&tenant) };
        let credential = Arc::new(WorkerCredential { key: KeyId::known("limited"), grant, signs_as: None });
        let role = Role::LimitedWorker { credential, submits: false };
        Ok(Guest { tenant, role, key: secret.map(KeyId::known) })
    }

    fn standing(&self, _: &Guest) -> Standing {
        Standing::Valid
    }

    fn claim(&self, _: &Guest, worker: &str) -> bool {
        worker == "w1"
    }

    fn blobs(&self, _: &Guest) -> Option<Arc<dyn Blobs>> {
        let blobs = MemoryBlobs::default();
        blobs.insert("ctx:own", "input");
        Some(Arc::new(blobs))
    }
}

/// Knows the secret `right`, until its key ends.
#[derive(Clone)]
pub struct EndingKey(Arc<Mutex<Standing>>);

impl EndingKey {
    pub fn valid() -> Self {
        Self(Arc::new(Mutex::new(Standing::Valid)))
    }

    pub fn end(&self, standing: Standing) {
        *self.0.lock().unwrap() = standing;
    }
}

#[async_trait::async_trait]
impl Gate for EndingKey {
    async fn admit(&self, secret: Option<&str>) -> Result<Guest, Denied> {
        if *self.0.lock().unwrap() == Standing::Valid { Locked.admit(secret).await } else { Err(Denied) }
    }

    fn standing(&self, guest: &Guest) -> Standing {
        assert_eq!(guest.key, Some(KeyId::known("right")));
        *self.0.lock().unwrap()
    }
}

/// A client that sends and expects exact bytes.
pub struct Raw(TcpStream);

impl Raw {
    pub async fn connect(door: &Door) -> Self {
        Self(TcpStream::connect(door.address).await.unwrap())
    }

    /// A NATS client that has read INFO and sent CONNECT.
    pub async fn nats(door: &Door, options: &str) -> Self {
        let mut client = Self::connect(door).await;
        let info = client.line().await;
        assert!(info.starts_with("INFO {"), "{info}");
        client.send(&format!("CONNECT {options}\r\n")).await;
        client.sync().await;
        client
    }

    pub async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.0.write_all(text.as_ref()).await.unwrap();
    }

    pub async fn send_byte_by_byte(&mut self, text: &str) {
        for byte in text.as_bytes() {
            self.0.write_all(std::slice::from_ref(byte)).await.unwrap();
            tokio::task::yield_now().await;
        }
    }

    pub async fn expect(&mut self, expected: &str) {
        let mut read = vec![0; expected.len()];
        let answer = tokio::time::timeout(ANSWER_MAX, self.0.read_exact(&mut read)).await;
        assert!(matches!(answer, Ok(Ok(_))), "no answer, expected {expected:?}");
        assert_eq!(String::from_utf8_lossy(&read), expected);
    }

    pub async fn ask(&mut self, text: &str, expected: &str) {
        self.send(text).await;
        self.expect(expected).await;
    }

    pub async fn line(&mut self) -> String {
        let mut line = String::new();
        while !line.ends_with("\r\n") {
            let byte = tokio::time::timeout(ANSWER_MAX, self.0.read_u8()).await.expect("a line in time");
            line.push(char::from(byte.expect("the connection is open")));
        }
        line
    }

    /// Waits until the NATS door has done everything that was sent, which it does in order.
    pub async fn sync(&mut self) {
        self.send("PING\r\n").await;
        while self.line().await != "PONG\r\n" {}
    }

    /// What comes until the other side hangs up.
    pub async fn rest(&mut self) -> String {
        let mut read = Vec::new();
        let end = tokio::time::timeout(ANSWER_MAX, self.0.read_to_end(&mut read)).await;
        assert!(end.is_ok(), "the connection is still open after {:?}", String::from_utf8_lossy(&read));
        String::from_utf8_lossy(&read).into_owned()
    }
}
