//! The RESP door: the part of the Redis protocol that the SDKs' blob stores use.
//!
//! Jobs carry pointers such as `redis://res:<job>`; workers follow them here. Only keys of the three blob families
//! (`ctx:`, `res:`, `art:`) exist. Both RESP2 and RESP3 are supported; HELLO chooses.
//!
//! Commands are answered in the order in which they arrived. Pipelined commands (a multiplexed connection sends those
//! of many callers at once) run together as long as they touch different keys, so that their writes share one disk
//! sync.
//!
//! Deliberately not here: databases other than 0, types other than strings, transactions, subscriptions, quotes in
//! inline commands. Blobs are one space: a worker that serves everybody can read a blob whose key it knows, as with a
//! shared Redis; one whose role is limited has what the [`Gate`] gives it.

mod batch;
mod blob;
mod command;
mod connection;
pub mod frame;
mod http;
mod reply;

use crate::accept::accept_loop;
use crate::gate::Gate;
use crate::listener::{DoorListener, DoorSocket};
use crate::tls::DoorTls;
use blob::BlobExecutor;
use connection::RespDoor;
use reveille_store::{Blobs, ClockFn};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The longest that a client may ask a blob to be kept: 7 days, or the default where that is longer. A longer wish is
/// shortened and not refused, so that stock SDKs with a TTL of their own go on.
const BLOB_TTL_MAX_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Limits for one client.
#[derive(Debug, Clone)]
pub struct RespLimits {
    /// Connections at the same time. 4,096.
    pub connections_max: usize,
    /// How long a client may take to authenticate, where that is required. 5 s.
    pub auth_within: Duration,
    /// How long a client may take to read an answer. 30 s.
    pub read_within: Duration,
    /// How long a blob is kept when the client does not say. 24 h, as in the reference.
    pub blob_ttl_ms: i64,
}

impl Default for RespLimits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            auth_within: Duration::from_secs(5),
            read_within: Duration::from_secs(30),
            blob_ttl_ms: 24 * 60 * 60 * 1000,
        }
    }
}

/// Serves Redis clients until `shutdown` turns true, then lets running commands finish. With `tls`, nothing is sent
/// in the clear; a Unix socket speaks none.
pub async fn serve(
    listener: impl Into<DoorListener>,
    tls: Option<DoorTls>,
    blobs: Arc<dyn Blobs>,
    gate: Arc<dyn Gate>,
    clock: ClockFn,
    limits: RespLimits,
    shutdown: watch::Receiver<bool>,
) {
    let listener = listener.into();
    let tls = tls.filter(|_| listener.tcp().is_some());
    let connections_max = limits.connections_max;
    let ttl_ms = limits.blob_ttl_ms;
    let desk = BlobExecutor { blobs, clock, ttl_ms, ttl_max_ms: ttl_ms.max(BLOB_TTL_MAX_MS) };
    let door = Arc::new(RespDoor::new(desk, gate, limits));
    let refusal: &[u8] = if tls.is_some() { b"" } else { b"-ERR max number of clients reached\r\n" };
    accept_loop(listener, connections_max, refusal, shutdown.clone(), |socket, stranger| {
        let (door, tls, shutdown) = (Arc::clone(&door), tls.clone(), shutdown.clone());
        async move {
            match (socket, tls) {
                (DoorSocket::Unix(socket), _) => {
                    let (reader, writer) = socket.into_split();
                    connection::run(stranger, reader, writer, door, shutdown).await;
                }
                (DoorSocket::Tcp(socket), None) => {
                    let (reader, writer) = socket.into_split();
                    connection::run(stranger, reader, writer, door, shutdown).await;
                }
                (DoorSocket::Tcp(socket), Some(tls)) => {
                    let Some(secured) = tls.accept(socket, shutdown.clone()).await else { return };
                    let (reader, writer) = tokio::io::split(secured);
                    connection::run(stranger, reader, writer, door, shutdown).await;
                }
            }
        }
    })
    .await;
}
