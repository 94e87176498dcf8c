//! The events that several servers share: what this one says goes to the store, and what all have said is read
//! from there.
//!
//! Positions are the store's, so a subscriber goes on at any server where it was at another. What a job's step tells
//! is in the step itself and cannot be lost without it. What belongs to no step is said after it has happened, in
//! order; a server that is killed at that moment leaves it unsaid. Of runs it is said again by whoever takes over.

use crate::Engine;
use crate::events::{Item, Told, Unsaid, What, WorkerChange};
use bytes::Bytes;
use reveille_core::job::Job;
use reveille_store::EVENT_LOG_LEN_MAX;
use std::time::Duration;

/// How long the store is asked to wait for something new. Two of these without anything are an answer, too.
const WAIT: Duration = Duration::from_secs(1);
/// How much is let come together before it is read. A reader notices nothing of it; the store does.
const PACE: Duration = Duration::from_millis(5);
/// How long to leave a store alone that has just failed.
const PAUSE: Duration = Duration::from_millis(500);
/// Things said at once.
const SAID_AT_ONCE: usize = 256;
/// How long events wait for what they are about.
const LOOKED_UP_WITHIN: Duration = Duration::from_secs(2);

impl Engine {
    pub(crate) async fn read_news(self) {
        loop {
            let after = self.events.read_to();
            let news = match self.store.read_events(after, WAIT).await {
                Ok(news) => news,
                Err(error) => {
                    let words = "events of other servers cannot be read; trying again";
                    self.trouble.store.tell(self.now(), words, &"events", &error);
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let is_all = news.items.len() < EVENT_LOG_LEN_MAX;
            let items: Vec<_> = news.items.iter().map(|(place, item)| (*place, Item::read(item))).collect();
            self.know_what_changed(&items).await;
            for told in self.events.take_in(after, news.kept, items, is_all) {
                self.hear_told(told);
            }
            if is_all {
                tokio::time::sleep(PACE).await;
            }
        }
    }

    /// Whoever is told of a workspace or a drain asks about it at once, and another server may have written it.
    async fn know_what_changed(&self, items: &[(u64, Item)]) {
        let is_in_roster = |what: &What| match what {
            What::Workspace { name, .. } => name.starts_with("WORKSPACE_"),
            What::Worker { change, .. } => {
                matches!(change, WorkerChange::Drained | WorkerChange::Undrained)
            }
            What::Job { .. } | What::Run { .. } => false,
        };
        let is_new = |item: &Item| match item {
            Item::Told(told) => {
                told.by.as_ref().is_some_and(|by| by != self.store.name()) && is_in_roster(&told.what)
            }
            Item::Lost => false,
        };
        if items.iter().any(|(_, item)| is_new(item)) {
            // If the roster is away they are told as they are known.
            let _ = tokio::time::timeout(LOOKED_UP_WITHIN, self.follow()).await;
        }
    }

    pub(crate) async fn say_news(self, mut unsaid: Unsaid) {
        let (mut batch, mut told) = (0, Vec::with_capacity(SAID_AT_ONCE));
        while unsaid.0.recv_many(&mut told, SAID_AT_ONCE).await > 0 {
            let mut items: Vec<Bytes> = told.drain(..).map(|told| Item::Told(told).written()).collect();
            if self.events.take_lost() {
                items.push(Item::Lost.written());
            }
            batch += 1;
            while let Err(error) = self.store.append_events(batch, &items).await {
                self.trouble.store.tell(self.now(), "events wait to be told", &"events", &error);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// What a step of a job tells.
    pub(crate) fn news_of(job: &Job) -> Bytes {
        let (at, tenant) = (job.updated_at, job.request.tenant.clone());
        Item::Told(Told { at, tenant, by: None, what: What::of_job(job) }).written()
    }
}
