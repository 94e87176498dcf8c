//! Whether anybody heard a message, from a server that does not say so.
//!
//! A NATS server answers a message that wants a reply with status 503 when nobody listens, and says nothing when
//! somebody does. So each message goes out with a reply subject of ours, followed at once by an empty marker to
//! that same subject. The server deals with one connection in order: a 503 before the marker means that nobody
//! heard, the marker alone that somebody did. One trip, no guess about time, any number on their way.
//!
//! Between clusters a server believes that the others listen until it has learned better; there, only the
//! worker's silence tells.

use super::errors;
use super::headers::HEARD_PREFIX;
use super::link::{self, Link, Log};
use crate::{BusError, Heard};
use async_nats::{Client, HeaderMap, PublishError, PublishErrorKind, StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// No answer from the server within this time counts as no server. The message may have gone out all the same.
const ANSWER_MAX: Duration = Duration::from_secs(2);

pub(super) struct Hearing {
    client: Client,
    log: Arc<Log>,
    inbox: String,
    number_last: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Heard>>>,
}

impl Hearing {
    /// The second value is for [`Hearing::listen`].
    pub async fn open(client: Client, log: Arc<Log>) -> Result<(Arc<Self>, Subscriber), BusError> {
        let unique = client.new_inbox();
        let inbox = format!("{HEARD_PREFIX}{}", unique.rsplit('.').next().unwrap_or(&unique));
        let answers = client.subscribe(format!("{inbox}.*")).await.map_err(|error| errors::away(&error))?;
        let (number_last, waiting) = (AtomicU64::new(0), Mutex::default());
        Ok((Arc::new(Self { client, log, inbox, number_last, waiting }), answers))
    }

    /// Publishes, and says whether anybody got it.
    pub async fn publish(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<Heard, BusError> {
        let len = payload.len();
        let send = async |reply: String| {
            let sent =
                self.client.publish_with_reply_and_headers(subject.to_owned(), reply, headers, payload);
            sent.await.map_err(|error| self.unsent(&error, len))
        };
        self.ask(send).await
    }

    /// Waits until the server has dealt with everything that was sent so far.
    pub async fn round_trip(&self) -> Result<(), BusError> {
        self.ask(async |_| Ok(())).await.map(drop)
    }

    async fn ask(&self, send: impl AsyncFnOnce(String) -> Result<(), BusError>) -> Result<Heard, BusError> {
        self.check_link()?;
        let attempts = self.attempts();
        let question = self.question();
        let answer = async {
            send(question.reply.clone()).await?;
            let marker = self.client.publish(question.reply.clone(), Bytes::new());
            marker.await.map_err(|error| errors::away(&error))?;
            Ok(question.answer.await.ok())
        };
        match tokio::time::timeout(ANSWER_MAX, answer).await {
            Ok(Ok(Some(Heard::Nobody))) => Ok(Heard::Nobody),
            // The message may have gone to the connection that broke, and the marker to the next one.
            Ok(Ok(Some(heard))) if self.attempts() == attempts => Ok(heard),
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) => Err(BusError::Unavailable("the connection to NATS broke".to_owned())),
            Err(_) => Err(BusError::Unavailable("NATS does not answer".to_owned())),
        }
    }

    pub fn check_link(&self) -> Result<(), BusError> {
        match link::now(&self.client) {
            Link::Connected => Ok(()),
            Link::Away => Err(BusError::Unavailable("NATS is away".to_owned())),
        }
    }

    /// Hands the server's answers to those who wait for them.
    pub async fn listen(self: Arc<Self>, mut answers: Subscriber) {
        let mut alarmed = HashSet::new();
        while let Some(answer) = answers.next().await {
            let heard = match answer.status {
                Some(StatusCode::NO_RESPONDERS) => Heard::Nobody,
                _ if answer.payload.is_empty() => Heard::Somebody { by: None },
                // Whoever got the message answered it, which nobody asked for; the marker is still to come.
                _ => {
                    if let Some(stream) =
                        keeper(&answer.payload).filter(|stream| alarmed.insert(stream.clone()))
                    {
                        tracing::error!(
                            stream,
                            "a stream keeps what is meant for workers: whether they are there cannot be told"
                        );
                    }
                    continue;
                }
            };
            let number = answer.subject.rsplit('.').next().and_then(|number| number.parse().ok());
            let asker = number.and_then(|number: u64| self.waiting().remove(&number));
            // Of two answers the first counts, and the asker may have lost patience.
            if let Some(asker) = asker {
                let _ = asker.send(heard);
            }
        }
    }

    fn question(&self) -> Question<'_> {
        let number = self.number_last.fetch_add(1, Ordering::Relaxed) + 1;
        let (asker, answer) = oneshot::channel();
        self.waiting().insert(number, asker);
        Question {
            reply: format!("{}.{number}", self.inbox),
            answer,
            _entry: Entry { hearing: self, number },
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Heard>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub fn waiting_len(&self) -> usize {
        self.waiting().len()
    }

    fn attempts(&self) -> u64 {
        self.log.attempts.load(Ordering::SeqCst)
    }

    fn unsent(&self, error: &PublishError, len: usize) -> BusError {
        match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => {
                BusError::TooLarge { len, max: self.client.max_payload() }
            }
            PublishErrorKind::InvalidSubject | PublishErrorKind::Send => errors::away(error),
        }
    }
}

/// One message on its way.
struct Question<'a> {
    reply: String,
    answer: oneshot::Receiver<Heard>,
    _entry: Entry<'a>,
}

/// A place among those who wait; given up with the question, however that ends.
struct Entry<'a> {
    hearing: &'a Hearing,
    number: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.hearing.waiting().remove(&self.number);
    }
}

/// The stream that says it has kept a message.
fn keeper(payload: &[u8]) -> Option<String> {
    let said: serde_json::Value = serde_json::from_slice(payload).ok()?;
    said.get("seq")?;
    Some(said.get("stream")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_told_from_a_worker_by_its_answer() {
        assert_eq!(keeper(br#"{"stream":"JOBS","seq":7}"#).as_deref(), Some("JOBS"));
        for answer in [&b"{}"[..], b"ok", br#"{"stream":"JOBS"}"#, br#"{"seq":1,"stream":2}"#] {
            assert_eq!(keeper(answer), None);
        }
    }
}
