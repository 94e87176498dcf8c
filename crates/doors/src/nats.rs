//! The NATS door: the client protocol that `nats-py`, `nats.go` and `async-nats` speak.
//!
//! INFO, CONNECT, PUB, HPUB, SUB, UNSUB, PING and PONG, queue groups, wildcards, headers, request
//! and reply with "no responders". A connection is one task, one half reading and one writing:
//!
//! ```text
//! socket → parse → connection → bus → outbox of each listener → socket
//! ```
//!
//! A publisher waits for our own subscriptions ([`reveille_bus::Bus`] says why): its socket is not read meanwhile,
//! which slows the client down. A listener that does not keep up is disconnected.
//!
//! Deliberately not here: TLS before INFO (`handshake_first`), `JetStream`, clustering, accounts. A worker may
//! publish and subscribe on any subject, as on a plain NATS server: its messages carry its identity as their origin,
//! and whoever acts on a message decides by that. Everyone else may do what their `Role` allows. Subscription ids are
//! numbers, as every client sends them.

mod connect;
mod connection;
mod info;
mod outbox;
pub mod parse;

use crate::accept::accept_loop;
use crate::gate::Gate;
use crate::listener::{DoorListener, DoorSocket};
use crate::tls::DoorTls;
use connection::NatsDoor;
use reveille_bus::LocalBus;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Limits for one client. Each has the default of a stock NATS server unless noted.
#[derive(Debug, Clone)]
pub struct NatsLimits {
    /// Connections at the same time. 4,096; a stock server allows 65,536.
    pub connections_max: usize,
    /// Subscriptions of one connection. 1,024; a stock server has no limit.
    pub subscriptions_max: usize,
    /// Bytes of one message, headers included. 1 MiB.
    pub payload_len_max: usize,
    /// Bytes of one protocol line. 4 KiB.
    pub control_line_len_max: usize,
    /// Bytes that may wait for a client that does not read, before it is disconnected. 8 MiB; a stock server allows
    /// 64.
    pub outbox_len_max: usize,
    /// How long a client may take to authenticate. 5 s; a stock server allows 2.
    pub connect_within: Duration,
    /// How long a client may be silent before it is sent a PING. 30 s; a stock server waits 2 min.
    pub ping_interval: Duration,
    /// How many PINGs in a row may go unanswered. 2.
    pub pings_unanswered_max: u32,
}

impl Default for NatsLimits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            subscriptions_max: 1024,
            payload_len_max: 1024 * 1024,
            control_line_len_max: 4096,
            outbox_len_max: 8 * 1024 * 1024,
            connect_within: Duration::from_secs(5),
            ping_interval: Duration::from_secs(30),
            pings_unanswered_max: 2,
        }
    }
}

/// Serves NATS clients until `shutdown` turns true, then lets pending output be written. With `tls`, only INFO is
/// sent in the clear; a Unix socket speaks none.
pub async fn serve(
    listener: impl Into<DoorListener>,
    tls: Option<DoorTls>,
    bus: LocalBus,
    gate: Arc<dyn Gate>,
    limits: NatsLimits,
    shutdown: watch::Receiver<bool>,
) {
    let listener = listener.into();
    let tls = tls.filter(|_| listener.tcp().is_some());
    let address = listener.tcp().and_then(|listener| listener.local_addr().ok());
    let connections_max = limits.connections_max;
    let door = Arc::new(NatsDoor::new(bus, gate, limits, address, tls));
    let refusal = b"-ERR 'maximum connections exceeded'\r\n";
    accept_loop(listener, connections_max, refusal, shutdown.clone(), |socket, stranger| {
        let (door, shutdown) = (Arc::clone(&door), shutdown.clone());
        async move {
            match (socket, &door.tls) {
                (DoorSocket::Unix(mut socket), _) => {
                    let Ok(newcomer) = connection::greet(&mut socket, stranger, &door).await else { return };
                    let (reader, writer) = socket.into_split();
                    connection::run(newcomer, reader, writer, door, shutdown).await;
                }
                (DoorSocket::Tcp(mut socket), None) => {
                    let Ok(newcomer) = connection::greet(&mut socket, stranger, &door).await else { return };
                    let (reader, writer) = socket.into_split();
                    connection::run(newcomer, reader, writer, door, shutdown).await;
                }
                (DoorSocket::Tcp(mut socket), Some(tls)) => {
                    let Ok(newcomer) = connection::greet(&mut socket, stranger, &door).await else { return };
                    let Some(secured) = tls.accept(socket, shutdown.clone()).await else { return };
                    let (reader, writer) = tokio::io::split(secured);
                    connection::run(newcomer, reader, writer, door, shutdown).await;
                }
            }
        }
    })
    .await;
}
