//! A subscription to kept messages: a durable consumer that all members of a group share.
//!
//! Messages are pulled, never pushed: as many as there is room for, and more when these have been taken. So a slow
//! group leaves its messages on the server, for others. [`Acks`] tracks every delivered message from the moment it
//! arrives, even while it waits here.

use super::acks::Acks;
use super::errors::{away, words};
use super::headers;
use super::link::NatsLink;
use super::options::NatsOptions;
use crate::{BusError, Delivery, MessageKey, MessageOrigin, Subscription};
use async_nats::jetstream::consumer::pull::{BatchConfig, Config};
use async_nats::jetstream::consumer::{AckPolicy, Consumer};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, StatusCode, Subscriber};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Messages requested at once. The next request follows when there is room for as many again.
const BATCH_LEN: usize = 128;
/// Messages buffered here: while one batch is processed, the next is on its way.
const INBOX_LEN_MAX: usize = 2 * BATCH_LEN;
const DELIVER_MAX: i64 = 100;
const ACK_PENDING_MAX: i64 = 2_048;
/// How long the server keeps a request that it has no message for.
const ASKS_EVERY: Duration = Duration::from_secs(5);
/// How often it sends a heartbeat meanwhile, and how long its silence is tolerated.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);
const SILENCE_MAX: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(500);

/// What a subscription needs of its bus.
pub(super) struct Source {
    pub client: Client,
    pub context: Context,
    pub acks: Acks,
    pub link: watch::Receiver<NatsLink>,
    pub origin: MessageOrigin,
    pub backoff: Vec<Duration>,
}

impl Source {
    pub async fn subscribe(self, stream: &str, subject: &str, queue: &str) -> Result<Subscription, BusError> {
        let config = Config {
            durable_name: Some(durable_name(queue, subject)),
            filter_subject: subject.to_owned(),
            ack_policy: AckPolicy::Explicit,
            // The server uses the first step of the backoff for it, whatever is set here.
            ack_wait: self.backoff.first().copied().unwrap_or_default(),
            backoff: self.backoff.clone(),
            max_deliver: DELIVER_MAX,
            max_ack_pending: ACK_PENDING_MAX,
            ..Config::default()
        };
        let consumer = consumer(&self.context, stream, &config).await?;
        let inbox = self.client.new_inbox();
        let answers = self.client.subscribe(format!("{inbox}.*")).await.map_err(|error| away(&error))?;
        let (deliveries, subscription) = mpsc::channel(INBOX_LEN_MAX);
        let durable = config.durable_name.clone().unwrap_or_default();
        let puller = Puller {
            stream: stream.into(),
            durable: durable.into(),
            config,
            consumer,
            inbox,
            answers,
            request: 0,
            is_in_trouble: false,
            source: self,
        };
        tokio::spawn(puller.run(deliveries));
        Ok(Subscription::new(subscription))
    }
}

struct Puller {
    stream: Arc<str>,
    durable: Arc<str>,
    config: Config,
    consumer: Consumer<Config>,
    inbox: String,
    answers: Subscriber,
    /// The number of the last request; responses to an older one are ignored.
    request: u64,
    /// Already logged.
    is_in_trouble: bool,
    source: Source,
}

/// What an answer of the server is.
enum PullReply {
    Delivery(Box<Delivery>),
    StillThere,
    /// The request has been served, or has expired.
    Over,
    /// The consumer is gone, or was moved.
    Trouble(String),
    Old,
}

/// How a request ended.
enum PullEnd {
    Over,
    Trouble(String),
    /// The subscription was dropped, or the client was closed.
    Closed,
}

impl Puller {
    async fn run(mut self, deliveries: mpsc::Sender<Delivery>) {
        loop {
            if !self.is_linked(&deliveries).await {
                return self.leave().await;
            }
            // Quota first, so that what comes has a place.
            let Ok(room) = deliveries.reserve_many(BATCH_LEN).await else { return self.leave().await };
            match self.ask(&deliveries, room).await {
                PullEnd::Over => self.is_in_trouble = false,
                PullEnd::Closed => return self.leave().await,
                PullEnd::Trouble(why) => {
                    if !std::mem::replace(&mut self.is_in_trouble, true) {
                        tracing::warn!(durable = %self.durable, why, "messages cannot be fetched; retrying");
                    }
                    self.repair(&deliveries).await;
                }
            }
        }
    }

    /// Waits for the server: requests made while it is unavailable would all arrive at once when it is back.
    async fn is_linked(&mut self, deliveries: &mpsc::Sender<Delivery>) -> bool {
        tokio::select! {
            linked = self.source.link.wait_for(|link| *link == NatsLink::Connected) => linked.is_ok(),
            () = deliveries.closed() => false,
        }
    }

    /// Requests as many messages as there is room for, and passes on those that arrive.
    async fn ask(
        &mut self,
        deliveries: &mpsc::Sender<Delivery>,
        mut room: mpsc::PermitIterator<'_, Delivery>,
    ) -> PullEnd {
        self.request += 1;
        let mut link = self.source.link.clone();
        link.mark_unchanged();
        let batch = BatchConfig {
            batch: room.len(),
            expires: Some(ASKS_EVERY),
            idle_heartbeat: HEARTBEAT_EVERY,
            ..BatchConfig::default()
        };
        let reply = format!("{}.{}", self.inbox, self.request).into();
        if let Err(error) = self.consumer.request_batch(batch, reply).await {
            return PullEnd::Trouble(words(&error));
        }
        let mut silent_at = Instant::now() + SILENCE_MAX;
        loop {
            let answer = tokio::select! {
                answer = self.answers.next() => answer,
                () = deliveries.closed() => return PullEnd::Closed,
                // A new connection does not know the requests made on the old one.
                changed = link.changed() => return if changed.is_ok() { PullEnd::Over } else { PullEnd::Closed },
                () = tokio::time::sleep_until(silent_at) => return PullEnd::Over,
            };
            let Some(answer) = answer else { return PullEnd::Closed };
            silent_at = Instant::now() + SILENCE_MAX;
            match self.read(answer) {
                PullReply::StillThere | PullReply::Old => {}
                PullReply::Over => return PullEnd::Over,
                PullReply::Trouble(why) => return PullEnd::Trouble(why),
                PullReply::Delivery(delivery) if deliveries.is_closed() => delivery.ack.later(Duration::ZERO),
                PullReply::Delivery(delivery) => {
                    if let Some(place) = room.next() {
                        place.send(*delivery);
                    } else if deliveries.send(*delivery).await.is_err() {
                        return PullEnd::Closed;
                    }
                    if room.len() == 0 {
                        return PullEnd::Over;
                    }
                }
            }
        }
    }

    fn read(&self, answer: async_nats::Message) -> PullReply {
        let Some(status) = answer.status else { return self.delivery(answer) };
        let is_old = answer.subject.rsplit('.').next() != Some(self.request.to_string().as_str());
        match status {
            _ if is_old => PullReply::Old,
            StatusCode::IDLE_HEARTBEAT => PullReply::StillThere,
            StatusCode::TIMEOUT | StatusCode::NOT_FOUND => PullReply::Over,
            StatusCode::NO_RESPONDERS => PullReply::Trouble("the consumer is not there".to_owned()),
            _ => PullReply::Trouble(answer.description.unwrap_or_else(|| status.to_string())),
        }
    }

    fn delivery(&self, message: async_nats::Message) -> PullReply {
        let message = jetstream::Message { message, context: self.source.context.clone() };
        let from = match message.info() {
            Ok(info) => MessageKey {
                stream: self.stream.clone(),
                durable: self.durable.clone(),
                seq: info.stream_sequence,
                kept_at: (info.published.unix_timestamp_nanos() / 1_000_000) as i64,
                delivered: info.delivered.unsigned_abs(),
            },
            Err(error) => return PullReply::Trouble(format!("a message that was not kept: {error}")),
        };
        let mut message = message.message;
        let Some(reply) = message.reply.take() else { return PullReply::Old };
        let ack = self.source.acks.open(reply);
        let message = headers::incoming(message, &self.source.origin);
        PullReply::Delivery(Box::new(Delivery { message, ack, from: Some(from) }))
    }

    /// Withdraws the last request, and releases what the server sent before it knew.
    async fn leave(mut self) {
        if self.answers.drain().await.is_err() {
            return;
        }
        while let Some(answer) = self.answers.next().await {
            if let PullReply::Delivery(delivery) = self.read(answer) {
                delivery.ack.later(Duration::ZERO);
            }
        }
    }

    /// Recreates the consumer if it is gone; the streams are handled elsewhere.
    async fn repair(&mut self, deliveries: &mpsc::Sender<Delivery>) {
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = deliveries.closed() => return,
        }
        match consumer(&self.source.context, &self.stream, &self.config).await {
            Ok(consumer) => self.consumer = consumer,
            Err(error) => tracing::debug!(%error, "the consumer could not be created"),
        }
    }
}

async fn consumer(context: &Context, stream: &str, config: &Config) -> Result<Consumer<Config>, BusError> {
    context.create_consumer_on_stream(config.clone(), stream).await.map_err(|error| {
        let name = config.durable_name.as_deref().unwrap_or_default();
        BusError::Unavailable(format!("the consumer {name} of {stream} cannot be set up: {}", words(&error)))
    })
}

/// As the reference names them.
fn durable_name(queue: &str, subject: &str) -> String {
    let plain = |text: &str| text.replace('.', "_").replace('*', "STAR").replace('>', "GT");
    format!("dur_{}__{}", plain(queue), plain(subject))
}

impl NatsOptions {
    /// Whether the server's ack wait is longer than the interval between two progress reports.
    pub(super) fn has_time(&self) -> bool {
        self.backoff.first().is_some_and(|first| self.progress_every * 2 < *first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durables_are_named_as_in_the_reference() {
        assert_eq!(
            durable_name("cordum-scheduler", "sys.job.submit"),
            "dur_cordum-scheduler__sys_job_submit"
        );
        assert_eq!(durable_name("a.b", "reveille.*.>"), "dur_a_b__reveille_STAR_GT");
    }
}
