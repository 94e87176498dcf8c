//! The accept loop that both doors share: limits on connections, and an orderly shutdown.

use crate::listener::{DoorListener, DoorPeer, DoorSocket};
use crate::unauthenticated::{UnauthenticatedClient, UnauthenticatedClients, strangers_max};
use std::future::Future;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long to wait after a failed accept. The usual reason is a lack of file descriptors, and retrying at once would
/// only burn CPU until some are free.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// How long open connections get to finish once the door closes.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// Serves connections until `shutdown` turns true or its sender is dropped. Every client is a stranger at first; when
/// there are too many of those, or no place is left, the oldest one makes room. `refusal` is what a client reads before
/// it is disconnected because all places are taken by clients that were admitted.
pub(crate) async fn accept_loop<Serve, Served>(
    listener: DoorListener,
    connections_max: usize,
    refusal: &'static [u8],
    mut shutdown: watch::Receiver<bool>,
    serve: Serve,
) where
    Serve: Fn(DoorSocket, UnauthenticatedClient) -> Served,
    Served: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut places = Places::new(connections_max);
    loop {
        tokio::select! {
            () = closed(&mut shutdown) => break,
            Some(_ended) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    if !places.make_room(connections.len(), peer) {
                        refuse(&socket, refusal);
                        continue;
                    }
                    let (stranger, mut eviction) = places.strangers.enter(peer);
                    let served = serve(socket, stranger);
                    connections.spawn(async move {
                        tokio::select! {
                            biased;
                            () = eviction.happened() => {}
                            () = served => {}
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            },
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_MAX, drained).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections cut off, they did not end in time");
    }
}

/// The places of a door, and whether they were found taken.
struct Places {
    connections_max: usize,
    strangers_max: usize,
    strangers: UnauthenticatedClients,
    /// Both are logged once each time the limit is reached, not once per client.
    full: bool,
    crowded: bool,
}

impl Places {
    fn new(connections_max: usize) -> Self {
        Self {
            connections_max,
            strangers_max: strangers_max(connections_max),
            strangers: UnauthenticatedClients::default(),
            full: false,
            crowded: false,
        }
    }

    /// Whether there is a place for one more than `connections`, if need be that of the oldest stranger.
    fn make_room(&mut self, connections: usize, peer: DoorPeer) -> bool {
        let Self { connections_max, strangers_max, .. } = *self;
        let has_no_place = connections >= connections_max;
        let crowded = self.strangers.count() >= strangers_max;
        if crowded && !self.crowded {
            tracing::warn!(%peer, strangers_max, "clients that show no key are cut off, too many wait");
        }
        self.crowded = crowded;
        let made_room = (has_no_place || crowded) && self.strangers.evict_oldest();
        let full = has_no_place && !made_room;
        if full && !self.full {
            tracing::warn!(%peer, connections_max, "connection refused, the door is full");
        }
        self.full = full;
        !full
    }
}

/// Waits until the door closes.
pub(crate) async fn closed(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender was dropped, and with it whoever wanted the door open.
    let _ = shutdown.wait_for(|closed| *closed).await;
}

/// Writes the reason, as far as it fits into the empty send buffer of a new socket, and hangs up. It must not wait
/// for a client that does not read.
fn refuse(socket: &DoorSocket, refusal: &'static [u8]) {
    let _ = socket.try_write(refusal);
}
