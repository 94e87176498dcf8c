//! The events that several servers share: what this one says goes to the store, and what all have said is read
//! from there.
//!
//! Positions are the store's, so a subscriber goes on at any server where it was at another. What a job's step tells
//! is in the step itself and cannot be lost without it. What belongs to no step is said after it has happened, in
//! order; a server that is killed at that moment leaves it unsaid. Of runs it is said again by whoever takes over.

use super::shared::SharedCluster;
use crate::observe::Trouble;
use crate::observe::events::{LogItem, Unlogged, What, WorkerChange};
use bytes::Bytes;
use reveille_roster::RosterError;
use reveille_store::EVENT_LOG_LEN_MAX;
use std::sync::Arc;
use std::time::Duration;

/// How long the store is asked to wait for something new. Two of these without anything are an answer, too.
const WAIT: Duration = Duration::from_secs(1);
/// How much is let come together before it is read. A reader notices nothing of it; the store does.
const PACE: Duration = Duration::from_millis(5);
/// How long to leave a store alone that has just failed.
const PAUSE: Duration = Duration::from_millis(500);
/// Events appended at once.
const APPENDED_AT_ONCE: usize = 256;
/// How long events wait for what they are about.
const REFRESHED_WITHIN: Duration = Duration::from_secs(2);

impl SharedCluster {
    /// Reads the event log until the engine ends. `refresh` brings the copies of the roster up to date, when an event
    /// says that another server has changed them.
    pub async fn follow_event_log<F>(self: Arc<Self>, refresh: impl Fn() -> F + Send + Sync)
    where
        F: Future<Output = Result<(), RosterError>> + Send,
    {
        loop {
            let after = self.observe.events().read_to();
            let page = match self.store.read_events(after, WAIT).await {
                Ok(page) => page,
                Err(error) => {
                    let words = "event log not read; retrying";
                    self.observe.log(Trouble::Store, words, &"events", &error);
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let is_all = page.items.len() < EVENT_LOG_LEN_MAX;
            let items: Vec<_> =
                page.items.iter().map(|(place, item)| (*place, LogItem::read(item))).collect();
            if items.iter().any(|(_, item)| self.changes_roster(item)) {
                // If the roster is away, subscribers are shown what is known.
                let _ = tokio::time::timeout(REFRESHED_WITHIN, refresh()).await;
            }
            for event in self.observe.events().take_in(after, page.kept, items, is_all) {
                self.on_announced(event);
            }
            if is_all {
                tokio::time::sleep(PACE).await;
            }
        }
    }

    /// Whether another server has changed a workspace or a drain: whoever is told of it asks about it at once.
    fn changes_roster(&self, item: &LogItem) -> bool {
        let LogItem::Event(event) = item else { return false };
        let is_in_roster = match &event.what {
            What::Workspace { name, .. } => name.starts_with("WORKSPACE_"),
            What::Worker { change, .. } => {
                matches!(change, WorkerChange::Drained | WorkerChange::Undrained)
            }
            What::Job { .. } | What::Run { .. } => false,
        };
        is_in_roster && event.by.as_ref().is_some_and(|by| by != self.store.name())
    }

    /// Appends what this server publishes, in order.
    pub async fn append_events(self: Arc<Self>, mut unlogged: Unlogged) {
        let (mut batch, mut events) = (0, Vec::with_capacity(APPENDED_AT_ONCE));
        while unlogged.0.recv_many(&mut events, APPENDED_AT_ONCE).await > 0 {
            let mut items: Vec<Bytes> =
                events.drain(..).map(|event| LogItem::Event(event).written()).collect();
            if self.observe.events().take_lost() {
                items.push(LogItem::Lost.written());
            }
            batch += 1;
            while let Err(error) = self.store.append_events(batch, &items).await {
                self.observe.log(Trouble::Store, "events not logged; retrying", &"events", &error);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
