use super::house::{House, USER};
use reveille_client::{Client, Error};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

/// Somebody else on a free port, who says this to whoever asks first.
fn somebody_else(says: &'static str) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4096];
        let _ = stream.read(&mut asked).unwrap();
        stream.write_all(says.as_bytes()).unwrap();
        // Until the other side hangs up.
        while stream.read(&mut asked).is_ok_and(|len| len > 0) {}
    });
    Client::new(&url, "vk_secret").unwrap()
}

#[test]
fn only_http_is_spoken() {
    for url in ["127.0.0.1:8080", "ftp://x", ""] {
        let error = Client::new(url, "k").unwrap_err();
        assert_eq!(error, Error::Url(url.to_owned()));
        assert_eq!(error.to_string(), format!("{url:?} must start with http:// or https://"));
    }
}

#[test]
fn a_wrong_key_is_refused() {
    let house = House::open();
    let error = house.with_key("vk_wrong").jobs().get("j").unwrap_err();
    assert_eq!(error.to_string(), "the key is wrong, expired or revoked [401 unauthorized]");
}

#[test]
fn what_is_not_there_is_said_to_be_so() {
    let house = House::open();
    let client = house.client("ann", "acme", USER);
    let unknown = "01a1e291-c60e-79fa-b696-386426b44f08";
    let error = client.jobs().wait(unknown, Duration::from_mins(1)).unwrap_err();
    assert_eq!(error.to_string(), "there is no such job [404 not_found]");
    // Not the list of workers, and no other path.
    let error = client.workers().get("../workers?x#y").unwrap_err();
    assert_eq!(error.to_string(), "there is no such worker [404 not_found]");
    let error = client.delete::<Value>("/api/v1/workflows/none").unwrap_err();
    assert!(matches!(&error, Error::Refused { status: 404, .. }), "{error}");
}

#[test]
fn a_server_that_is_away_is_named() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{address}");
    let error = Client::new(&format!("{url}/"), "k").unwrap().jobs().get("j").unwrap_err();
    let words = error.to_string();
    assert!(matches!(error, Error::Unreachable { url: named, .. } if named == url), "{words}");
    assert!(words.starts_with(&format!("{url} does not answer (")), "{words}");
    assert!(words.ends_with("); is `reveille serve` running?"), "{words}");
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_for_ever() {
    let client = somebody_else("").timeout(Duration::from_millis(100));
    let error = client.jobs().get("j").unwrap_err();
    assert!(matches!(&error, Error::Unreachable { reason, .. } if reason.contains("timeout")), "{error}");
}

#[test]
fn an_answer_of_somebody_else_is_not_taken_for_a_job() {
    let says = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
    let error = somebody_else(says).jobs().get("j").unwrap_err();
    assert!(matches!(&error, Error::Unreadable(_)), "{error}");
    assert!(error.to_string().starts_with("reading the answer: "), "{error}");
    assert_eq!(somebody_else(says).text("/").unwrap(), "hello");
    let says = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let error = somebody_else(says).jobs().get("j").unwrap_err();
    assert!(error.to_string().contains("missing field"), "{error}");
    assert_eq!(somebody_else(says).get::<Value>("/", &[]).unwrap(), serde_json::json!({}));
}

#[test]
fn the_key_is_not_sent_elsewhere_and_not_shown() {
    let says = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let client = somebody_else(says);
    assert!(!format!("{client:?}").contains("vk_secret"));
    let error = client.jobs().get("j").unwrap_err();
    assert_eq!(error.to_string(), "no reason given [302 -]");
}
