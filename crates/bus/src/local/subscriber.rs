//! One subscription, and its receiver: in this process or a remote client.

use super::client::Sink;
use crate::{Delivery, Message};
use reveille_core::fleet::ServedTenants;
use reveille_core::id::TenantId;
use std::sync::Arc;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::mpsc;

pub(super) struct Subscriber {
    /// Unique within the bus.
    pub id: u64,
    pub pattern: String,
    pub queue: Option<Arc<str>>,
    pub taker: Taker,
    delivered: AtomicU64,
    delivered_max: AtomicU64,
}

/// Where a subscriber's messages go.
pub(super) enum Taker {
    /// Our own code, which publishers wait for.
    Inbox(mpsc::Sender<Delivery>),
    /// A remote client, which is not.
    Remote { peer: Arc<RemoteClient>, sid: u64 },
}

/// A remote client as its subscriptions see it.
pub(super) struct RemoteClient {
    pub connection: u64,
    pub sink: Arc<dyn Sink>,
    /// Whose jobs it may be given.
    pub tenants: ServedTenants,
    name: RwLock<Option<String>>,
}

/// Which subscribers a message is meant for: in this process all of them, and of the remote ones those who serve its
/// tenant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recipients<'m> {
    pub who: Connected,
    pub tenant: Option<&'m TenantId>,
}

/// Which connections are meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Connected {
    Anyone,
    /// Everyone except this connection, which asked not to receive its own messages.
    AllBut(u64),
    /// This connection alone.
    Only(u64),
}

impl Subscriber {
    pub fn new(id: u64, pattern: &str, queue: Option<&str>, taker: Taker) -> Arc<Self> {
        Arc::new(Self {
            id,
            pattern: pattern.to_owned(),
            queue: queue.map(Into::into),
            taker,
            delivered: AtomicU64::new(0),
            delivered_max: AtomicU64::new(u64::MAX),
        })
    }

    pub fn peer(&self) -> Option<&RemoteClient> {
        match &self.taker {
            Taker::Inbox(_) => None,
            Taker::Remote { peer, .. } => Some(peer),
        }
    }

    /// Whether our own receiver still exists. A remote client unsubscribes itself.
    pub fn is_gone(&self) -> bool {
        matches!(&self.taker, Taker::Inbox(inbox) if inbox.is_closed())
    }

    /// Ends the subscription after this many messages in total; returns whether it has had them already.
    pub fn limit(&self, delivered_max: u64) -> bool {
        self.delivered_max.store(delivered_max, Relaxed);
        self.delivered.load(Relaxed) >= delivered_max
    }

    /// Counts one message; returns whether it was the last that the subscription may have. The bus's mutex orders the
    /// counting, so relaxed atomics are enough.
    pub fn count_one(&self) -> bool {
        self.delivered.fetch_add(1, Relaxed) + 1 >= self.delivered_max.load(Relaxed)
    }

    /// Delivers the message; returns whether it was accepted.
    pub async fn reserve(&self, message: &Message) -> bool {
        match &self.taker {
            Taker::Inbox(inbox) => inbox.send(message.clone().into()).await.is_ok(),
            Taker::Remote { peer, sid } => peer.sink.deliver(*sid, message),
        }
    }
}

impl RemoteClient {
    pub fn new(
        connection: u64,
        name: Option<String>,
        tenants: ServedTenants,
        sink: Arc<dyn Sink>,
    ) -> Arc<Self> {
        Arc::new(Self { connection, sink, tenants, name: RwLock::new(name) })
    }

    pub fn name(&self) -> Option<String> {
        self.name.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    pub fn rename(&self, name: Option<String>) {
        *self.name.write().unwrap_or_else(std::sync::PoisonError::into_inner) = name;
    }
}

impl Recipients<'_> {
    pub fn includes(self, subscriber: &Subscriber) -> bool {
        let peer = subscriber.peer();
        let connection = peer.map(|peer| peer.connection);
        let is_served = self.tenant.zip(peer).is_none_or(|(tenant, peer)| peer.tenants.include(tenant));
        is_served
            && match self.who {
                Connected::Anyone => true,
                Connected::AllBut(publisher) => connection != Some(publisher),
                Connected::Only(wanted) => connection == Some(wanted),
            }
    }
}
