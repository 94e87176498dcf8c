//! The remote connections, what each listens on, and which of them changed since last asked.
//!
//! Changes are a set of connections, not a list of events: however often a connection changes between two calls, it
//! costs one entry. A connection that came and went unreported leaves no trace at all, so a bus that is never asked
//! does not grow.

use super::subscriber::{RemoteClient, Subscriber};
use crate::Listener;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Reply inboxes come and go with every request and say nothing about what a worker does.
const INBOX_PREFIX: &str = "_INBOX.";

#[derive(Default)]
pub(super) struct Connections {
    present: HashMap<u64, LocalConnection>,
    changed: BTreeSet<u64>,
    /// Connections that were reported as listening and are gone, with their last name.
    gone: BTreeMap<u64, Option<String>>,
}

struct LocalConnection {
    peer: Arc<RemoteClient>,
    subscribers: HashMap<u64, Arc<Subscriber>>,
    /// Whether it was last reported as listening on something.
    reported: bool,
}

impl Connections {
    pub fn insert(&mut self, peer: Arc<RemoteClient>) {
        let connection = LocalConnection { subscribers: HashMap::new(), reported: false, peer };
        self.present.insert(connection.peer.connection, connection);
    }

    pub fn subscriber(&self, connection: u64, sid: u64) -> Option<&Arc<Subscriber>> {
        self.present.get(&connection)?.subscribers.get(&sid)
    }

    pub fn subscriber_count(&self, connection: u64) -> usize {
        self.present.get(&connection).map_or(0, |connection| connection.subscribers.len())
    }

    /// Returns whether the connection still exists and may subscribe.
    pub fn subscribe(&mut self, connection: u64, sid: u64, subscriber: Arc<Subscriber>) -> bool {
        let Some(entry) = self.present.get_mut(&connection) else { return false };
        if is_reported(&subscriber) {
            self.changed.insert(connection);
        }
        entry.subscribers.insert(sid, subscriber);
        true
    }

    pub fn unsubscribe(&mut self, connection: u64, sid: u64) -> Option<Arc<Subscriber>> {
        let subscriber = self.present.get_mut(&connection)?.subscribers.remove(&sid)?;
        if is_reported(&subscriber) {
            self.changed.insert(connection);
        }
        Some(subscriber)
    }

    pub fn rename(&mut self, connection: u64, name: Option<String>) {
        let Some(entry) = self.present.get(&connection) else { return };
        entry.peer.rename(name);
        self.changed.insert(connection);
    }

    /// Forgets a connection and returns its subscriptions.
    pub fn remove(&mut self, connection: u64) -> Vec<Arc<Subscriber>> {
        let Some(entry) = self.present.remove(&connection) else { return Vec::new() };
        self.changed.remove(&connection);
        if entry.reported {
            self.gone.insert(connection, entry.peer.name());
        }
        entry.subscribers.into_values().collect()
    }

    pub fn have_changed(&self) -> bool {
        !self.changed.is_empty() || !self.gone.is_empty()
    }

    /// Those that changed since this was last called, each as it is now.
    pub fn take_changed(&mut self) -> Vec<Listener> {
        let gone = std::mem::take(&mut self.gone).into_iter();
        let mut listeners: Vec<_> = gone.map(|(connection, name)| Listener::gone(connection, name)).collect();
        for connection in std::mem::take(&mut self.changed) {
            let Some(entry) = self.present.get_mut(&connection) else { continue };
            let subjects = entry.subjects();
            // A connection that listens on nothing and was never reported need not be reported.
            if entry.reported || !subjects.is_empty() {
                entry.reported = !subjects.is_empty();
                let (name, tenants) = (entry.peer.name(), entry.peer.tenants.clone());
                listeners.push(Listener { connection, name, subjects, tenants });
            }
        }
        listeners
    }
}

impl LocalConnection {
    fn subjects(&self) -> Vec<String> {
        let reported = self.subscribers.values().filter(|subscriber| is_reported(subscriber));
        let subjects: BTreeSet<_> = reported.map(|subscriber| subscriber.pattern.clone()).collect();
        subjects.into_iter().collect()
    }
}

fn is_reported(subscriber: &Subscriber) -> bool {
    !subscriber.pattern.starts_with(INBOX_PREFIX)
}
