//! What depends on time, on paused time; the rest is tested over real sockets in `tests/`.

use super::*;
use crate::gate::{Denied, Guest, OpenGate, Standing};
use crate::listener::DoorPeer;
use crate::unauthenticated::UnauthenticatedClients;
use reveille_core::id::{KeyId, TenantId};
use reveille_core::time::Millis;
use reveille_store::{BlobKey, Blobs, PutMode, StoreError};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::io::{AsyncReadExt, BufWriter, DuplexStream, duplex, split};
use tokio::time::Instant;

/// A store of one large blob that is always there.
struct OneBlob;

#[async_trait::async_trait]
impl Blobs for OneBlob {
    async fn blob(&self, _: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        Ok(Some(Bytes::from_static(&[b'x'; 4096])))
    }
    async fn put_blob(&self, _: BlobKey, _: Bytes, _: Millis, _: PutMode) -> Result<bool, StoreError> {
        Err(StoreError::Full(reveille_store::DISK_FULL))
    }
    async fn delete_blobs(&self, _: Vec<BlobKey>) -> Result<u64, StoreError> {
        Err(StoreError::Unavailable("it is being moved".into()))
    }
    async fn blob_expiry(&self, _: &BlobKey) -> Result<Option<Millis>, StoreError> {
        Ok(None)
    }
}

struct Locked;

#[async_trait::async_trait]
impl Gate for Locked {
    async fn admit(&self, _: Option<&str>) -> Result<Guest, Denied> {
        Err(Denied)
    }

    fn standing(&self, _: &Guest) -> Standing {
        Standing::Valid
    }
}

/// A guest with a key, until it is revoked.
#[derive(Default)]
struct RevocableKey(AtomicBool);

#[async_trait::async_trait]
impl Gate for RevocableKey {
    async fn admit(&self, _: Option<&str>) -> Result<Guest, Denied> {
        let key = Some(KeyId::known("key"));
        Ok(Guest { tenant: TenantId::known("acme"), role: Role::Worker, key })
    }

    fn standing(&self, _: &Guest) -> Standing {
        if self.0.load(Relaxed) { Standing::Revoked } else { Standing::Valid }
    }
}

fn connect(gate: Arc<dyn Gate>) -> (DuplexStream, watch::Sender<bool>) {
    let (client, server) = duplex(64);
    let (open, shutdown) = watch::channel(false);
    let desk = BlobExecutor {
        blobs: Arc::new(OneBlob),
        clock: Arc::new(|| Millis(0)),
        ttl_ms: 1000,
        ttl_max_ms: 1000,
    };
    let door = Arc::new(RespDoor::new(desk, gate, RespLimits::default()));
    let (reader, writer) = split(server);
    // It holds back what is not flushed, as TLS may.
    let writer = BufWriter::new(writer);
    let (stranger, _) = UnauthenticatedClients::default().enter(DoorPeer::User(None));
    tokio::spawn(async move { run(stranger, reader, writer, door, shutdown).await });
    (client, open)
}

fn open_gate() -> Arc<dyn Gate> {
    Arc::new(OpenGate(TenantId::known("acme")))
}

#[tokio::test(start_paused = true)]
async fn who_shows_no_secret_in_time_is_cut_off() {
    let (mut client, _open) = connect(Arc::new(Locked));
    let began = Instant::now();
    client.write_all(b"PING\r\nAUTH wrong\r\n").await.unwrap();
    let mut read = String::new();
    client.read_to_string(&mut read).await.unwrap();
    let answers = "-NOAUTH Authentication required.\r\n\
                   -WRONGPASS invalid username-password pair or user is disabled.\r\n";
    assert_eq!(read, answers);
    assert_eq!(began.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_answer_is_cut_off() {
    let (mut client, _open) = connect(open_gate());
    let began = Instant::now();
    client.write_all(b"GET ctx:1\r\n").await.unwrap();
    sleep(Duration::from_secs(31)).await;
    let mut read = Vec::new();
    client.read_to_end(&mut read).await.unwrap();
    assert!(read.len() < 4096, "it got what fitted into the socket, {} bytes", read.len());
    assert!(began.elapsed() < Duration::from_secs(61));
}

#[tokio::test(start_paused = true)]
async fn a_store_in_trouble_says_so() {
    let (mut client, _open) = connect(open_gate());
    client.write_all(b"SET res:1 x\r\nDEL res:1\r\nQUIT\r\n").await.unwrap();
    let mut read = String::new();
    client.read_to_string(&mut read).await.unwrap();
    assert_eq!(
        read,
        "-ERR the disk is full\r\n-ERR the store is not available: it is being moved\r\n+OK\r\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_closing_door_ends_the_connection() {
    let (mut client, open) = connect(open_gate());
    client.write_all(b"PING\r\n").await.unwrap();
    let mut pong = [0; 7];
    client.read_exact(&mut pong).await.unwrap();
    open.send(true).unwrap();
    assert_eq!(client.read(&mut pong).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_ends_a_half_read_answer_and_adds_nothing_to_it() {
    let key = Arc::new(RevocableKey::default());
    let (mut client, _open) = connect(key.clone());
    client.write_all(b"GET ctx:1\r\n").await.unwrap();
    tokio::task::yield_now().await;
    key.0.store(true, Relaxed);
    let revoked = Instant::now();
    sleep(Duration::from_secs(2)).await;
    let mut read = Vec::new();
    let end = timeout(Duration::from_secs(20), client.read_to_end(&mut read)).await;
    assert!(end.is_ok() && revoked.elapsed() <= Duration::from_secs(3), "{:?}", revoked.elapsed());
    let answer = [b"$4096\r\n".as_slice(), &[b'x'; 4096]].concat();
    assert!(answer.starts_with(&read), "an error in the midst of a value would be taken for a part of it");
}

#[tokio::test(start_paused = true)]
async fn a_command_with_a_revoked_key_is_refused() {
    let key = Arc::new(RevocableKey::default());
    let (mut client, _open) = connect(key.clone());
    client.write_all(b"PING\r\n").await.unwrap();
    let mut pong = [0; 7];
    client.read_exact(&mut pong).await.unwrap();
    key.0.store(true, Relaxed);
    tokio::time::advance(Duration::from_millis(1001)).await;
    client.write_all(b"PING\r\n").await.unwrap();
    let mut read = String::new();
    timeout(Duration::from_secs(20), client.read_to_string(&mut read)).await.expect("it ends").unwrap();
    assert_eq!(read, "-NOAUTH the key of this connection was revoked\r\n");
}
