//! Letters to `https` URLs: trusted, not trusted, and not TLS at all.

use super::{Count, read_on, request};
use crate::http::HttpA2aClient;
use crate::{A2aClient, A2aError, AddressRules};
use rcgen::CertifiedKey;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// An agent with a certificate for `localhost`: its port, and what to trust it by.
async fn secure_agent() -> (u16, RootCertStore) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config))));
    (port, roots)
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor) {
    let (socket, _) = listener.accept().await.unwrap();
    let Ok(mut stream) = acceptor.accept(socket).await else { return };
    read_on(&mut stream, &mut String::new()).await;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
    stream.shutdown().await.unwrap();
}

async fn post(url: String, roots: RootCertStore) -> (Result<String, A2aError>, u32) {
    let rules = AddressRules::parse(&["loopback".to_owned()]).unwrap();
    let count = Count::default();
    let outcome = HttpA2aClient::with_roots(rules, roots).post(request(url), count.received()).await;
    (outcome.map(|reply| String::from_utf8_lossy(&reply.body).into_owned()), count.get())
}

#[tokio::test]
async fn an_agent_with_a_trusted_certificate_is_answered_by() {
    let (port, roots) = secure_agent().await;
    let outcome = post(format!("https://localhost:{port}/"), roots).await;
    assert_eq!(outcome, (Ok("ok".to_owned()), 1));
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_told_nothing() {
    let (port, _) = secure_agent().await;
    let (_, strangers) = secure_agent().await;
    let (outcome, received) = post(format!("https://localhost:{port}/"), strangers).await;
    assert!(matches!(outcome, Err(A2aError::Unreachable(_))), "{outcome:?}");
    assert_eq!(received, 0);
}

#[tokio::test]
async fn a_certificate_for_another_host_is_told_nothing() {
    let (port, roots) = secure_agent().await;
    let (outcome, received) = post(format!("https://127.0.0.1:{port}/"), roots).await;
    assert!(matches!(outcome, Err(A2aError::Unreachable(_))), "{outcome:?}");
    assert_eq!(received, 0);
}

#[tokio::test]
async fn a_machine_without_authorities_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (outcome, _) = post(format!("https://localhost:{port}/"), RootCertStore::empty()).await;
    let words = "this machine trusts no certificate authority; SSL_CERT_FILE can name some".to_owned();
    assert_eq!(outcome, Err(A2aError::Unreachable(words)));
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (_, roots) = secure_agent().await;
    let waiting = tokio::spawn(post(format!("https://127.0.0.1:{port}/"), roots));
    let (mut socket, _) = listener.accept().await.unwrap();
    socket.read_u8().await.unwrap();
    tokio::time::pause();
    tokio::time::advance(crate::CONNECT_MAX).await;
    let words = "TLS: no handshake in 5s".to_owned();
    assert_eq!(waiting.await.unwrap(), (Err(A2aError::Unreachable(words)), 0));
}
