//! The roster writer: the one task that writes to the roster.
//!
//! Everything goes through it in order. What must be durable before it is answered is written at once,
//! together with whatever else is waiting; beats are collected and written at most 250 ms behind. What
//! the world is told of a change, it is told after the change is on the disk.

use super::hints::RosterHints;
use crate::observe::events::What;
use crate::observe::{Observe, Trouble};
use crate::placement::PlacementTable;
use crate::runtime::{RETRY_PAUSE, Runtime};
use reveille_core::fleet::Worker;
use reveille_core::id::TenantId;
use reveille_core::presence::About;
use reveille_roster::{Change, PresenceKey, PresenceRow, Roster, RosterError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// How far behind beats may be.
const BEHIND_MAX: Duration = Duration::from_millis(250);
/// Batches that may wait; beyond that their writers do.
const PENDING_MAX: usize = 4_096;
/// Batches in one write.
const WRITTEN_AT_ONCE: usize = 512;
/// Beats in one write.
const BEATS_MAX: usize = 5_000;

/// Changes that belong together, and the events that are published once they are durable.
#[derive(Default)]
pub struct RosterBatch {
    pub changes: Vec<Change>,
    pub events: Vec<(TenantId, What)>,
}

impl From<Change> for RosterBatch {
    fn from(change: Change) -> Self {
        Self { changes: vec![change], events: Vec::new() }
    }
}

struct PendingBatch {
    batch: RosterBatch,
    /// Who waits for it; a batch that nobody waits for is tried again until it works.
    done: Option<oneshot::Sender<Result<(), RosterError>>>,
}

/// A handle; clones write through the same task.
#[derive(Clone)]
pub struct RosterWriter(mpsc::Sender<PendingBatch>);

/// The task, until it runs.
pub struct RosterTask {
    runtime: Runtime,
    observe: Observe,
    placement: PlacementTable,
    roster: Arc<dyn Roster>,
    pending: mpsc::Receiver<PendingBatch>,
}

impl RosterWriter {
    pub fn new(
        runtime: Runtime,
        observe: Observe,
        placement: PlacementTable,
        roster: Arc<dyn Roster>,
    ) -> (Self, RosterTask) {
        let (sender, pending) = mpsc::channel(PENDING_MAX);
        (Self(sender), RosterTask { runtime, observe, placement, roster, pending })
    }

    /// Writes a batch and returns when it is durable.
    pub async fn write(&self, batch: impl Into<RosterBatch>) -> Result<(), RosterError> {
        let stopped = || RosterError::Unavailable("this server is shutting down".to_owned());
        let (done, answered) = oneshot::channel();
        let pending = PendingBatch { batch: batch.into(), done: Some(done) };
        self.0.send(pending).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }

    /// Returns when all that came before is durable.
    pub async fn flush(&self) -> Result<(), RosterError> {
        self.write(RosterBatch::default()).await
    }

    /// Writes a batch before long, and in any case before anything that comes after it.
    pub async fn write_later(&self, batch: RosterBatch) {
        // The channel closes only with the engine.
        let _ = self.0.send(PendingBatch { batch, done: None }).await;
    }
}

impl RosterTask {
    pub async fn run(mut self, hints: Option<RosterHints>) {
        let mut beats_at = Instant::now() + BEHIND_MAX;
        let mut pending = Vec::new();
        loop {
            if pending.is_empty() {
                tokio::select! {
                    // In this order every time, so that a simulated run can be repeated.
                    biased;
                    taken = self.pending.recv_many(&mut pending, WRITTEN_AT_ONCE) => {
                        if taken == 0 {
                            return;
                        }
                    }
                    () = tokio::time::sleep_until(beats_at) => {}
                }
            }
            let beats = if Instant::now() >= beats_at {
                beats_at = Instant::now() + BEHIND_MAX;
                let beats = self.placement.lock().take_unwritten(BEATS_MAX);
                if let Some(hints) = &hints {
                    hints.note(&beats);
                }
                beats
            } else {
                Vec::new()
            };
            pending = self.write_all(pending, beats).await;
        }
    }

    /// Returns what has to be tried again.
    async fn write_all(&self, pending: Vec<PendingBatch>, beats: Vec<Worker>) -> Vec<PendingBatch> {
        let changes = pending.iter().flat_map(|pending| pending.batch.changes.iter().cloned());
        // A beat comes after the workspace that it is of.
        let mut rows: Vec<PresenceRow> = beats.iter().filter_map(row).collect();
        // In the order of the table, writing many rows costs a quarter.
        rows.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let changes = changes.chain(rows.into_iter().map(Change::Presence)).collect();
        let Err(error) = self.write_changes(changes).await else {
            for pending in pending {
                self.written(pending);
            }
            return Vec::new();
        };
        self.observe.log(Trouble::Store, "roster not written", &"roster", &error);
        self.placement.lock().still_unwritten(&beats);
        if error.is_transient() {
            let again = pending.into_iter().filter_map(|pending| refused(pending, &error)).collect();
            tokio::time::sleep(RETRY_PAUSE).await;
            return again;
        }
        // One of them can never be written; the others are not held up by it.
        for pending in pending {
            match self.write_changes(pending.batch.changes.clone()).await {
                Ok(()) => self.written(pending),
                Err(error) => drop(refused(pending, &error)),
            }
        }
        Vec::new()
    }

    async fn write_changes(&self, changes: Vec<Change>) -> Result<(), RosterError> {
        if changes.is_empty() { Ok(()) } else { self.roster.write(changes).await }
    }

    fn written(&self, pending: PendingBatch) {
        let now = self.runtime.now();
        for (tenant, what) in pending.batch.events {
            self.observe.events().publish(now, &tenant, what);
        }
        if let Some(done) = pending.done {
            // Whoever asked may have stopped waiting.
            let _ = done.send(Ok(()));
        }
    }
}

/// Whoever waits is told; what nobody waits for is returned.
fn refused(pending: PendingBatch, error: &RosterError) -> Option<PendingBatch> {
    match pending.done {
        Some(done) => {
            let _ = done.send(Err(error.clone()));
            None
        }
        None => Some(pending),
    }
}

/// What is kept of a member. CAP workers are kept in the snapshot instead.
fn row(worker: &Worker) -> Option<PresenceRow> {
    if matches!(worker.about, About::Cap) {
        return None;
    }
    let key =
        PresenceKey { contract: worker.contract(), tenant: worker.tenant.clone(), id: worker.id.to_string() };
    Some(PresenceRow { key, last_seen: worker.last_seen, about: worker.about.clone() })
}
