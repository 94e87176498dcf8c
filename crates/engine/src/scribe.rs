//! The scribe: the one task that writes to the roster.
//!
//! Everything goes through it in order. What must be durable before it is answered is written at once,
//! together with whatever else is waiting; beats are collected and written at most 250 ms behind. What
//! the world is told of a change, it is told after the change is on the disk.

use crate::Engine;
use crate::events::What;
use reveille_core::fleet::Worker;
use reveille_core::id::TenantId;
use reveille_core::presence::About;
use reveille_roster::{Change, PresenceKey, PresenceRow, RosterError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// How far behind beats may be.
const BEHIND_MAX: Duration = Duration::from_millis(250);
/// Notes that may wait; beyond that their writers do.
const NOTES_MAX: usize = 4_096;
/// Notes in one write.
const BATCH_LEN_MAX: usize = 512;
/// Beats in one write.
const BEATS_MAX: usize = 5_000;
/// How long to leave a roster alone that has just failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Something to write down, and what to tell once it is.
#[derive(Default)]
pub struct Note {
    pub changes: Vec<Change>,
    pub told: Vec<(TenantId, What)>,
}

struct Errand {
    note: Note,
    /// Who waits for it; a note that nobody waits for is tried again until it works.
    done: Option<oneshot::Sender<Result<(), RosterError>>>,
}

pub struct Scribe(mpsc::Sender<Errand>);

/// The far end, until the task takes it.
pub struct Inbox(mpsc::Receiver<Errand>);

impl Scribe {
    pub fn new() -> (Self, Inbox) {
        let (sender, receiver) = mpsc::channel(NOTES_MAX);
        (Self(sender), Inbox(receiver))
    }
}

impl Engine {
    /// Writes something down and returns when it is durable.
    pub(crate) async fn write_down(&self, note: Note) -> Result<(), RosterError> {
        let stopped = || RosterError::Unavailable("this server is shutting down".to_owned());
        let (done, answered) = oneshot::channel();
        let errand = Errand { note, done: Some(done) };
        self.scribe.0.send(errand).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }

    /// Writes something down before long, and in any case before anything that comes after it.
    pub(crate) async fn jot_down(&self, note: Note) {
        // The channel closes only with the engine.
        let _ = self.scribe.0.send(Errand { note, done: None }).await;
    }

    pub(crate) async fn write_roster(self, mut inbox: Inbox) {
        let (hints, unsaid) = mpsc::channel(1);
        if self.is_one_of_many() {
            self.spawn(self.clone().hint_on(unsaid));
        }
        let mut beats_at = Instant::now() + BEHIND_MAX;
        let mut errands = Vec::new();
        loop {
            if errands.is_empty() {
                tokio::select! {
                    // In this order every time, so that a simulated run can be repeated.
                    biased;
                    taken = inbox.0.recv_many(&mut errands, BATCH_LEN_MAX) => {
                        if taken == 0 {
                            return;
                        }
                    }
                    () = tokio::time::sleep_until(beats_at) => {}
                }
            }
            let beats = if Instant::now() >= beats_at {
                beats_at = Instant::now() + BEHIND_MAX;
                let beats = self.placement().take_unwritten(BEATS_MAX);
                self.hint_at(&beats, &hints);
                beats
            } else {
                Vec::new()
            };
            errands = self.write_batch(errands, beats).await;
        }
    }

    /// Returns what has to be tried again.
    async fn write_batch(&self, errands: Vec<Errand>, beats: Vec<Worker>) -> Vec<Errand> {
        let noted = errands.iter().flat_map(|errand| errand.note.changes.iter().cloned());
        // A beat comes after the workspace that it is of.
        let mut rows: Vec<PresenceRow> = beats.iter().filter_map(row).collect();
        // In the order of the table, writing many rows costs a quarter.
        rows.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let changes = noted.chain(rows.into_iter().map(Change::Presence)).collect();
        let Err(error) = self.write_changes(changes).await else {
            for errand in errands {
                self.written(errand);
            }
            return Vec::new();
        };
        self.trouble.store.tell(self.now(), "the roster could not be written", &"roster", &error);
        self.placement().still_unwritten(&beats);
        if error.is_transient() {
            let again = errands.into_iter().filter_map(|errand| refused(errand, &error)).collect();
            tokio::time::sleep(PAUSE).await;
            return again;
        }
        // One of them can never be written; the others are not held up by it.
        for errand in errands {
            match self.write_changes(errand.note.changes.clone()).await {
                Ok(()) => self.written(errand),
                Err(error) => drop(refused(errand, &error)),
            }
        }
        Vec::new()
    }

    async fn write_changes(&self, changes: Vec<Change>) -> Result<(), RosterError> {
        if changes.is_empty() { Ok(()) } else { self.roster.write(changes).await }
    }

    fn written(&self, errand: Errand) {
        let now = self.now();
        for (tenant, what) in errand.note.told {
            self.events.tell(now, &tenant, what);
        }
        if let Some(done) = errand.done {
            // Whoever asked may have stopped waiting.
            let _ = done.send(Ok(()));
        }
    }
}

/// Whoever waits is told; what nobody waits for is returned.
fn refused(errand: Errand, error: &RosterError) -> Option<Errand> {
    match errand.done {
        Some(done) => {
            let _ = done.send(Err(error.clone()));
            None
        }
        None => Some(errand),
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
