//! Runs of workflows: load, decide, commit, and then act on what was committed.
//!
//! A run that is under way is kept in memory, since every step of it needs all that came before. What it owes
//! follows from its record alone, so that a start finds it again: a step that is under way owes a job (or
//! another run, or an alert) whose id is known beforehand, and asking for one that is there is harmless.

mod dry_run;
mod outcome;
mod rerun;
mod rollback;
mod saga;
mod seats;
mod send;
mod start;
mod store;
mod timers;
mod watch;

pub use dry_run::{DryRun, DryStep, Judged};
pub use rerun::RerunError;
pub use rollback::{rollback_id, rollback_of};
pub(crate) use seats::Runs;
pub use start::{Asked, StartRunError, Started};
pub use store::SaveError;

use crate::Engine;
use crate::drive::STORE_PAUSE;
use crate::events::What;
use crate::lease::Lease;
use reveille_core::flow::{Change, Event, Flow, Head, Node, NodeKey, Refusal, Run, RunState, advance};
use reveille_core::id::RunId;
use reveille_store::StoreError;
use reveille_store::workflows::{RunCommit, RunStep};
use seats::Seat;
use std::sync::Arc;

const CONFLICTS_MAX: usize = 50;

pub(crate) struct Loaded {
    pub run: Run,
    pub flow: Arc<Flow>,
}

/// Why a run did not change.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RunError {
    #[error("there is no such run")]
    Unknown,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// Changes a run as an event demands.
    pub(crate) async fn drive_run(&self, id: &RunId, event: &Event) -> Result<Head, RunError> {
        let slot = self.runs.slot(id);
        let mut seat = slot.lock().await;
        let mut lock = None;
        let driven = self.drive_held(&mut seat, &mut lock, id, event).await;
        if let Some(lock) = lock {
            lock.release().await;
        }
        if !seat.is_unsure && !seat.loaded.as_ref().is_some_and(|loaded| loaded.run.is_live()) {
            seat.loaded = None;
            drop(seat);
            self.runs.close(id);
        }
        driven
    }

    async fn drive_held(
        &self,
        seat: &mut Seat,
        lock: &mut Option<Lease>,
        id: &RunId,
        event: &Event,
    ) -> Result<Head, RunError> {
        for _ in 0..CONFLICTS_MAX {
            // Where others change runs too, what is in memory may be of old.
            let is_fresh = seat.loaded.is_none() || !self.is_one_of_many();
            let loaded = self.hold(seat, id).await?;
            let change = match advance(&loaded.run, &loaded.flow, event, self.now()) {
                Ok(change) => Arc::new(change),
                Err(refusal) if is_fresh => return Err(refusal.into()),
                Err(_) => {
                    seat.loaded = None;
                    continue;
                }
            };
            let committed = self.flows.commit(RunStep::change(&loaded.run.head, change.clone())).await;
            match committed {
                Ok(RunCommit::Done) => {
                    let before = loaded.run.head.state;
                    loaded.run.apply(Change::clone(&change));
                    self.tell_of_run(&loaded.run.head, Some(before));
                    self.metrics.saga.recorded(change.compensations.len());
                    self.settle_run(loaded, &change.nodes);
                    return Ok(loaded.run.head.clone());
                }
                // Another server was first. It sends off what its own change began.
                Ok(_) => {
                    seat.loaded = None;
                    if lock.is_none() {
                        *lock = self.lock_run(id).await;
                    }
                }
                Err(error) => {
                    if seat.failed(&error) {
                        self.spawn(self.clone().clear_doubt(id.clone()));
                    }
                    return Err(error.into());
                }
            }
        }
        Err(StoreError::Unavailable(format!("run {id} kept changing under us")).into())
    }

    /// The same, for what has nobody to tell: a store that fails is tried again until it works.
    pub(crate) async fn drive_run_on(&self, id: &RunId, event: &Event) {
        loop {
            match self.drive_run(id, event).await {
                Err(RunError::Store(error)) if error.is_transient() => {
                    self.trouble.store.tell(self.now(), "the store failed; trying again", id, &error);
                    tokio::time::sleep(STORE_PAUSE).await;
                }
                Err(RunError::Store(error)) => {
                    return tracing::error!(run = %id, %error, "a run cannot go on");
                }
                Err(refused) => return tracing::debug!(run = %id, %refused, "nothing changes"),
                Ok(_) => return,
            }
        }
    }

    /// Acts on a run as it was committed: its timer, what its steps have sent off, who waits for its end.
    /// Called with the run held; everything here is derived from the run, so calling it again does no harm.
    pub(crate) fn settle_run(&self, loaded: &Loaded, nodes: &[(NodeKey, Node)]) {
        let head = &loaded.run.head;
        self.runs.timers.set(&head.id, head.due);
        self.metrics.saga.settled(head, nodes);
        for (key, node) in nodes {
            if node.owes_cancel {
                self.spawn(self.clone().call_back(head.id.clone(), key.clone(), node.clone()));
            } else if !node.state.is_settled() && node.sent.is_some() {
                self.send_off(loaded, key, node);
            }
        }
        if head.owes_rollback {
            self.spawn(self.clone().undo(head.id.clone()));
        }
        if head.state.is_terminal() {
            self.run_waiters.wake(&head.id);
            self.tell_others_of_run(&head.id);
            self.tell_parent(&loaded.run);
        }
    }

    /// Tells those who watch that a run is in another state.
    fn tell_of_run(&self, head: &Head, before: Option<RunState>) {
        if before != Some(head.state) {
            self.say_of_run(head, before);
        }
    }

    /// Says it again: whoever committed the change may have been killed before it could. Readers tell by the revision
    /// whether they know it.
    fn tell_again_of_run(&self, head: &Head) {
        self.say_of_run(head, Some(head.state));
    }

    fn say_of_run(&self, head: &Head, before: Option<RunState>) {
        let Head { id, workflow, state, revision, .. } = head.clone();
        self.events.tell(head.updated_at, &head.tenant, What::Run { id, workflow, state, before, revision });
    }

    /// The same for all that is under way: nobody knows what of it was done.
    pub(crate) fn settle_all(&self, loaded: &Loaded) {
        let live: Vec<_> = loaded.run.live().map(|(key, node)| (key.clone(), node.clone())).collect();
        self.settle_run(loaded, &live);
    }

    pub async fn cancel_run(&self, id: &RunId, by: &str, reason: &str) -> Result<Head, RunError> {
        let event = Event::Cancel { by: by.to_owned(), reason: reason.to_owned() };
        let (engine, id) = (self.clone(), id.clone());
        self.run_detached(async move { engine.drive_run(&id, &event).await }).await
    }
}
