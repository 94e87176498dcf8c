//! Which files are accepted, and what depends on time; the rest is tested over real sockets in `tests/`.

use super::*;
use std::error::Error as _;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, duplex};
use tokio::time::Instant;

/// A folder with `cert.pem` and `key.pem`.
fn folder() -> TempDir {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    folder
}

fn load(folder: &TempDir) -> Result<DoorTls, TlsError> {
    DoorTls::load(&folder.path().join("cert.pem"), &folder.path().join("key.pem"))
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let other_key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let broken_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_owned();
    for (file, text, part) in [
        ("cert.pem", None, "reading"),
        ("key.pem", None, "reading"),
        ("cert.pem", Some("x".to_owned()), "holds no certificate"),
        ("key.pem", Some("x".to_owned()), "holds no private key"),
        ("key.pem", Some(broken_key), "cannot be used together"),
        ("key.pem", Some(other_key), "cannot be used together"),
    ] {
        let folder = folder();
        assert!(load(&folder).is_ok());
        let path = folder.path().join(file);
        match text {
            Some(text) => std::fs::write(&path, text).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let error = load(&folder).unwrap_err();
        let words = error.to_string();
        assert!(words.contains(part) && words.contains(path.to_str().unwrap()), "{file}: {words}");
        assert!(error.source().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_stalls_is_cut_off() {
    let tls = load(&folder()).unwrap();
    let (mut client, server) = duplex(1024);
    let (_open, shutdown) = watch::channel(false);
    let began = Instant::now();
    assert!(tls.accept(server, shutdown).await.is_none());
    assert_eq!(began.elapsed(), HANDSHAKE_MAX);
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "the client sees the end");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_does_not_keep_a_closing_door_open() {
    let tls = load(&folder()).unwrap();
    let (_client, server) = duplex(1024);
    let (close, shutdown) = watch::channel(false);
    close.send(true).unwrap();
    let began = Instant::now();
    assert!(tls.accept(server, shutdown).await.is_none());
    assert!(began.elapsed().is_zero());
}
