//! One NATS client, from its first line to its last.

use super::NatsLimits;
use super::connect::ConnectOptions;
use super::info::{self, Demands};
use super::outbox::{Outbox, OutboxEnd};
use super::parse::{NatsParser, Operation, ParseError, Publish};
use crate::accept::closed;
use crate::gate::{Gate, Guest, Listening, Role};
use crate::input::{Input, read_more};
use crate::linger::linger;
use crate::session::{KeyEnd, KeySession};
use crate::tls::DoorTls;
use crate::unauthenticated::{STRANGER_INPUT_LEN_MAX, UnauthenticatedClient};
use bytes::{Bytes, BytesMut};
use reveille_bus::{BusError, ClientInfo, DeliveryReport, LocalBus, LocalClient, Message, MessageSender};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

/// Tells a requester that its request has no responders.
const NO_RESPONDERS: &[u8] = b"NATS/1.0 503\r\n\r\n";

/// What all connections of the door share.
pub(super) struct NatsDoor {
    bus: LocalBus,
    gate: Arc<dyn Gate>,
    limits: NatsLimits,
    address: Option<SocketAddr>,
    pub tls: Option<DoorTls>,
    clients_seen: AtomicU64,
}

impl NatsDoor {
    pub fn new(
        bus: LocalBus,
        gate: Arc<dyn Gate>,
        limits: NatsLimits,
        address: Option<SocketAddr>,
        tls: Option<DoorTls>,
    ) -> Self {
        Self { bus, gate, limits, address, tls, clients_seen: AtomicU64::new(0) }
    }
}

/// A client that has read INFO and sent nothing yet.
pub(super) struct Newcomer {
    client_id: u64,
    stranger: UnauthenticatedClient,
    /// The guest it is without a secret, if the door is open.
    nobody: Option<Guest>,
}

/// Writes INFO, which fits into a new socket's buffer. It is in the clear, because it is what tells the client to
/// begin TLS.
pub(super) async fn greet(
    socket: &mut (impl AsyncWrite + Unpin),
    stranger: UnauthenticatedClient,
    door: &NatsDoor,
) -> io::Result<Newcomer> {
    let nobody = door.gate.admit(None).await.ok();
    let client_id = door.clients_seen.fetch_add(1, Relaxed) + 1;
    let demands = Demands { secret: nobody.is_none(), tls: door.tls.is_some() };
    let info = info::line(door.address, &door.limits, client_id, &demands);
    socket.write_all(info.as_bytes()).await?;
    Ok(Newcomer { client_id, stranger, nobody })
}

/// Serves one client until either side ends it.
pub(super) async fn run(
    Newcomer { client_id, stranger, nobody }: Newcomer,
    mut reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    door: Arc<NatsDoor>,
    shutdown: watch::Receiver<bool>,
) {
    let outbox = Arc::new(Outbox::new(door.limits.outbox_len_max));
    let session = Arc::new(KeySession::new(Arc::clone(&door.gate)));
    let mut connection = NatsConnection {
        door,
        session: Arc::clone(&session),
        outbox: Arc::clone(&outbox),
        // Where no key is asked for, nobody is a stranger.
        stranger: nobody.is_none().then_some(stranger),
        nobody,
        client: None,
        guest: None,
        options: ConnectOptions::default(),
    };
    let reading = async {
        // Around all of it: a client that waits for a full subscription of ours must be cut off too.
        let outcome = tokio::select! {
            biased;
            end = session.ended() => Err(end.into()),
            outcome = connection.read(&mut reader, shutdown) => outcome,
        };
        // From here on the bus delivers nothing to this client.
        connection.client = None;
        if let Err(violation) = outcome {
            connection.complain(&violation.to_string());
            tracing::debug!(client_id, client = connection.options.name, %violation, "a NATS client was cut off");
        }
        outbox.finish();
        if outcome.is_err() {
            linger(&mut reader).await;
        }
    };
    tokio::join!(reading, outbox.write_to(writer));
    if outbox.end() == Some(OutboxEnd::SlowConsumer) {
        let client = connection.options.name;
        tracing::warn!(client_id, client, "a NATS client was cut off, it did not read what it subscribed to");
    }
}

/// Why a client is disconnected. The messages are those of a NATS server.
#[derive(Debug, Clone, Copy, thiserror::Error)]
enum Violation {
    #[error(transparent)]
    Protocol(#[from] ParseError),
    #[error("Authorization Violation")]
    Authorization,
    #[error("User Authentication Expired")]
    AuthenticationExpired,
    #[error("Authentication Timeout")]
    AuthenticationTimeout,
    #[error("Stale Connection")]
    Stale,
}

impl From<KeyEnd> for Violation {
    fn from(end: KeyEnd) -> Self {
        match end {
            KeyEnd::Expired => Self::AuthenticationExpired,
            KeyEnd::Revoked => Self::Authorization,
        }
    }
}

struct NatsConnection {
    door: Arc<NatsDoor>,
    session: Arc<KeySession>,
    outbox: Arc<Outbox>,
    /// Until the client was admitted.
    stranger: Option<UnauthenticatedClient>,
    /// The guest that a client without a secret is, if the door is open.
    nobody: Option<Guest>,
    /// The client's place on the bus, once it was admitted.
    client: Option<LocalClient>,
    /// Who it is, from then on.
    guest: Option<Guest>,
    options: ConnectOptions,
}

impl NatsConnection {
    async fn read(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
        mut shutdown: watch::Receiver<bool>,
    ) -> Result<(), Violation> {
        let limits = self.door.limits.clone();
        let mut parser = NatsParser::new(&limits);
        let mut buffer = BytesMut::new();
        let mut connect_deadline = std::pin::pin!(sleep(limits.connect_within));
        let mut pings = interval_at(Instant::now() + limits.ping_interval, limits.ping_interval);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pings_unanswered = 0;
        let mut silent = true;
        loop {
            let input_len_max = if self.must_show_a_secret() { STRANGER_INPUT_LEN_MAX } else { usize::MAX };
            tokio::select! {
                biased;
                () = closed(&mut shutdown) => return Ok(()),
                () = self.outbox.closed() => return Ok(()),
                () = &mut connect_deadline, if self.must_show_a_secret() => {
                    return Err(Violation::AuthenticationTimeout);
                }
                input = read_more(reader, &mut buffer, input_len_max) => {
                    match input {
                        Input::More => {}
                        Input::End => return Ok(()),
                        Input::TooMuch => return Err(Violation::Authorization),
                    }
                    (silent, pings_unanswered) = (false, 0);
                    while let Some(operation) = parser.next(&mut buffer)? {
                        self.perform(operation).await?;
                    }
                }
                _ = pings.tick() => {
                    if std::mem::replace(&mut silent, true) {
                        if pings_unanswered == limits.pings_unanswered_max {
                            return Err(Violation::Stale);
                        }
                        pings_unanswered += 1;
                        self.outbox.push(b"PING\r\n");
                    }
                }
            }
        }
    }

    fn must_show_a_secret(&self) -> bool {
        self.client.is_none() && self.nobody.is_none()
    }

    async fn perform(&mut self, operation: Operation) -> Result<(), Violation> {
        self.session.check()?;
        let done = match operation {
            Operation::Connect(json) => {
                self.connect(&json).await?;
                true
            }
            // Nothing else is allowed before the client has authenticated.
            _ if self.must_show_a_secret() => return Err(Violation::Authorization),
            Operation::Ping => {
                self.outbox.push(b"PONG\r\n");
                return Ok(());
            }
            Operation::Pong => return Ok(()),
            Operation::Publish(publish) => self.publish(publish).await?,
            Operation::Subscribe { subject, queue, sid } => {
                self.subscribe(sid, &subject, queue.as_deref())?
            }
            Operation::Unsubscribe { sid, after } => {
                self.client()?.unsubscribe(sid, after);
                true
            }
        };
        if done && self.options.verbose {
            self.outbox.push(b"+OK\r\n");
        }
        Ok(())
    }

    async fn connect(&mut self, json: &[u8]) -> Result<(), Violation> {
        let options = ConnectOptions::parse(json).map_err(|_| ParseError::UnknownOperation)?;
        let guest = match options.secret() {
            Some(secret) => self.door.gate.admit(Some(secret)).await.ok(),
            None => self.nobody.clone(),
        };
        let guest = guest.ok_or(Violation::Authorization)?;
        self.options = options;
        self.outbox.set_headers(self.options.headers);
        let (name, echo) = (self.options.name.clone(), self.options.echo);
        let client = match &mut self.client {
            // It was already active before it identified itself, and may not change its identity.
            Some(_) if self.guest.as_ref() != Some(&guest) => return Err(Violation::Authorization),
            Some(client) => {
                client.rename(name);
                client
            }
            None => {
                self.session.begin(guest.clone());
                self.stranger = None;
                let client = attach(&self.door.bus, &self.outbox, name, &guest);
                self.guest = Some(guest);
                self.client.insert(client)
            }
        };
        client.set_echo(echo);
        Ok(())
    }

    /// The client's place on the bus. A client that does not introduce itself stays anonymous.
    fn client(&mut self) -> Result<&LocalClient, Violation> {
        match &mut self.client {
            Some(client) => Ok(client),
            place => {
                let guest = self.nobody.clone().ok_or(Violation::Authorization)?;
                self.session.begin(guest.clone());
                let client = attach(&self.door.bus, &self.outbox, None, &guest);
                self.guest = Some(guest);
                Ok(place.insert(client))
            }
        }
    }

    /// Returns whether it was done; a bad subject is reported to the client and does not end the connection.
    async fn publish(&mut self, publish: Publish) -> Result<bool, Violation> {
        let Publish { subject, reply, headers, payload } = publish;
        let wants_to_know = self.options.no_responders && self.options.headers;
        let asker = if wants_to_know { reply.clone() } else { None };
        let message = Message { reply, headers, ..Message::new(subject, payload) };
        self.client()?;
        if !self.guest.as_ref().is_some_and(|guest| guest.role.may_publish(&message.subject)) {
            self.complain(&format!("Permissions Violation for Publish to \"{}\"", message.subject));
            return Ok(false);
        }
        let client = self.client()?;
        match (client.publish(message).await, asker) {
            (Ok(DeliveryReport::Nobody), Some(asker)) => {
                let headers = Some(Bytes::from_static(NO_RESPONDERS));
                // Whether the requester still listens for the reply is its own concern.
                let _ = client.tell(Message { headers, ..Message::new(asker, Bytes::new()) }).await;
            }
            (Ok(_), _) => {}
            (Err(BusError::BadSubject(_)), _) => {
                self.complain("Invalid Publish Subject");
                return Ok(false);
            }
            (Err(error), _) => tracing::warn!(%error, "a client's message was dropped"),
        }
        Ok(true)
    }

    fn subscribe(&mut self, sid: u64, subject: &str, queue: Option<&str>) -> Result<bool, Violation> {
        let subscriptions_max = self.door.limits.subscriptions_max;
        self.client()?;
        if !self.may_subscribe(subject) {
            self.complain(&format!("Permissions Violation for Subscription to \"{subject}\""));
            return Ok(false);
        }
        let client = self.client()?;
        if client.subscription_count() >= subscriptions_max {
            self.complain("maximum subscriptions exceeded");
            return Ok(false);
        }
        if client.subscribe(sid, subject, queue).is_err() {
            self.complain("Invalid Subject");
            return Ok(false);
        }
        Ok(true)
    }

    fn may_subscribe(&self, subject: &str) -> bool {
        let Some(guest) = &self.guest else { return false };
        match guest.role.may_subscribe(subject) {
            Listening::Allowed => true,
            Listening::As(worker) => self.door.gate.claim(guest, worker),
            Listening::Refused => false,
        }
    }

    fn complain(&self, words: &str) {
        self.outbox.push(format!("-ERR '{words}'\r\n").as_bytes());
    }
}

fn attach(bus: &LocalBus, outbox: &Arc<Outbox>, name: Option<String>, guest: &Guest) -> LocalClient {
    let sink: Arc<Outbox> = Arc::clone(outbox);
    let (is_worker, tenants) = (guest.role == Role::Worker, guest.role.tenants());
    let sender = MessageSender { tenant: guest.tenant.clone(), key: guest.key.clone() };
    bus.attach(ClientInfo { name, sender, is_worker, tenants }, sink)
}

#[cfg(test)]
mod tests;
