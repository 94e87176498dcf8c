//! Events that several servers share: every one of them reads the same, in the same order, with the same positions.
//!
//! What a job's step tells is in the step itself; everything else is appended to the store by one task (`cluster/event_log.rs`). Both
//! come back from there and only then reach the readers, also at the server that published it.

use super::{Audience, EventId, Events, Logs, What};
use bytes::Bytes;
use reveille_core::id::TenantId;
use reveille_core::job::Job;
use reveille_core::time::Millis;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// Events that may wait while the store is away. What is more is lost, and every reader starts afresh.
const UNLOGGED_MAX: usize = 65_536;
/// Positions at servers that share a store are of no one server's life.
const SHARED: u64 = 0;
/// A read that was under way when somebody asked may be older than the question; the one after it is not.
const READS_TO_BE_SURE: u64 = 2;

/// One event on its way through the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedEvent {
    pub at: Millis,
    pub tenant: TenantId,
    /// Who says so, where others may have noticed the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub what: What,
}

/// What stands in the store: an event, or that some could not be kept.
#[derive(Debug, Serialize, Deserialize)]
pub enum LogItem {
    #[serde(rename = "Told")]
    Event(LoggedEvent),
    Lost,
}

impl LogItem {
    /// Everything that we tell can be JSON; should it not be, that is a loss like another.
    pub fn written(&self) -> Bytes {
        serde_json::to_vec(self).map_or_else(|_| Bytes::from_static(b"\"Lost\""), Bytes::from)
    }

    pub fn read(text: &[u8]) -> Self {
        serde_json::from_slice(text).unwrap_or(Self::Lost)
    }
}

/// How this server appends what it publishes.
pub(super) struct LogWriter {
    name: String,
    events: mpsc::Sender<LoggedEvent>,
}

/// What is to be appended, until the task takes it.
pub struct Unlogged(pub mpsc::Receiver<LoggedEvent>);

/// How far the stream has been read.
#[derive(Default)]
pub(super) struct Reading {
    /// All that the store had was read once.
    pub is_begun: bool,
    /// How often it was read since.
    pub reads: u64,
    /// Positions of an earlier life mean nothing: the store has lost what it had, or we have.
    pub life: u64,
    /// Something that this server published was lost.
    pub has_lost: bool,
}

impl Reading {
    pub fn unneeded() -> Self {
        Self { is_begun: true, ..Self::default() }
    }
}

/// Where a position is.
pub(super) enum PositionLookup {
    Here,
    Gone,
    /// It was given out by a server that has read further; it will be here at any moment.
    NotYet,
}

impl Logs {
    pub(super) fn find(
        &mut self,
        audience: &Audience,
        id: EventId,
        epoch: u64,
        reads: u64,
    ) -> PositionLookup {
        let dropped = self.of(audience).dropped.max(self.begins);
        let may_come = epoch == SHARED && self.reading.reads < reads + READS_TO_BE_SURE;
        match id {
            id if id.epoch != epoch || id.seq < dropped => PositionLookup::Gone,
            id if id.seq <= self.last => PositionLookup::Here,
            _ if may_come => PositionLookup::NotYet,
            _ => PositionLookup::Gone,
        }
    }

    /// What was known is not enough any more: everybody starts afresh.
    fn begin_anew(&mut self, begins: u64) {
        self.reading.life += 1;
        (self.begins, self.last, self.kept) = (begins, begins, 0);
        for log in self.tenants.values_mut().chain([&mut self.everyone]) {
            log.entries.clear();
            (log.bytes, log.dropped) = (0, 0);
        }
    }

    fn wake_all(&self) {
        for log in self.tenants.values().chain([&self.everyone]).filter(|log| log.readers > 0) {
            log.published.notify_waiters();
        }
    }
}

impl Events {
    /// For one of several servers, by its name.
    pub fn shared(name: &str) -> (Self, Unlogged) {
        let (events, unlogged) = mpsc::channel(UNLOGGED_MAX);
        let writer = LogWriter { name: name.to_owned(), events };
        (Self { epoch: SHARED, log_writer: Some(writer), ..Self::of(Logs::default()) }, Unlogged(unlogged))
    }

    /// What a step of a job carries into the log. It belongs to no server.
    pub fn entry_of(job: &Job) -> Bytes {
        let (at, tenant) = (job.updated_at, job.request.tenant.clone());
        LogItem::Event(LoggedEvent { at, tenant, by: None, what: What::of_job(job) }).written()
    }

    pub(super) fn append(&self, writer: &LogWriter, at: Millis, tenant: &TenantId, what: What) {
        let event = LoggedEvent { at, tenant: tenant.clone(), by: Some(writer.name.clone()), what };
        if writer.events.try_send(event).is_err() {
            self.lock().reading.has_lost = true;
        }
    }

    /// Whether something was lost since this was last asked.
    pub fn take_lost(&self) -> bool {
        std::mem::take(&mut self.lock().reading.has_lost)
    }

    /// Where to read on. Nothing was read before that counts.
    pub fn read_to(&self) -> u64 {
        self.lock().last
    }

    /// Takes in what was read after `after`, when the store kept the places from the first to the last; returns
    /// what servers have published. What steps of jobs carry is no server's.
    pub fn take_in(
        &self,
        after: u64,
        kept: Option<(u64, u64)>,
        items: Vec<(u64, LogItem)>,
        is_all: bool,
    ) -> Vec<LoggedEvent> {
        let mut logs = self.lock();
        // The store has less than it had, or has let go of what was not read yet.
        let is_torn = match kept {
            None => after > 0,
            Some((first, last)) => last < after || (first > after && after > 0),
        };
        if is_torn {
            logs.begin_anew(0);
            logs.reading.is_begun = false;
            return Vec::new();
        }
        if !logs.reading.is_begun && after == 0 {
            logs.begins = kept.map_or(0, |(first, _)| first);
        }
        logs.reading.reads += 1;
        let is_news_to_all = items.is_empty() || !logs.reading.is_begun;
        let mut announced = Vec::new();
        for (place, item) in items {
            match item {
                LogItem::Event(event) => {
                    if event.by.is_some() {
                        announced.push(event.clone());
                    }
                    logs.push(place, event.at, &event.tenant, event.what);
                }
                LogItem::Lost => {
                    logs.begin_anew(place);
                    logs.wake_all();
                }
            }
        }
        logs.reading.is_begun |= is_all;
        if is_news_to_all {
            logs.wake_all();
        }
        announced
    }
}
