//! The RESP door: the part of the Redis protocol that the SDKs' blob stores use.
//!
//! Jobs carry pointers such as `redis://res:<job>`; workers follow them here. The keys are those of
//! the three blob families (`ctx:`, `res:`, `art:`) and nothing else exists. RESP2 and RESP3 are
//! both spoken; HELLO chooses.
//!
//! Commands are answered in the order in which they came. Those that a client sends without waiting
//! (a multiplexed connection sends many callers' at once) run together as long as they touch
//! different keys, so that their writes share one disk sync.
//!
//! Deliberately not here: other databases than 0, other types than strings, transactions,
//! subscriptions, quotes in inline commands. Blobs are one space: whoever was let in can read a blob
//! whose key it knows, as with a shared Redis.

mod batch;
mod blob;
mod command;
mod connection;
mod frame;
mod reply;

use crate::accept::accept_loop;
use crate::gate::Gate;
use crate::tls::DoorTls;
use blob::BlobExecutor;
use connection::RespDoor;
use reveille_core::time::Millis;
use reveille_store::Blobs;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What the time is.
pub type Clock = Arc<dyn Fn() -> Millis + Send + Sync>;

/// What one client may use.
#[derive(Debug, Clone)]
pub struct RespLimits {
    /// Connections at the same time. 4,096.
    pub connections_max: usize,
    /// How long a client may take to show its secret, where one is needed. 5 s.
    pub auth_within: Duration,
    /// How long a client may take to read an answer. 30 s.
    pub read_within: Duration,
    /// How long a blob stays when the client does not say. 24 h, as the reference keeps its blobs.
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

/// Serves Redis clients until `shutdown` turns true, then lets the commands under way finish. With
/// `tls`, nothing is said in the clear.
pub async fn serve(
    listener: TcpListener,
    tls: Option<DoorTls>,
    blobs: Arc<dyn Blobs>,
    gate: Arc<dyn Gate>,
    clock: Clock,
    limits: RespLimits,
    shutdown: watch::Receiver<bool>,
) {
    let connections_max = limits.connections_max;
    let desk = BlobExecutor { blobs, clock, ttl_ms: limits.blob_ttl_ms };
    let door = Arc::new(RespDoor::new(desk, gate, limits));
    let refusal: &[u8] = if tls.is_some() { b"" } else { b"-ERR max number of clients reached\r\n" };
    accept_loop(listener, connections_max, refusal, shutdown.clone(), |socket| {
        let (door, tls, shutdown) = (Arc::clone(&door), tls.clone(), shutdown.clone());
        async move {
            match tls {
                None => {
                    let (reader, writer) = socket.into_split();
                    connection::run(reader, writer, door, shutdown).await;
                }
                Some(tls) => {
                    let Some(secured) = tls.accept(socket, shutdown.clone()).await else { return };
                    let (reader, writer) = tokio::io::split(secured);
                    connection::run(reader, writer, door, shutdown).await;
                }
            }
        }
    })
    .await;
}
