//! Detects whether any subscriber received a message, on a server that does not report it.
//!
//! A NATS server answers a message that wants a reply with status 503 when nobody listens, and says nothing when
//! somebody does. So each message is sent with a reply subject of ours, and each batch is followed by a marker to
//! ourselves. The server handles one connection in order: a 503 before the marker means that no subscriber received
//! the message, the marker alone that one did. This takes one round trip, no timeout, and any number can be in
//! flight.
//!
//! Between clusters a server assumes that the others listen until it has learned otherwise; there, only the worker's
//! silence tells.

use super::errors;
use super::headers::HEARD_PREFIX;
use super::link::{self, ConnectionLog, NatsLink};
use crate::{BusError, DeliveryReport};
use async_nats::{Client, HeaderMap, Message, PublishError, PublishErrorKind, StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// No answer from the server within this time counts as no server. The message may have been sent all the same.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Messages before one marker.
const AT_ONCE_MAX: usize = 256;

/// The handle.
pub(super) struct ListenerProbe {
    client: Client,
    log: Arc<ConnectionLog>,
    questions: mpsc::Sender<Probe>,
}

/// What to send; nothing, if only the round trip counts.
type Outgoing = Option<(String, HeaderMap, Bytes)>;

struct Probe {
    outgoing: Outgoing,
    asker: oneshot::Sender<Result<DeliveryReport, BusError>>,
}

impl ListenerProbe {
    /// The second value is the task.
    pub async fn open(
        client: Client,
        log: Arc<ConnectionLog>,
    ) -> Result<(Self, impl Future<Output = ()> + Send + 'static), BusError> {
        let unique = |inbox: String| inbox.rsplit('.').next().map(str::to_owned).unwrap_or(inbox);
        let inbox = format!("{HEARD_PREFIX}{}", unique(client.new_inbox()));
        let answers = client.subscribe(format!("{inbox}.*")).await.map_err(|error| errors::away(&error))?;
        let marker = unique(client.new_inbox());
        let (questions, asked) = mpsc::channel(AT_ONCE_MAX);
        let (waiting, alarmed) = (BTreeMap::new(), HashSet::new());
        let task = ProbeTask { client: client.clone(), inbox, marker, number_last: 0, waiting, alarmed };
        Ok((Self { client, log, questions }, task.run(asked, answers)))
    }

    /// Publishes, and returns whether any subscriber received it.
    pub async fn publish(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<DeliveryReport, BusError> {
        self.ask(Some((subject, headers, payload))).await
    }

    /// Waits until the server has handled everything sent so far.
    pub async fn round_trip(&self) -> Result<(), BusError> {
        self.ask(None).await.map(drop)
    }

    async fn ask(&self, outgoing: Outgoing) -> Result<DeliveryReport, BusError> {
        self.check_link()?;
        let attempts = self.attempts();
        let (asker, answer) = oneshot::channel();
        let answer = async {
            self.questions.send(Probe { outgoing, asker }).await.ok()?;
            answer.await.ok()
        };
        match tokio::time::timeout(ANSWER_MAX, answer).await {
            Ok(Some(Ok(DeliveryReport::Nobody))) => Ok(DeliveryReport::Nobody),
            // The message may have gone to the connection that broke, and the marker to the next one.
            Ok(Some(Ok(heard))) if self.attempts() == attempts => Ok(heard),
            Ok(Some(Err(error))) => Err(error),
            Ok(_) => Err(BusError::Unavailable("the connection to NATS broke".to_owned())),
            Err(_) => Err(BusError::Unavailable("NATS does not answer".to_owned())),
        }
    }

    pub fn check_link(&self) -> Result<(), BusError> {
        match link::now(&self.client) {
            NatsLink::Connected => Ok(()),
            NatsLink::Away => Err(BusError::Unavailable("NATS is away".to_owned())),
        }
    }

    fn attempts(&self) -> u64 {
        self.log.attempts.load(Ordering::SeqCst)
    }
}

/// Sends, and passes the server's answers to those who wait for them.
struct ProbeTask {
    client: Client,
    inbox: String,
    /// Where markers go in the inbox. Workers see the subjects of their own messages, but never this one.
    marker: String,
    number_last: u64,
    /// In the order in which they were sent.
    waiting: BTreeMap<u64, oneshot::Sender<Result<DeliveryReport, BusError>>>,
    /// Streams that were already logged.
    alarmed: HashSet<String>,
}

impl ProbeTask {
    async fn run(mut self, mut asked: mpsc::Receiver<Probe>, mut answers: Subscriber) {
        let mut questions = Vec::with_capacity(AT_ONCE_MAX);
        loop {
            tokio::select! {
                answer = answers.next() => match answer {
                    Some(answer) => self.hear(&answer),
                    None => return,
                },
                count = asked.recv_many(&mut questions, AT_ONCE_MAX) => {
                    if count == 0 {
                        return;
                    }
                    for question in questions.drain(..) {
                        self.send(question).await;
                    }
                    self.mark().await;
                }
            }
        }
    }

    async fn send(&mut self, Probe { outgoing, asker }: Probe) {
        self.number_last += 1;
        if let Some((subject, headers, payload)) = outgoing {
            let (reply, len) = (format!("{}.{}", self.inbox, self.number_last), payload.len());
            let sent = self.client.publish_with_reply_and_headers(subject, reply, headers, payload).await;
            if let Err(error) = sent {
                let _ = asker.send(Err(self.unsent(&error, len)));
                return;
            }
        }
        self.waiting.insert(self.number_last, asker);
    }

    /// If this fails those who wait time out, and their entries are dropped at the next marker.
    async fn mark(&self) {
        let to = format!("{}.{}", self.inbox, self.marker);
        if let Err(error) = self.client.publish(to, self.number_last.to_string().into()).await {
            tracing::debug!(%error, "the marker of a listener probe could not be sent");
        }
    }

    fn hear(&mut self, answer: &Message) {
        let place = answer.subject.rsplit('.').next().unwrap_or_default();
        if place == self.marker {
            let number = std::str::from_utf8(&answer.payload).ok().and_then(|number| number.parse().ok());
            self.hear_marker(number.unwrap_or(0));
        } else if answer.status == Some(StatusCode::NO_RESPONDERS) {
            let asker = place.parse().ok().and_then(|number: u64| self.waiting.remove(&number));
            // The caller may have timed out.
            asker.map(|asker| asker.send(Ok(DeliveryReport::Nobody)));
        } else if let Some(stream) =
            keeper(&answer.payload).filter(|stream| self.alarmed.insert(stream.clone()))
        {
            tracing::error!(
                stream,
                "a stream captures the workers' subjects: whether a worker listens cannot be known"
            );
        }
        // Anything else is an unrequested reply from a subscriber that received the message.
    }

    /// All messages up to here have arrived, and those without a subscriber are known.
    fn hear_marker(&mut self, number: u64) {
        let later = self.waiting.split_off(&(number + 1));
        for (_, asker) in std::mem::replace(&mut self.waiting, later) {
            let _ = asker.send(Ok(DeliveryReport::Somebody { by: None }));
        }
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

/// The stream that reports having stored a message.
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
