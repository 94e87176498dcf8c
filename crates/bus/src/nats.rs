//! The bus over NATS servers, for many machines.
//!
//! Jobs, results and dead letters are kept in streams (JetStream) until they have been processed; everything else is
//! core NATS, which keeps nothing. The client reconnects for ever. While the server is unavailable, publishing
//! returns an error, and subscriptions wait; they resume by themselves.

mod acks;
mod checks;
mod errors;
mod headers;
mod link;
mod listener_probe;
mod options;
mod pull;
mod streams;

pub use checks::examine;
pub use errors::NatsOpenError;
pub use link::NatsLink;
pub use options::{Login, NatsOptions, NatsTls, Secret};

use crate::{
    Bus, BusError, Delivery, DeliveryReport, Listener, Message, MessageOrigin, Subscription, subject,
};
use acks::Acks;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{ContextBuilder, PublishErrorKind};
use async_nats::{Client, ConnectOptions, Subscriber};
use futures_util::StreamExt;
use link::ConnectionLog;
use listener_probe::ListenerProbe;
use pull::Source;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use streams::Streams;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Messages of one core subscription that wait in the client before the server's next ones are dropped.
const CORE_INBOX_LEN_MAX: usize = 65_536;
/// Of these, how many are already in our own channel.
const HANDED_OVER_MAX: usize = 256;
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long a stream may take to confirm a message.
const KEPT_MAX: Duration = Duration::from_secs(5);
/// How long the server may take to create streams and consumers, on disk and for all replicas at once.
const REQUEST_MAX: Duration = Duration::from_secs(30);
/// Two of these without an answer mean a dead connection.
const PING_EVERY: Duration = Duration::from_secs(10);

/// A handle; clones share one connection.
#[derive(Clone)]
pub struct NatsBus {
    shared: Arc<NatsShared>,
}

struct NatsShared {
    client: Client,
    context: Context,
    options: NatsOptions,
    streams: Streams,
    probe: ListenerProbe,
    acks: Acks,
    log: Arc<ConnectionLog>,
    link: watch::Receiver<NatsLink>,
    /// They end with the bus.
    _tasks: JoinSet<()>,
}

impl NatsBus {
    /// Connects, and sets up the streams. Everything that must be right on the server is checked here.
    pub async fn open(options: NatsOptions) -> Result<Self, NatsOpenError> {
        assert!(options.has_time(), "progress must be told at least twice before the first back-off ends");
        let log = Arc::new(ConnectionLog::default());
        let client = connect(&options, &log).await?;
        let context = ContextBuilder::new()
            .timeout(REQUEST_MAX)
            .ack_timeout(KEPT_MAX)
            .backpressure_on_inflight(true)
            .build(client.clone());
        check_jetstream(&context)
            .await
            .map_err(|why| NatsOpenError::NoJetStream { servers: options.places(), why })?;
        let streams = Streams::new(&options);
        Box::pin(streams.set_up(&context)).await?;
        if options.stream_replicas == 1 {
            tracing::warn!("NATS keeps one replica of each stream: a lost disk loses jobs");
        }

        let opened = ListenerProbe::open(client.clone(), log.clone()).await;
        let (probe, probe_task) = opened
            .map_err(|error| NatsOpenError::Away { servers: options.places(), why: error.to_string() })?;
        let (acks, desk) = Acks::new(client.clone(), options.progress_every);
        let (shows, link) = watch::channel(NatsLink::Connected);
        tokio::spawn(desk);
        let mut tasks = JoinSet::new();
        tasks.spawn(probe_task);
        probe.round_trip().await.map_err(|error| NatsOpenError::Deaf {
            servers: options.places(),
            inbox: format!("{}>", headers::HEARD_PREFIX),
            why: error.to_string(),
        })?;
        tasks.spawn(link::watch(client.clone(), log.clone(), shows));
        tasks.spawn(streams.clone().keep_up(context.clone(), link.clone()));
        let shared = NatsShared { client, context, options, streams, probe, acks, log, link, _tasks: tasks };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Whether the server is connected, now and from now on.
    pub fn state(&self) -> watch::Receiver<NatsLink> {
        self.shared.link.clone()
    }

    pub fn is_connected(&self) -> bool {
        link::now(&self.shared.client) == NatsLink::Connected
    }

    /// Waits until the server has received everything sent so far: before shutdown, so that nothing that was done is
    /// done again.
    pub async fn flush(&self) -> Result<(), BusError> {
        self.shared.acks.flush().await;
        self.shared.probe.round_trip().await
    }

    /// Publishes to a stream, and waits until the stream has stored the message.
    async fn keep(&self, message: Message) -> Result<DeliveryReport, BusError> {
        let NatsShared { context, client, options, probe, .. } = &*self.shared;
        probe.check_link()?;
        let headers = headers::outgoing(&message, &options.replica);
        let Message { subject, payload, .. } = message;
        let len = payload.len();
        let kept = async { context.publish_with_headers(subject.clone(), headers, payload).await?.await };
        match tokio::time::timeout(KEPT_MAX, kept).await {
            Ok(Ok(_)) => Ok(DeliveryReport::Somebody { by: None }),
            Ok(Err(error)) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                Err(BusError::TooLarge { len, max: client.max_payload() })
            }
            Ok(Err(error)) => Err(errors::unkept(&error, &subject)),
            Err(_) => Err(BusError::Unavailable(format!("NATS did not say in time that it keeps {subject}"))),
        }
    }

    /// The server tells the requester if there are no responders, so we need not.
    async fn request(&self, message: Message, reply: String) -> Result<DeliveryReport, BusError> {
        let NatsShared { client, options, probe, .. } = &*self.shared;
        probe.check_link()?;
        let headers = headers::outgoing(&message, &options.replica);
        let sent = client.publish_with_reply_and_headers(message.subject, reply, headers, message.payload);
        sent.await.map_err(|error| errors::away(&error))?;
        Ok(DeliveryReport::Somebody { by: None })
    }
}

#[async_trait::async_trait]
impl Bus for NatsBus {
    fn is_up(&self) -> bool {
        self.is_connected()
    }

    async fn publish(&self, mut message: Message) -> Result<DeliveryReport, BusError> {
        for subject in [Some(&message.subject), message.reply.as_ref()].into_iter().flatten() {
            if !subject::is_subject(subject) {
                return Err(BusError::BadSubject(subject.clone()));
            }
        }
        let NatsShared { options, streams, probe, .. } = &*self.shared;
        if streams.keeping(&message.subject).is_some() {
            return self.keep(message).await;
        }
        if let Some(reply) = message.reply.take() {
            return self.request(message, reply).await;
        }
        let headers = headers::outgoing(&message, &options.replica);
        probe.publish(message.subject, headers, message.payload).await
    }

    async fn subscribe(&self, subject: &str, queue: Option<&str>) -> Result<Subscription, BusError> {
        if !subject::is_pattern(subject) {
            return Err(BusError::BadSubject(subject.to_owned()));
        }
        let NatsShared { client, context, options, streams, probe, acks, link, .. } = &*self.shared;
        if let Some((stream, queue)) = streams.keeping(subject).zip(queue) {
            let source = Source {
                client: client.clone(),
                context: context.clone(),
                acks: acks.clone(),
                link: link.clone(),
                origin: options.origin.clone(),
                backoff: options.backoff.clone(),
            };
            return source.subscribe(stream, subject, queue).await;
        }
        let outcome = match queue {
            Some(queue) => client.queue_subscribe(subject.to_owned(), queue.to_owned()).await,
            None => client.subscribe(subject.to_owned()).await,
        };
        let subscriber = outcome.map_err(|error| errors::away(&error))?;
        // From now on messages published on any connection are received.
        probe.round_trip().await?;
        let (deliveries, subscription) = mpsc::channel(HANDED_OVER_MAX);
        tokio::spawn(hand_over(subscriber, deliveries, options.origin.clone()));
        Ok(Subscription::new(subscription))
    }

    /// A NATS server does not report who listens on what.
    fn lost(&self) -> u64 {
        self.shared.log.slow_consumers.load(Ordering::Relaxed)
    }

    fn shows_listeners(&self) -> bool {
        false
    }

    async fn listeners_changed(&self) -> Vec<Listener> {
        std::future::pending().await
    }
}

async fn connect(options: &NatsOptions, log: &Arc<ConnectionLog>) -> Result<Client, NatsOpenError> {
    let (attempts, events) = (log.clone(), log.clone());
    let connect = ConnectOptions::new()
        .name(format!("reveille {}", options.replica))
        .connection_timeout(CONNECT_MAX)
        .request_timeout(Some(REQUEST_MAX))
        .ping_interval(PING_EVERY)
        .subscription_capacity(CORE_INBOX_LEN_MAX)
        .max_reconnects(None)
        .reconnect_delay_callback(move |attempt| attempts.next_attempt(attempt))
        .event_callback(move |event| {
            let events = events.clone();
            async move { events.note(&event) }
        });
    let connected = Box::pin(options.apply(connect)?.connect(options.addresses()?)).await;
    connected.map_err(|error| errors::unconnected(&error, options.places(), options.login().words()))
}

/// Sent by hand: the client cannot parse an older server's account information.
async fn check_jetstream(context: &Context) -> Result<(), String> {
    let account: serde_json::Value =
        context.request("INFO", &()).await.map_err(|error| errors::words(&error))?;
    match account.pointer("/error/description") {
        Some(problem) => Err(problem.as_str().unwrap_or("it does not say why").to_owned()),
        None => Ok(()),
    }
}

/// Moves messages from the client's channel to the subscriber's, in our own type.
async fn hand_over(mut subscriber: Subscriber, deliveries: mpsc::Sender<Delivery>, origin: MessageOrigin) {
    loop {
        let message = tokio::select! {
            message = subscriber.next() => message,
            () = deliveries.closed() => return,
        };
        let Some(message) = message else { return };
        if deliveries.send(headers::incoming(message, &origin).into()).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_test_servers::Nats;

    #[tokio::test]
    async fn what_is_lost_because_we_are_slow_is_counted() {
        let nats = Nats::start();
        let bus = NatsBus::open(NatsOptions::new([nats.url()])).await.unwrap();
        let _unread = bus.subscribe("sys.heartbeat", None).await.unwrap();
        let foreign_client = async_nats::connect(nats.url()).await.unwrap();
        for _ in 0..CORE_INBOX_LEN_MAX + 2 * HANDED_OVER_MAX {
            foreign_client.publish("sys.heartbeat", "beat".into()).await.unwrap();
        }
        let counted = async {
            while bus.lost() == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), counted).await.expect("it does not take that long");
    }
}
