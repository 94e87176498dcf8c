use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::stub::{Stub, StubReply};
use super::*;

const WAIT: Duration = Duration::from_secs(5);

fn client(url: &str) -> HttpClient {
    HttpClient::new(ServerAddress::parse("url", url).unwrap())
}

#[tokio::test]
async fn an_exchange_carries_the_body_and_the_key() {
    let stub =
        Stub::start(|_| StubReply { retry_after: Some(7), ..StubReply::new(429, json!({ "n": 1 })) }).await;
    let key = Bearer::new("vk_1").unwrap();
    assert!(!format!("{key:?}").contains("vk_1"));

    let answer = client(&stub.url()).post("/v1/x", Some(&key), &json!({ "a": [1] }), WAIT).await.unwrap();

    assert_eq!((answer.status, answer.retry_after), (429, Some(Duration::from_secs(7))));
    assert_eq!(answer.json::<Value>().unwrap(), json!({ "n": 1 }));
    let [asked] = &stub.asked()[..] else { panic!("{:?}", stub.asked()) };
    assert_eq!((asked.what.as_str(), asked.bearer.as_deref()), ("POST /v1/x", Some("Bearer vk_1")));
    assert_eq!(asked.body, json!({ "a": [1] }));
}

#[tokio::test]
async fn a_server_that_hangs_up_after_every_answer_is_dialed_again() {
    let stub = Stub::start(|_| StubReply { hangs_up: true, ..StubReply::new(200, json!({})) }).await;
    let http = client(&stub.url());
    for _ in 0..5 {
        assert_eq!(http.get("/", None, WAIT).await.unwrap().status, 200);
    }
    assert_eq!(stub.asked().len(), 5);
}

#[tokio::test]
async fn a_connection_that_the_server_has_dropped_since_is_not_used() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let http = client(&format!("http://{}", listener.local_addr().unwrap()));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            assert_ne!(socket.read(&mut [0; 1024]).await.unwrap(), 0);
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        }
    });
    for _ in 0..5 {
        assert_eq!(http.get("/", None, WAIT).await.unwrap().status, 200);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_on() {
    let stub =
        Stub::start(|_| StubReply { delay: Duration::from_mins(1), ..StubReply::new(200, json!({})) }).await;
    let trouble = client(&stub.url()).get("/", None, Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(trouble, HttpError::Silent(_)), "{trouble}");
}

#[tokio::test]
async fn nobody_there_is_told_apart_from_silence() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let trouble = client(&url).get("/", None, WAIT).await.unwrap_err();
    assert!(matches!(trouble, HttpError::Unreachable(_)), "{trouble}");
}

#[tokio::test]
async fn an_answer_has_a_limit() {
    let stub = Stub::start(|_| StubReply::new(200, Value::String("x".repeat(ANSWER_LEN_MAX)))).await;
    let trouble = client(&stub.url()).get("/", None, WAIT).await.unwrap_err();
    assert!(matches!(trouble, HttpError::Broken(_)), "{trouble}");
}

#[tokio::test]
async fn a_server_behind_tls_must_be_one_that_is_trusted() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut socket) = acceptor.accept(socket).await else { continue };
            assert_ne!(socket.read(&mut [0; 1024]).await.unwrap(), 0);
            socket.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        }
    });

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let trusting =
        HttpClient { dialer: Dialer::trusting(dial::client_config(roots).unwrap()), ..client(&url) };
    assert_eq!(trusting.get("/", None, WAIT).await.unwrap().status, 202);

    let stranger = Dialer::trusting(dial::client_config(RootCertStore::empty()).unwrap());
    let trouble = HttpClient { dialer: stranger, ..client(&url) }.get("/", None, WAIT).await.unwrap_err();
    assert!(matches!(trouble, HttpError::Unreachable(_)), "{trouble}");
}

#[test]
fn a_servers_wish_for_the_next_beat_is_followed_within_limits() {
    let wish_s = |body: &'static str| {
        let answer = HttpResponse { status: 202, retry_after: None, body: body.into() };
        answer.next_beat().map(|every| every.as_secs_f64())
    };
    assert_eq!(wish_s(r#"{"status":"accepted"}"#), None);
    assert_eq!(wish_s(r#"{"status":"accepted","next_beat_s":20}"#), Some(20.0));
    assert_eq!(wish_s(r#"{"next_beat_s":7.5}"#), Some(7.5));
    assert_eq!(wish_s(r#"{"next_beat_s":0}"#), Some(5.0));
    assert_eq!(wish_s(r#"{"next_beat_s":-1e300}"#), Some(5.0));
    assert_eq!(wish_s(r#"{"next_beat_s":86400}"#), Some(60.0));
    assert_eq!(wish_s(r#"{"next_beat_s":"soon"}"#), None);
    assert_eq!(wish_s("no JSON"), None);
}
