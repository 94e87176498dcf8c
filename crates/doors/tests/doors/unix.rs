//! Doors on Unix sockets.

use crate::memory_blobs::MemoryBlobs;
use crate::support::open;
use reveille_bus::LocalBus;
use reveille_core::time::Millis;
use reveille_doors::nats::{self, NatsLimits};
use reveille_doors::resp::{self, RespLimits};
use reveille_doors::{DoorListener, UnixDoor};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;

async fn said(socket: &mut UnixStream, sent: &[u8], end: &str) -> String {
    socket.write_all(sent).await.unwrap();
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).ends_with(end) {
        assert_ne!(socket.read_buf(&mut text).await.unwrap(), 0, "{}", String::from_utf8_lossy(&text));
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn both_doors_serve_on_a_socket_that_its_owner_alone_can_open() {
    let folder = tempfile::tempdir().unwrap();
    let [nats_path, resp_path] = ["nats.sock", "resp.sock"].map(|name| folder.path().join(name));
    let (stop, stopped) = watch::channel(false);
    let door: DoorListener = UnixDoor::bind(&nats_path).await.unwrap().into();
    assert_eq!(door.location("nats").unwrap(), format!("unix:{}", nats_path.display()));
    let gate = Arc::new(open());
    let nats = tokio::spawn(nats::serve(
        door,
        None,
        LocalBus::new(),
        gate.clone(),
        NatsLimits::default(),
        stopped.clone(),
    ));
    let door = UnixDoor::bind(&resp_path).await.unwrap();
    let clock = Arc::new(|| Millis(1));
    let blobs = Arc::new(MemoryBlobs::default());
    let resp = tokio::spawn(resp::serve(door, None, blobs, gate, clock, RespLimits::default(), stopped));
    for path in [&nats_path, &resp_path] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = UnixDoor::bind(path).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::AddrInUse, "a live one is left alone");
    }

    let mut client = UnixStream::connect(&nats_path).await.unwrap();
    let told = said(&mut client, b"CONNECT {\"verbose\":false}\r\nPING\r\n", "PONG\r\n").await;
    assert!(told.starts_with("INFO {"), "{told}");
    let mut client = UnixStream::connect(&resp_path).await.unwrap();
    assert_eq!(
        said(&mut client, b"SET ctx:a hello\r\nGET ctx:a\r\n", "hello\r\n").await,
        "+OK\r\n$5\r\nhello\r\n"
    );

    stop.send(true).unwrap();
    nats.await.unwrap();
    resp.await.unwrap();
    assert!(!nats_path.exists() && !resp_path.exists(), "nothing is left behind");
}

#[tokio::test]
async fn what_a_killed_server_left_is_replaced_and_other_files_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nats.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "its file outlives it");
    let door = UnixDoor::bind(&path).await.unwrap();
    UnixStream::connect(&path).await.unwrap();
    drop(door);
    std::fs::write(&path, "a letter").unwrap();
    let error = UnixDoor::bind(&path).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a letter");
}
