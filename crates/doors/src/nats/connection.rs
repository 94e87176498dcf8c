//! One NATS client, from its first line to its last.

use super::NatsLimits;
use super::connect::Connect;
use super::info::{self, Demands};
use super::outbox::{Outbox, OutboxEnd};
use super::parse::{NatsParser, Operation, ParseError, Publish};
use crate::accept::closed;
use crate::gate::{Gate, Guest, Role};
use crate::linger::linger;
use crate::tls::DoorTls;
use bytes::{Bytes, BytesMut};
use reveille_bus::{
    BusError, Client, ClientInfo, DeliveryReport, LocalBus, Message, MessageOrigin, MessageSender,
};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

/// How much is read at once.
const READ_LEN: usize = 16 * 1024;

/// A read buffer that grew beyond this for a large message is given back.
const BUFFER_KEPT_LEN_MAX: usize = 64 * 1024;

/// Tells a requester that nobody hears its request.
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

/// A client that has read INFO and said nothing yet.
pub(super) struct Newcomer {
    client_id: u64,
    /// Whom it is without a secret, if the door is open.
    nobody: Option<Guest>,
}

/// Writes INFO, which a new socket has room for. It is in the clear, because it is what tells the
/// client to begin TLS.
pub(super) async fn greet(socket: &mut (impl AsyncWrite + Unpin), door: &NatsDoor) -> io::Result<Newcomer> {
    let nobody = door.gate.admit(None).await.ok();
    let client_id = door.clients_seen.fetch_add(1, Relaxed) + 1;
    let demands = Demands { secret: nobody.is_none(), tls: door.tls.is_some() };
    let info = info::line(door.address, &door.limits, client_id, &demands);
    socket.write_all(info.as_bytes()).await?;
    Ok(Newcomer { client_id, nobody })
}

/// Serves one client until either side ends it.
pub(super) async fn run(
    Newcomer { client_id, nobody }: Newcomer,
    mut reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    door: Arc<NatsDoor>,
    shutdown: watch::Receiver<bool>,
) {
    let outbox = Arc::new(Outbox::new(door.limits.outbox_len_max));
    let mut connection = NatsConnection {
        door,
        outbox: Arc::clone(&outbox),
        nobody,
        client: None,
        role: Role::Submitter,
        options: Connect::default(),
    };
    let reading = async {
        let outcome = connection.read(&mut reader, shutdown).await;
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

/// Why a client is cut off. The words are those of a NATS server.
#[derive(Debug, Clone, Copy, thiserror::Error)]
enum Violation {
    #[error(transparent)]
    Protocol(#[from] ParseError),
    #[error("Authorization Violation")]
    Authorization,
    #[error("Authentication Timeout")]
    AuthenticationTimeout,
    #[error("Stale Connection")]
    Stale,
}

struct NatsConnection {
    door: Arc<NatsDoor>,
    outbox: Arc<Outbox>,
    /// Whom a client without a secret is, if the door is open.
    nobody: Option<Guest>,
    /// The client's place on the bus, once it was let in.
    client: Option<Client>,
    role: Role,
    options: Connect,
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
            make_room(&mut buffer);
            tokio::select! {
                biased;
                () = closed(&mut shutdown) => return Ok(()),
                () = self.outbox.closed() => return Ok(()),
                () = &mut connect_deadline, if self.must_show_a_secret() => {
                    return Err(Violation::AuthenticationTimeout);
                }
                read = reader.read_buf(&mut buffer) => {
                    // A broken socket and one that the client closed end alike.
                    if read.unwrap_or(0) == 0 {
                        return Ok(());
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
        let done = match operation {
            Operation::Connect(json) => {
                self.connect(&json).await?;
                true
            }
            // Before its secret a client has nothing else to say.
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
        let options = Connect::parse(json).map_err(|_| ParseError::UnknownOperation)?;
        let guest = match options.secret() {
            Some(secret) => self.door.gate.admit(Some(secret)).await.ok(),
            None => self.nobody.clone(),
        };
        let guest = guest.ok_or(Violation::Authorization)?;
        self.options = options;
        self.outbox.set_headers(self.options.headers);
        let (name, echo) = (self.options.name.clone(), self.options.echo);
        let client = match &mut self.client {
            // It was already at work before it said who it is, and may not become somebody else.
            Some(client) if *client.sender() != sender(&guest) || self.role != guest.role => {
                return Err(Violation::Authorization);
            }
            Some(client) => {
                client.rename(name);
                client
            }
            None => {
                self.role = guest.role;
                self.client.insert(attach(&self.door.bus, &self.outbox, name, &guest))
            }
        };
        client.set_echo(echo);
        Ok(())
    }

    /// The client's place on the bus. Whoever does not introduce itself is nobody in particular.
    fn client(&mut self) -> Result<&Client, Violation> {
        match &mut self.client {
            Some(client) => Ok(client),
            place => {
                let guest = self.nobody.clone().ok_or(Violation::Authorization)?;
                self.role = guest.role;
                Ok(place.insert(attach(&self.door.bus, &self.outbox, None, &guest)))
            }
        }
    }

    /// Says whether it was done; a bad subject is complained about and does not end the connection.
    async fn publish(&mut self, publish: Publish) -> Result<bool, Violation> {
        let Publish { subject, reply, headers, payload } = publish;
        let wants_to_know = self.options.no_responders && self.options.headers;
        let asker = if wants_to_know { reply.clone() } else { None };
        let message =
            Message { subject, reply, headers, payload, origin: MessageOrigin::default(), id: None };
        self.client()?;
        if !self.role.may_publish(&message.subject) {
            self.complain(&format!("Permissions Violation for Publish to \"{}\"", message.subject));
            return Ok(false);
        }
        let client = self.client()?;
        match (client.publish(message).await, asker) {
            (Ok(DeliveryReport::Nobody), Some(asker)) => {
                let headers = Some(Bytes::from_static(NO_RESPONDERS));
                // Whether the asker still listens for the answer is its own affair.
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
        if !self.role.may_subscribe(subject) {
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

    fn complain(&self, words: &str) {
        self.outbox.push(format!("-ERR '{words}'\r\n").as_bytes());
    }
}

fn attach(bus: &LocalBus, outbox: &Arc<Outbox>, name: Option<String>, guest: &Guest) -> Client {
    let sink: Arc<Outbox> = Arc::clone(outbox);
    bus.attach(ClientInfo { name, sender: sender(guest), is_worker: guest.role == Role::Worker }, sink)
}

fn sender(guest: &Guest) -> MessageSender {
    MessageSender { tenant: guest.tenant.clone(), key: guest.key.clone() }
}

/// Makes room to read into. What is left in the buffer is at most the beginning of one operation,
/// which the parser's limits bound, so the buffer is bounded too.
fn make_room(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > BUFFER_KEPT_LEN_MAX {
        *buffer = BytesMut::new();
    }
    buffer.reserve(READ_LEN);
}

#[cfg(test)]
mod tests;
