//! When `received` is called, over a pipe that holds only a few bytes at a time.

use super::{Count, read_on, request};
use crate::http::exchange::{exchange, http_request};
use crate::http::handover::{RequestProgress, WatchedStream, WholeBody};
use crate::http::target::A2aTarget;
use crate::{A2aError, A2aReply, A2aRequest};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Request;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::{JoinHandle, yield_now};

const BODY_BYTES: usize = 4096;

fn big_request() -> Request<Bytes> {
    let url = "http://agent.example/";
    let request = A2aRequest { body: Bytes::from(vec![b'b'; BODY_BYTES]), ..request(url) };
    http_request(&A2aTarget::parse(url).unwrap(), request).unwrap()
}

/// The agent's end of the pipe, and the exchange at the other end.
fn begin(count: &Count) -> (DuplexStream, JoinHandle<Result<A2aReply, A2aError>>) {
    let (ours, theirs) = duplex(64);
    (theirs, tokio::spawn(exchange(ours, big_request(), count.received())))
}

/// Lets the exchange do whatever it can.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test]
async fn a_request_that_nobody_reads_is_not_received() {
    let count = Count::default();
    let (mut agent, exchange) = begin(&count);
    settle().await;
    assert_eq!(count.get(), 0, "it cannot have left");

    let mut half = vec![0; BODY_BYTES / 2];
    agent.read_exact(&mut half).await.unwrap();
    settle().await;
    assert_eq!(count.get(), 0, "half of it has not left");

    read_on(&mut agent, &mut String::from_utf8(half).unwrap()).await;
    settle().await;
    assert_eq!(count.get(), 1, "all of it has left");

    agent.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    assert_eq!(exchange.await.unwrap().map(|reply| reply.status), Ok(200));
    assert_eq!(count.get(), 1);
}

#[tokio::test]
async fn a_connection_that_ends_before_the_first_byte_is_unreachable() {
    let count = Count::default();
    let (agent, exchange) = begin(&count);
    drop(agent);
    let outcome = exchange.await.unwrap();
    assert!(matches!(outcome, Err(A2aError::Unreachable(_))), "{outcome:?}");
    assert_eq!(count.get(), 0);
}

#[tokio::test]
async fn a_connection_that_ends_within_the_request_is_broken_and_not_received() {
    let count = Count::default();
    let (mut agent, exchange) = begin(&count);
    agent.read_exact(&mut [0; 100]).await.unwrap();
    drop(agent);
    let outcome = exchange.await.unwrap();
    assert!(matches!(outcome, Err(A2aError::Broken(_))), "{outcome:?}");
    assert_eq!(count.get(), 0);
}

#[tokio::test]
async fn an_early_answer_is_a_reply_without_receipt() {
    let count = Count::default();
    let (mut agent, exchange) = begin(&count);
    agent.read_exact(&mut [0; 100]).await.unwrap();
    agent.write_all(b"HTTP/1.1 413 Too Much\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    assert_eq!(exchange.await.unwrap().map(|reply| reply.status), Ok(413));
    assert_eq!(count.get(), 0);
}

#[tokio::test]
async fn a_dropped_exchange_closes_its_connection() {
    let count = Count::default();
    let (mut agent, exchange) = begin(&count);
    agent.read_exact(&mut [0; 100]).await.unwrap();
    exchange.abort();
    let mut rest = Vec::new();
    agent.read_to_end(&mut rest).await.unwrap();
    assert!(rest.len() < BODY_BYTES);
}

#[tokio::test]
async fn a_flush_counts_only_after_both_the_head_and_the_body() {
    let count = Count::default();
    let progress = Arc::new(RequestProgress::default());
    let (ours, _theirs) = duplex(64);
    let mut stream = WatchedStream::new(ours, Arc::clone(&progress), count.received());
    let mut body = WholeBody::new(Bytes::from_static(b"body"), Arc::clone(&progress));
    // Whether hyper flushes between a head and its body is its own affair.
    stream.write_all(b"head").await.unwrap();
    stream.flush().await.unwrap();
    assert_eq!(count.get(), 0, "the body was not taken yet");
    body.frame().await.unwrap().unwrap();
    stream.write_all(b"body").await.unwrap();
    stream.flush().await.unwrap();
    stream.flush().await.unwrap();
    assert_eq!(count.get(), 1);
}

#[tokio::test]
async fn a_flush_of_nothing_hands_nothing_over() {
    let count = Count::default();
    let progress = Arc::new(RequestProgress::default());
    let (ours, _theirs) = duplex(64);
    let mut stream = WatchedStream::new(ours, Arc::clone(&progress), count.received());
    let _body = WholeBody::new(Bytes::new(), progress);
    stream.flush().await.unwrap();
    assert_eq!(count.get(), 0, "not even the head was written");
    stream.write_all(b"head").await.unwrap();
    stream.flush().await.unwrap();
    assert_eq!(count.get(), 1);
}
