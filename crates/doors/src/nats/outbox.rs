//! The outbox: output waiting to be written to one client.
//!
//! Publishers append encoded messages under a short lock and never wait; the connection's writer takes everything
//! that has accumulated and writes it in one call. The faster messages arrive, the larger the batches, so the number
//! of system calls per message falls under load.
//!
//! A client that does not read fills its outbox. The pending output is then discarded, the outbox accepts nothing
//! more, and the writer ends the connection.

use bytes::Bytes;
use reveille_bus::{Message, Sink};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// How long a client gets to read what is being written when its connection ends. An error can only be written at a
/// message boundary; anywhere else it would look like payload.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// A buffer that grew beyond this in a burst is released.
const BUFFER_KEPT_LEN_MAX: usize = 256 * 1024;

pub(super) struct Outbox {
    state: Mutex<OutboxState>,
    len_max: usize,
    /// For the writer: there is something to write, or nothing more will come.
    ready: Notify,
    /// For the reader: nothing more will be written.
    closed: Notify,
    /// Whether the client understands headers; those that do not get messages without.
    headers: AtomicBool,
}

#[derive(Default)]
struct OutboxState {
    waiting: Vec<u8>,
    /// How much the writer is currently writing, which counts towards the limit too.
    writing_len: usize,
    end: Option<OutboxEnd>,
}

/// Why an outbox accepts nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutboxEnd {
    /// The connection is over; pending output is still written.
    Finished,
    /// The client did not read; pending output was discarded.
    SlowConsumer,
}

impl Outbox {
    pub fn new(len_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            len_max,
            ready: Notify::new(),
            closed: Notify::new(),
            headers: AtomicBool::new(false),
        }
    }

    pub fn set_headers(&self, headers: bool) {
        self.headers.store(headers, Relaxed);
    }

    /// Adds a protocol line.
    pub fn push(&self, line: &[u8]) -> bool {
        self.append(line.len(), |waiting| waiting.extend_from_slice(line))
    }

    /// Lets pending output be written and accepts nothing more.
    pub fn finish(&self) {
        self.state().end.get_or_insert(OutboxEnd::Finished);
        self.ready.notify_one();
    }

    /// Waits until the client proves too slow, or the writer has failed.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }

    pub fn end(&self) -> Option<OutboxEnd> {
        self.state().end
    }

    /// Writes output until the outbox ends or the socket fails. Each outbox has one writer.
    pub async fn write_to(&self, mut socket: impl AsyncWrite + Unpin) {
        let mut batch = Vec::new();
        while self.take(&mut batch).await {
            let mut writing = std::pin::pin!(async {
                socket.write_all(&batch).await?;
                // TLS may buffer what the socket has not accepted yet.
                socket.flush().await
            });
            let written = tokio::select! {
                written = &mut writing => written.is_ok(),
                () = self.ended_early() => {
                    matches!(tokio::time::timeout(LAST_WORDS_MAX, writing).await, Ok(Ok(())))
                }
            };
            if !written {
                break;
            }
        }
        let _ = tokio::time::timeout(LAST_WORDS_MAX, last_words(&mut socket, self.end())).await;
        self.state().end.get_or_insert(OutboxEnd::Finished);
        self.closed.notify_one();
    }

    /// Swaps the pending bytes for the written batch, whose memory is reused.
    async fn take(&self, batch: &mut Vec<u8>) -> bool {
        batch.clear();
        if batch.capacity() > BUFFER_KEPT_LEN_MAX {
            *batch = Vec::new();
        }
        loop {
            {
                let mut state = self.state();
                std::mem::swap(&mut state.waiting, batch);
                state.writing_len = batch.len();
                if !batch.is_empty() {
                    return true;
                }
                if state.end.is_some() {
                    return false;
                }
            }
            self.ready.notified().await;
        }
    }

    /// Waits until the outbox accepts nothing more, while a batch is being written.
    async fn ended_early(&self) {
        while self.end().is_none() {
            self.ready.notified().await;
        }
    }

    /// Adds `len` bytes, or ends the outbox if they do not fit.
    fn append(&self, len: usize, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        let fits = state.waiting.len() + state.writing_len + len <= self.len_max;
        if fits {
            write(&mut state.waiting);
        } else {
            state.end = Some(OutboxEnd::SlowConsumer);
            state.waiting = Vec::new();
        }
        drop(state);
        self.ready.notify_one();
        if !fits {
            self.closed.notify_one();
        }
        fits
    }

    fn state(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn last_words(socket: &mut (impl AsyncWrite + Unpin), end: Option<OutboxEnd>) {
    if end == Some(OutboxEnd::SlowConsumer) {
        let _ = socket.write_all(b"-ERR 'Slow Consumer'\r\n").await;
    }
    let _ = socket.shutdown().await;
}

impl Sink for Outbox {
    fn deliver(&self, sid: u64, message: &Message) -> bool {
        let headers = message.headers.as_ref().filter(|_| self.headers.load(Relaxed));
        let headers_len = headers.map_or(0, Bytes::len);
        let reply_len = message.reply.as_ref().map_or(0, String::len);
        let len = message.subject.len() + reply_len + headers_len + message.payload.len() + LINE_OVERHEAD_MAX;
        self.append(len, |waiting| encode(waiting, sid, message, headers))
    }
}

/// The most that a verb, blanks, line ends and three numbers take.
const LINE_OVERHEAD_MAX: usize = 80;

/// `MSG <subject> <sid> [reply] <length>` or `HMSG … <length of headers> <length of both>`, and the bytes.
fn encode(out: &mut Vec<u8>, sid: u64, message: &Message, headers: Option<&Bytes>) {
    out.extend_from_slice(if headers.is_some() { b"HMSG " } else { b"MSG " });
    out.extend_from_slice(message.subject.as_bytes());
    push_number(out, sid);
    if let Some(reply) = &message.reply {
        out.push(b' ');
        out.extend_from_slice(reply.as_bytes());
    }
    if let Some(headers) = headers {
        push_number(out, headers.len() as u64);
    }
    push_number(out, (headers.map_or(0, Bytes::len) + message.payload.len()) as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(headers.map_or(&[], |headers| headers.as_ref()));
    out.extend_from_slice(&message.payload);
    out.extend_from_slice(b"\r\n");
}

/// A blank and a number.
fn push_number(out: &mut Vec<u8>, number: u64) {
    use std::io::Write as _;
    // Writing to memory does not fail.
    let _ = write!(out, " {number}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::io::AsyncReadExt;

    fn message(reply: Option<&str>, headers: Option<&'static str>) -> Message {
        let reply = reply.map(Into::into);
        Message { reply, headers: headers.map(Into::into), ..Message::new("job.echo", "hello") }
    }

    #[test]
    fn messages_are_encoded_as_clients_read_them() {
        let table = [
            (message(None, None), "MSG job.echo 7 5\r\nhello\r\n"),
            (message(Some("_INBOX.1"), None), "MSG job.echo 7 _INBOX.1 5\r\nhello\r\n"),
            (message(None, Some("NATS/1.0\r\n\r\n")), "HMSG job.echo 7 12 17\r\nNATS/1.0\r\n\r\nhello\r\n"),
            (
                message(Some("r"), Some("NATS/1.0\r\n\r\n")),
                "HMSG job.echo 7 r 12 17\r\nNATS/1.0\r\n\r\nhello\r\n",
            ),
        ];
        let outbox = Outbox::new(1024);
        outbox.set_headers(true);
        for (message, expected) in table {
            assert!(outbox.deliver(7, &message));
            let encoded = std::mem::take(&mut outbox.state().waiting);
            assert_eq!(String::from_utf8(encoded).unwrap(), expected);
        }
    }

    #[test]
    fn a_client_without_headers_gets_the_message_without() {
        let outbox = Outbox::new(1024);
        assert!(outbox.deliver(7, &message(None, Some("NATS/1.0\r\n\r\n"))));
        assert_eq!(outbox.state().waiting, b"MSG job.echo 7 5\r\nhello\r\n");
    }

    #[tokio::test]
    async fn what_waits_is_written_before_the_end() {
        let outbox = Arc::new(Outbox::new(1024));
        let (mut client, server) = tokio::io::duplex(16);
        let writer = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_to(server).await }
        });
        for number in 0..10 {
            assert!(outbox.push(format!("line {number}\r\n").as_bytes()));
        }
        outbox.finish();
        assert!(!outbox.push(b"too late"));
        let mut read = String::new();
        client.read_to_string(&mut read).await.unwrap();
        writer.await.unwrap();
        assert!(read.ends_with("line 8\r\nline 9\r\n"), "{read}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_off_in_bounded_time_and_memory() {
        let outbox = Arc::new(Outbox::new(1024));
        let (client, server) = tokio::io::duplex(16);
        let writer = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_to(server).await }
        });
        assert!(outbox.push(&[b'x'; 600]));
        tokio::task::yield_now().await;
        assert!(outbox.push(&[b'y'; 400]));
        assert!(!outbox.push(&[b'z'; 400]), "what is being written counts too");
        outbox.closed().await;
        assert_eq!(outbox.end(), Some(OutboxEnd::SlowConsumer));
        assert_eq!(outbox.state().waiting.capacity(), 0);
        writer.await.unwrap();
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_that_reads_on_is_told_why() {
        let outbox = Arc::new(Outbox::new(1024));
        let (mut client, server) = tokio::io::duplex(16);
        let writer = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_to(server).await }
        });
        assert!(outbox.push(&[b'x'; 1000]));
        tokio::task::yield_now().await;
        assert!(!outbox.push(&[b'y'; 1000]));
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.unwrap();
        writer.await.unwrap();
        assert_eq!(&read[1000..], b"-ERR 'Slow Consumer'\r\n");
    }
}
