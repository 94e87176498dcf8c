//! Clients that have not been admitted yet, what they may send and how many places they may take.
//!
//! They get little of everything, and a place only until somebody newer wants it. Turning newcomers away instead would
//! let a few idle sockets keep everyone with a key out; this way a client that shows its key at once always gets in.

use crate::listener::DoorPeer;
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// How much input of a stranger is held at most. A key and what comes with it fit in easily.
pub(crate) const STRANGER_INPUT_LEN_MAX: usize = 16 * 1024;

/// How many commands a stranger may send. Clients authenticate with the first or the second.
pub(crate) const STRANGER_COMMANDS_MAX: u32 = 16;

/// One in so many connections may be a stranger's.
const STRANGERS_SHARE: usize = 4;

/// How many strangers there may be at a door with so many connections.
pub(crate) fn strangers_max(connections_max: usize) -> usize {
    (connections_max / STRANGERS_SHARE).max(1)
}

/// The strangers at one door. Clones are the same ones.
#[derive(Clone, Default)]
pub(crate) struct UnauthenticatedClients(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    seen: u64,
    /// By arrival, and how to tell each that it has to go.
    by_arrival: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A client that is not admitted yet. Dropping this gives its place up, because it was admitted or is gone.
pub(crate) struct UnauthenticatedClient {
    pub peer: DoorPeer,
    strangers: UnauthenticatedClients,
    arrival: u64,
}

/// Ends when a stranger has to go.
pub(crate) struct Eviction(oneshot::Receiver<()>);

impl UnauthenticatedClients {
    pub fn enter(&self, peer: DoorPeer) -> (UnauthenticatedClient, Eviction) {
        let (evict, evicted) = oneshot::channel();
        let mut waiting = self.lock();
        waiting.seen += 1;
        let arrival = waiting.seen;
        waiting.by_arrival.insert(arrival, evict);
        (UnauthenticatedClient { peer, strangers: self.clone(), arrival }, Eviction(evicted))
    }

    pub fn count(&self) -> usize {
        self.lock().by_arrival.len()
    }

    /// Ends the connection of the stranger who has been here longest. Says whether there was one.
    pub fn evict_oldest(&self) -> bool {
        let oldest = self.lock().by_arrival.pop_first();
        oldest.is_some_and(|(_, evict)| evict.send(()).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnauthenticatedClient {
    fn drop(&mut self) {
        self.strangers.lock().by_arrival.remove(&self.arrival);
    }
}

impl Eviction {
    /// Waits for ever once the client is no stranger any more.
    pub async fn happened(&mut self) {
        if (&mut self.0).await.is_err() {
            pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn the_oldest_goes_and_those_who_were_admitted_stay() {
        let strangers = UnauthenticatedClients::default();
        let peer = DoorPeer::User(None);
        let (admitted, mut admitted_eviction) = strangers.enter(peer);
        let (_oldest, mut oldest_eviction) = strangers.enter(peer);
        let (_newest, mut newest_eviction) = strangers.enter(peer);
        drop(admitted);
        assert_eq!(strangers.count(), 2);
        assert!(strangers.evict_oldest());
        assert!(oldest_eviction.happened().now_or_never().is_some());
        assert!(newest_eviction.happened().now_or_never().is_none());
        assert!(admitted_eviction.happened().now_or_never().is_none());
        assert!(strangers.evict_oldest() && !strangers.evict_oldest(), "there is nobody left");
    }

    #[test]
    fn strangers_get_a_quarter_and_at_least_one_place() {
        assert_eq!([1, 3, 8, 4096].map(strangers_max), [1, 1, 2, 1024]);
    }
}
