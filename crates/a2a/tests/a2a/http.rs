//! Letters to real listeners on loopback, allowed by rule: good agents, bad ones, and none at all.

mod agent;

use agent::Agent;
use bytes::Bytes;
use reveille_a2a::{
    A2aClient, A2aError, A2aReply, A2aRequest, AddressRules, HEADERS_MAX, HttpA2aClient, REPLY_BYTES_MAX,
    REQUEST_BYTES_MAX, Received,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Longer than any test takes: what ends earlier did so for another reason.
const PATIENCE: Duration = Duration::from_mins(1);

fn client(rules: &[&str]) -> HttpA2aClient {
    let entries: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    HttpA2aClient::new(AddressRules::parse(&entries).unwrap())
}

fn request(url: impl Into<String>) -> A2aRequest {
    A2aRequest {
        url: url.into(),
        body: Bytes::from_static(b"{\"a\":1}"),
        headers: Vec::new(),
        patience: PATIENCE,
    }
}

/// How often `received` was called.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU32>);

impl Count {
    fn received(&self) -> Received {
        let count = Arc::clone(&self.0);
        Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        })
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Posts a request to an agent on loopback, and counts `received`.
async fn post(request: A2aRequest) -> (Result<A2aReply, A2aError>, u32) {
    let count = Count::default();
    let outcome = client(&["loopback"]).post(request, count.received()).await;
    (outcome, count.get())
}

#[tokio::test]
async fn a_request_arrives_whole_and_its_answer_comes_back() {
    let agent = Agent::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await;
    let mut request = request(agent.url("/a2a?x=1#top"));
    request.headers =
        vec![("X-Workspace-ID".into(), "w-1".to_owned()), ("authorization".into(), "Bearer t".to_owned())];
    let (outcome, received) = post(request).await;

    assert_eq!((outcome, received), (Ok(A2aReply::new(200, "{}")), 1));
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "POST /a2a?x=1 HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\n\
         accept: application/json\r\nuser-agent: reveille/{version}\r\nconnection: close\r\n\
         x-workspace-id: w-1\r\nauthorization: Bearer t\r\ncontent-length: 7\r\n\r\n{{\"a\":1}}",
        agent.port
    );
    assert_eq!(agent.request().await, expected);
}

#[tokio::test]
async fn an_empty_request_is_received_too() {
    let agent = Agent::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let request = A2aRequest { body: Bytes::new(), ..request(agent.url("/")) };
    assert_eq!(post(request).await, (Ok(A2aReply::new(204, "")), 1));
}

#[tokio::test]
async fn a_redirect_is_a_reply_and_is_not_followed() {
    let head = "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://169.254.169.254/latest/meta-data\r\n";
    let agent = Agent::answering(format!("{head}Content-Length: 0\r\n\r\n")).await;
    let (outcome, received) = post(request(agent.url("/"))).await;
    assert_eq!((outcome, received), (Ok(A2aReply::new(307, "")), 1));
}

#[tokio::test]
async fn how_long_to_wait_is_told_in_seconds_or_not_at_all() {
    for (said, heard) in
        [("7", Some(7)), ("soon", None), ("-1", None), ("Wed, 21 Oct 2015 07:28:00 GMT", None)]
    {
        let head = format!("HTTP/1.1 429 Too Many Requests\r\nRetry-After: {said}\r\n");
        let agent = Agent::answering(format!("{head}Content-Length: 0\r\n\r\n")).await;
        let (outcome, _) = post(request(agent.url("/"))).await;
        assert_eq!(outcome.unwrap().retry_after, heard.map(Duration::from_secs), "{said}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_midway_is_broken() {
    let table = [
        "",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        "I am no HTTP server\r\n\r\n",
    ];
    for answer in table {
        let agent = Agent::answering(answer).await;
        let (outcome, received) = post(request(agent.url("/"))).await;
        assert!(matches!(outcome, Err(A2aError::Broken(_))), "{answer:?} gave {outcome:?}");
        assert_eq!(received, 1, "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_limit_and_no_further() {
    let body = |len: usize| "x".repeat(len);
    let exact = format!("HTTP/1.1 200 OK\r\n\r\n{}", body(REPLY_BYTES_MAX));
    let agent = Agent::answering(exact).await;
    let reply = post(request(agent.url("/"))).await.0.unwrap();
    assert_eq!(reply.body.len(), REPLY_BYTES_MAX);

    let announced = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", REPLY_BYTES_MAX + 1);
    let unannounced = format!("HTTP/1.1 200 OK\r\n\r\n{}", body(REPLY_BYTES_MAX + 1));
    for answer in [announced, unannounced] {
        let agent = Agent::answering(answer).await;
        assert_eq!(post(request(agent.url("/"))).await, (Err(A2aError::TooLarge), 1));
    }
}

#[tokio::test]
async fn a_request_that_is_too_large_does_not_leave() {
    let request =
        A2aRequest { body: Bytes::from(vec![b' '; REQUEST_BYTES_MAX + 1]), ..request("http://127.0.0.1:9/") };
    assert_eq!(post(request).await, (Err(A2aError::TooLarge), 0));
}

#[tokio::test]
async fn patience_ends_with_a_server_that_does_not_answer() {
    let agent = Agent::silent().await;
    let count = Count::default();
    let (url, received) = (agent.url("/"), count.received());
    let waiting = tokio::spawn(async move { client(&["loopback"]).post(request(url), received).await });
    agent.request().await;
    tokio::time::pause();
    tokio::time::advance(PATIENCE).await;
    assert_eq!(waiting.await.unwrap(), Err(A2aError::TimedOut));
    assert_eq!(count.get(), 1);
}

#[tokio::test]
async fn nobody_at_home_is_unreachable() {
    let port = Agent::silent().await.hang_up().await;
    let (outcome, received) = post(request(format!("http://127.0.0.1:{port}/"))).await;
    assert!(matches!(outcome, Err(A2aError::Unreachable(_))), "{outcome:?}");
    assert_eq!(received, 0);

    let (outcome, _) = post(request("http://no-such-agent.invalid/")).await;
    assert!(matches!(outcome, Err(A2aError::Unreachable(_))), "{outcome:?}");
}

#[tokio::test]
async fn without_a_rule_no_spelling_of_loopback_is_connected_to() {
    let agent = Agent::silent().await;
    let hosts = ["LocalHost", "127.0.0.1", "127.1", "0x7f.1", "2130706433", "[::1]"];
    let mapped =
        ["[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "0.0.0.0", "[::]"];
    for host in hosts.into_iter().chain(mapped) {
        let url = format!("http://{host}:{}/", agent.port);
        let count = Count::default();
        let posted = client(&[]).post(request(&url), count.received()).await;
        assert!(matches!(posted, Err(A2aError::Refused(_))), "{url} gave {posted:?}");
        assert_eq!(client(&[]).check(&url).await.err(), posted.err(), "{url}");
        assert_eq!(count.get(), 0);
    }
    assert_eq!(agent.met(), 0);
}

#[tokio::test]
async fn a_check_tells_what_is_refused_and_why() {
    let table = [
        (&[] as &[&str], "http://1.1.1.1/", None),
        (&["loopback"], "http://localhost:8000/", None),
        (&["private"], "http://10.0.0.7/", None),
        (&[], "http://10.0.0.7/", Some("refused: 10.0.0.7 is a private address")),
        (
            &["private", "169.254.0.0/16"],
            "http://169.254.169.254/latest",
            Some(
                "refused: 169.254.169.254 is a cloud's metadata service, \
                 which only a rule for exactly this address allows",
            ),
        ),
        (&[], "ftp://1.1.1.1/", Some("refused: \"ftp://1.1.1.1/\": the scheme is neither http nor https")),
    ];
    for (rules, url, expected) in table {
        let outcome = client(rules).check(url).await.err().map(|error| error.to_string());
        assert_eq!(outcome.as_deref(), expected, "{url}");
    }
}

#[tokio::test]
async fn headers_that_could_change_the_request_are_refused() {
    let table = [
        ("x-a", "b\r\nhost: evil"),
        ("x-a", "b\nc"),
        ("x-a", "\0"),
        ("x a", "b"),
        ("x-a\r\n", "b"),
        ("", "b"),
        ("Host", "evil"),
        ("Content-Length", "0"),
        ("transfer-encoding", "chunked"),
    ];
    for (name, value) in table {
        let request =
            A2aRequest { headers: vec![(name.into(), value.to_owned())], ..request("http://127.0.0.1:9/") };
        let (outcome, received) = post(request).await;
        assert!(matches!(outcome, Err(A2aError::Refused(_))), "{name:?} gave {outcome:?}");
        assert_eq!(received, 0);
    }
    let many = vec![("x-a".into(), String::new()); HEADERS_MAX + 1];
    let (outcome, _) = post(A2aRequest { headers: many, ..request("http://127.0.0.1:9/") }).await;
    assert!(matches!(outcome, Err(A2aError::Refused(_))));
}

#[test]
fn a_request_shows_no_header_values() {
    let request = A2aRequest {
        headers: vec![("authorization".into(), "Bearer secret".to_owned())],
        ..request("http://a/")
    };
    assert!(!format!("{request:?}").contains("secret"));
}
