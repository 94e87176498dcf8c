//! A remote client's handle on the local bus; one per connection of a door.

use super::LocalBus;
use super::subscriber::{Connected, RemoteClient, Subscriber, Taker};
use crate::{BusError, DeliveryReport, Message, MessageOrigin, MessageSender, subject};
use reveille_core::fleet::ServedTenants;
use std::sync::Arc;

/// Where a remote client's messages go.
pub trait Sink: Send + Sync + 'static {
    /// Takes a message for the client's subscription `sid`. This must not block. Returning `false` means that the
    /// client can take no more, now or later: the bus forgets it.
    fn deliver(&self, sid: u64, message: &Message) -> bool;
}

/// What the transport knows about a client.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    pub name: Option<String>,
    /// From its credential. Everything that the client publishes carries it.
    pub sender: MessageSender,
    /// Whether it is trusted to be a worker.
    pub is_worker: bool,
    /// Whose jobs it may be given.
    pub tenants: ServedTenants,
}

/// The handle. Dropping it ends all subscriptions of the client.
pub struct LocalClient {
    bus: LocalBus,
    peer: Arc<RemoteClient>,
    sender: MessageSender,
    is_worker: bool,
    echo: bool,
}

impl LocalClient {
    pub(super) fn new(bus: LocalBus, peer: Arc<RemoteClient>, info: ClientInfo) -> Self {
        Self { bus, peer, sender: info.sender, is_worker: info.is_worker, echo: true }
    }

    /// Unique within the bus, and never reused; [`crate::Listener`] reports it.
    pub fn connection(&self) -> u64 {
        self.peer.connection
    }

    pub fn sender(&self) -> &MessageSender {
        &self.sender
    }

    pub fn rename(&self, name: Option<String>) {
        self.bus.change(|state| state.connections.rename(self.peer.connection, name));
    }

    /// Whether the client receives its own messages, which is the default.
    pub fn set_echo(&mut self, echo: bool) {
        self.echo = echo;
    }

    /// How many subscriptions the client has now.
    pub fn subscription_count(&self) -> usize {
        self.bus.state().connections.subscriber_count(self.peer.connection)
    }

    /// Subscribes under the client's own number. A number in use keeps its subscription, which is also what NATS
    /// does.
    pub fn subscribe(&self, sid: u64, pattern: &str, queue: Option<&str>) -> Result<(), BusError> {
        if !subject::is_pattern(pattern) {
            return Err(BusError::BadSubject(pattern.to_owned()));
        }
        self.bus.change(|state| {
            let connection = self.peer.connection;
            if state.connections.subscriber(connection, sid).is_some() {
                return;
            }
            let taker = Taker::Remote { peer: Arc::clone(&self.peer), sid };
            let subscriber = Subscriber::new(state.next_id(), pattern, queue, taker);
            if state.connections.subscribe(connection, sid, Arc::clone(&subscriber)) {
                state.interest.insert(subscriber);
            }
        });
        Ok(())
    }

    /// Ends a subscription, at once or after this many messages since it began.
    pub fn unsubscribe(&self, sid: u64, after: Option<u64>) {
        self.bus.change(|state| {
            let Some(subscriber) = state.connections.subscriber(self.peer.connection, sid) else { return };
            if after.is_none_or(|delivered_max| subscriber.limit(delivered_max)) {
                let subscriber = Arc::clone(subscriber);
                state.remove(&subscriber);
            }
        });
    }

    /// Publishes in the name of the client's tenant, whatever origin the message claims.
    pub async fn publish(&self, message: Message) -> Result<DeliveryReport, BusError> {
        let who = if self.echo { Connected::Anyone } else { Connected::AllBut(self.peer.connection) };
        self.send(message, who).await
    }

    /// Delivers only to this client's own subscriptions. This is how a door answers on a subject that the client
    /// chose, without letting the client publish as the server.
    pub async fn tell(&self, message: Message) -> Result<DeliveryReport, BusError> {
        self.send(message, Connected::Only(self.peer.connection)).await
    }

    async fn send(&self, mut message: Message, who: Connected) -> Result<DeliveryReport, BusError> {
        let sender = self.sender.clone();
        message.origin =
            if self.is_worker { MessageOrigin::Worker(sender) } else { MessageOrigin::Client(sender) };
        self.bus.deliver(&message, who).await
    }
}

impl Drop for LocalClient {
    fn drop(&mut self) {
        self.bus.change(|state| state.forget_connection(self.peer.connection));
    }
}
