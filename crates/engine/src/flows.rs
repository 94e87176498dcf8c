//! Runs of workflows: load, decide, commit, and then act on what was committed.
//!
//! A run that is under way is kept in memory, since every step of it needs all that came before. What it owes
//! follows from its record alone, so that a start finds it again: a step that is under way owes a job (or
//! another run, or an alert) whose id is known beforehand, and asking for one that is there is harmless.

mod outcome;
mod rerun;
mod rollback;
mod send;
mod start;
mod store;
mod timers;

pub use rerun::RerunError;
pub use rollback::rollback_id;
pub use start::{Asked, StartRunError, Started};
pub use store::SaveError;

use crate::Engine;
use crate::drive::STORE_PAUSE;
use reveille_core::flow::{Change, Event, Flow, Head, Node, NodeKey, Refusal, Run, advance};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use reveille_flows::{RunCommit, RunStep};
use reveille_store::StoreError;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use timers::RunTimers;

const CONFLICTS_MAX: usize = 50;

/// What is known of runs and workflows without asking.
#[derive(Default)]
pub(crate) struct Runs {
    open: Mutex<FxHashMap<RunId, Slot>>,
    read: Mutex<FxHashMap<(TenantId, WorkflowId, u32), Arc<Flow>>>,
    timers: RunTimers,
}

/// One at a time decides about a run. Nothing in it means that it has to be loaded.
type Slot = Arc<tokio::sync::Mutex<Option<Loaded>>>;

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

impl Runs {
    fn slot(&self, id: &RunId) -> Slot {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).entry(id.clone()).or_default().clone()
    }

    /// Forgets a run that nobody is deciding about.
    fn close(&self, id: &RunId) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(id).is_some_and(|slot| Arc::strong_count(slot) <= 2) {
            open.remove(id);
        }
    }
}

impl Engine {
    /// Changes a run as an event demands.
    pub(crate) async fn drive_run(&self, id: &RunId, event: &Event) -> Result<Head, RunError> {
        let slot = self.runs.slot(id);
        let mut held = slot.lock().await;
        let driven = self.drive_held(&mut held, id, event).await;
        if !held.as_ref().is_some_and(|loaded| loaded.run.is_live()) {
            *held = None;
            drop(held);
            self.runs.close(id);
        }
        driven
    }

    async fn drive_held(
        &self,
        held: &mut Option<Loaded>,
        id: &RunId,
        event: &Event,
    ) -> Result<Head, RunError> {
        for _ in 0..CONFLICTS_MAX {
            let loaded = match held {
                Some(loaded) => loaded,
                None => held.insert(self.load_run(id).await?.ok_or(RunError::Unknown)?),
            };
            let change = Arc::new(advance(&loaded.run, &loaded.flow, event, self.now())?);
            let committed = self.flows.commit(RunStep::change(&loaded.run.head, change.clone())).await;
            match committed {
                Ok(RunCommit::Done) => {
                    loaded.run.apply(Change::clone(&change));
                    self.settle_run(loaded, &change.nodes);
                    return Ok(loaded.run.head.clone());
                }
                Ok(_) => *held = None,
                // Nobody knows whether it counted; what is stored says so.
                Err(error) => {
                    *held = None;
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
                Err(RunError::Store(error)) if error.may_pass() => {
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

    /// A run with its workflow as it was when the run began.
    pub(crate) async fn load_run(&self, id: &RunId) -> Result<Option<Loaded>, StoreError> {
        let Some(run) = self.flows.run(id).await? else { return Ok(None) };
        let flow = self.flow_of(&run.head).await?;
        Ok(Some(Loaded { run, flow }))
    }

    /// Acts on a run as it was committed: its timer, what its steps have sent off, who waits for its end.
    /// Called with the run held; everything here is derived from the run, so calling it again does no harm.
    pub(crate) fn settle_run(&self, loaded: &Loaded, nodes: &[(NodeKey, Node)]) {
        let head = &loaded.run.head;
        self.runs.timers.set(&head.id, head.due);
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
            self.tell_parent(&loaded.run);
        }
    }

    /// Looks at the clock for runs, for as long as the engine runs.
    pub(crate) async fn time_runs(self) {
        loop {
            let due = self.runs.timers.next_due(self.now()).await;
            for id in due {
                let engine = self.clone();
                self.spawn(async move { engine.drive_run_on(&id, &Event::Time).await });
            }
        }
    }

    /// After a start: every run that owes something goes on where it stands.
    pub(crate) async fn recover_runs(self) {
        let (mut cursor, mut found) = (None, 0);
        loop {
            match self.flows.live(cursor, 200).await {
                Ok(page) => {
                    for id in &page.items {
                        found += 1;
                        self.pick_up_run(id).await;
                    }
                    match page.next {
                        Some(next) => cursor = Some(next),
                        None => break,
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "runs could not be read; trying again");
                    tokio::time::sleep(STORE_PAUSE).await;
                }
            }
        }
        if found > 0 {
            tracing::info!(runs = found, "runs picked up");
        }
    }

    async fn pick_up_run(&self, id: &RunId) {
        let slot = self.runs.slot(id);
        loop {
            let mut held = slot.lock().await;
            if held.is_some() {
                return;
            }
            match self.load_run(id).await {
                Ok(Some(loaded)) => {
                    let live: Vec<_> =
                        loaded.run.live().map(|(key, node)| (key.clone(), node.clone())).collect();
                    self.settle_run(&loaded, &live);
                    *held = Some(loaded);
                    return;
                }
                Ok(None) => return,
                Err(error) if !error.may_pass() => {
                    return tracing::error!(run = %id, %error, "a run cannot be read and is left alone");
                }
                Err(error) => {
                    self.trouble.store.tell(self.now(), "a run could not be read; trying again", id, &error);
                }
            }
            drop(held);
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    pub async fn cancel_run(&self, id: &RunId, by: &str, reason: &str) -> Result<Head, RunError> {
        let event = Event::Cancel { by: by.to_owned(), reason: reason.to_owned() };
        let (engine, id) = (self.clone(), id.clone());
        self.in_full(async move { engine.drive_run(&id, &event).await }).await
    }

    /// A run as it stands, once it is over or `patience` is.
    pub async fn run_after(&self, id: &RunId, until: Millis) -> Result<Option<Run>, StoreError> {
        let waiter = self.run_waiters.register(id);
        loop {
            let woken = waiter.woken();
            let Some(run) = self.flows.run(id).await? else { return Ok(None) };
            let left = until.since(self.now());
            if run.head.state.is_terminal() || left == 0 || self.is_draining() {
                return Ok(Some(run));
            }
            let _ = tokio::time::timeout(std::time::Duration::from_millis(left as u64), woken).await;
        }
    }
}
