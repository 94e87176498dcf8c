//! The bus inside one process: our own subscriptions, and remote clients that connected through a door.
//!
//! One mutex guards the subscriptions. A publish takes it to collect the recipients, releases it, and only then
//! delivers the message; nothing waits while it is held.
//!
//! Our own subscriptions have bounded inboxes and publishers wait for them, so a subscriber must not publish what it
//! receives itself without reading on, or it may wait for its own inbox.
//!
//! Nothing is stored: a message without a subscriber is gone, and its publisher is told.

mod client;
mod connections;
mod interest;
mod subscriber;

pub use client::{ClientInfo, LocalClient, Sink};

use crate::{Bus, BusError, DeliveryReport, HeardBy, Listener, Message, Subscription, subject};
use connections::Connections;
use interest::Interest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subscriber::{Connected, Recipients, RemoteClient, Subscriber, Taker};
use tokio::sync::{Notify, mpsc};

/// How many messages wait in one of our own subscriptions before publishers wait too.
pub const INBOX_LEN_MAX: usize = 8192;

/// Below this many subscriptions of our own, abandoned ones are not searched for.
const SWEEP_LEN_MIN: usize = 64;

/// A handle; clones share one bus.
#[derive(Clone, Default)]
pub struct LocalBus {
    shared: Arc<LocalShared>,
}

#[derive(Default)]
struct LocalShared {
    state: Mutex<LocalState>,
    listeners_changed: Notify,
}

#[derive(Default)]
struct LocalState {
    interest: Interest,
    connections: Connections,
    /// Our own subscriptions, by id.
    inboxes: HashMap<u64, Arc<Subscriber>>,
    sweep_at: usize,
    last_id: u64,
}

impl LocalBus {
    pub fn new() -> Self {
        Self::default()
    }

    /// Admits a remote client. It stays until the returned handle is dropped or its sink refuses.
    pub fn attach(&self, client: ClientInfo, sink: Arc<dyn Sink>) -> LocalClient {
        let mut state = self.state();
        let peer = RemoteClient::new(state.next_id(), client.name.clone(), client.tenants.clone(), sink);
        state.connections.insert(Arc::clone(&peer));
        drop(state);
        LocalClient::new(self.clone(), peer, client)
    }

    async fn deliver(&self, message: &Message, who: Connected) -> Result<DeliveryReport, BusError> {
        let audience = Recipients { who, tenant: message.tenant.as_ref() };
        for subject in [Some(&message.subject), message.reply.as_ref()].into_iter().flatten() {
            if !subject::is_subject(subject) {
                return Err(BusError::BadSubject(subject.clone()));
            }
        }
        let mut tally = DeliveryTally::default();
        let recipients = self.change(|state| state.recipients(&message.subject, audience));
        for recipient in recipients {
            let mut candidate = Some(recipient);
            while let Some(subscriber) = candidate {
                if subscriber.reserve(message).await {
                    tally.count(&subscriber);
                    break;
                }
                candidate = self.replace(&subscriber, &message.subject, audience);
            }
        }
        Ok(tally.into())
    }

    /// Forgets a subscriber that refused a message, and finds another of its queue group, if it has one.
    fn replace(
        &self,
        refused: &Subscriber,
        subject: &str,
        audience: Recipients<'_>,
    ) -> Option<Arc<Subscriber>> {
        self.change(|state| {
            match refused.peer() {
                Some(peer) => state.forget_connection(peer.connection),
                None => state.remove(refused),
            }
            let next = state.interest.next_in_group(subject, refused.queue.as_deref()?, audience)?;
            state.count(&next);
            Some(next)
        })
    }

    fn state(&self) -> MutexGuard<'_, LocalState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes who listens on what, and wakes those who wait for such changes.
    fn change<T>(&self, change: impl FnOnce(&mut LocalState) -> T) -> T {
        let mut state = self.state();
        let outcome = change(&mut state);
        let have_changed = state.connections.have_changed();
        drop(state);
        if have_changed {
            self.shared.listeners_changed.notify_one();
        }
        outcome
    }
}

#[async_trait::async_trait]
impl Bus for LocalBus {
    async fn publish(&self, message: Message) -> Result<DeliveryReport, BusError> {
        self.deliver(&message, Connected::Anyone).await
    }

    async fn subscribe(&self, subject: &str, queue: Option<&str>) -> Result<Subscription, BusError> {
        if !subject::is_pattern(subject) {
            return Err(BusError::BadSubject(subject.to_owned()));
        }
        let (inbox, messages) = mpsc::channel(INBOX_LEN_MAX);
        let mut state = self.state();
        state.sweep();
        let subscriber = Subscriber::new(state.next_id(), subject, queue, Taker::Inbox(inbox));
        state.inboxes.insert(subscriber.id, Arc::clone(&subscriber));
        state.interest.insert(subscriber);
        Ok(Subscription::new(messages))
    }

    fn shows_listeners(&self) -> bool {
        true
    }

    async fn listeners_changed(&self) -> Vec<Listener> {
        loop {
            let listeners = self.state().connections.take_changed();
            if !listeners.is_empty() {
                return listeners;
            }
            self.shared.listeners_changed.notified().await;
        }
    }
}

impl LocalState {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn recipients(&mut self, subject: &str, audience: Recipients<'_>) -> Vec<Arc<Subscriber>> {
        let recipients = self.interest.recipients(subject, audience);
        for recipient in &recipients {
            self.count(recipient);
        }
        recipients
    }

    /// Counts a message, and ends the subscription if it asked for no more than that.
    fn count(&mut self, subscriber: &Subscriber) {
        if subscriber.count_one() {
            self.remove(subscriber);
        }
    }

    fn remove(&mut self, subscriber: &Subscriber) {
        self.interest.remove(subscriber);
        match &subscriber.taker {
            Taker::Inbox(_) => drop(self.inboxes.remove(&subscriber.id)),
            Taker::Remote { peer, sid } => drop(self.connections.unsubscribe(peer.connection, *sid)),
        }
    }

    fn forget_connection(&mut self, connection: u64) {
        for subscriber in self.connections.remove(connection) {
            self.interest.remove(&subscriber);
        }
    }

    /// Removes our own subscriptions whose receiver was dropped. A publish notices them too, but a reply inbox that
    /// had its answer may never see another. Checking only when the number has doubled keeps both the garbage and the
    /// time spent in proportion to what is in use.
    fn sweep(&mut self) {
        if self.inboxes.len() < self.sweep_at.max(SWEEP_LEN_MIN) {
            return;
        }
        let abandoned: Vec<_> = self.inboxes.values().filter(|inbox| inbox.is_gone()).cloned().collect();
        for subscriber in abandoned {
            self.remove(&subscriber);
        }
        self.sweep_at = self.inboxes.len() * 2;
    }
}

/// Who received a message.
#[derive(Default)]
struct DeliveryTally {
    taken: bool,
    /// The remote connections that received it, as far as it matters: none, one, or several.
    remote: Remote,
}

#[derive(Default)]
enum Remote {
    #[default]
    None,
    One(Arc<RemoteClient>),
    Several,
}

impl DeliveryTally {
    fn count(&mut self, subscriber: &Subscriber) {
        self.taken = true;
        let Taker::Remote { peer, .. } = &subscriber.taker else { return };
        self.remote = match &self.remote {
            Remote::None => Remote::One(Arc::clone(peer)),
            Remote::One(other) if other.connection == peer.connection => return,
            _ => Remote::Several,
        };
    }
}

impl From<DeliveryTally> for DeliveryReport {
    fn from(tally: DeliveryTally) -> Self {
        match tally.remote {
            _ if !tally.taken => Self::Nobody,
            Remote::One(peer) => {
                Self::Somebody { by: Some(HeardBy { connection: peer.connection, name: peer.name() }) }
            }
            Remote::None | Remote::Several => Self::Somebody { by: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn abandoned_inboxes_do_not_pile_up() {
        let bus = LocalBus::new();
        let _kept = bus.subscribe("kept", None).await.unwrap();
        for number in 0..10_000 {
            drop(bus.subscribe(&format!("_INBOX.{number}"), None).await.unwrap());
        }
        assert!(bus.state().inboxes.len() <= SWEEP_LEN_MIN, "{}", bus.state().inboxes.len());
        let _ours = bus.subscribe("kept", None).await.unwrap();
        assert_eq!(
            bus.publish(Message::new("kept", "x")).await.unwrap(),
            DeliveryReport::Somebody { by: None }
        );
    }
}
