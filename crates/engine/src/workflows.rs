//! Runs of workflows: load, decide, commit, and then act on what was committed.
//!
//! A run that is under way is kept in memory, since every step of it needs all that came before. What it owes
//! follows from its record alone, so that a start finds it again: a step that is under way owes a job (or
//! another run, or an alert) whose id is known beforehand, and asking for one that is there is harmless.

mod definitions;
mod dry_run;
mod entries;
mod open_runs;
mod outcome;
mod queries;
mod rerun;
mod rollback;
mod run_lock;
mod saga;
mod send;
mod start;
mod timers;
mod watch;

pub use definitions::SaveError;
pub use dry_run::{DryRunReport, DryStep, Judged};
pub use rerun::RerunError;
pub use rollback::{rollback_id, rollback_of};
#[cfg(test)]
pub use run_lock::TTL_MS as RUN_LOCK_TTL_MS;
pub use run_lock::{LOCK as RUN_LOCK, RunLocks};
use start::RunQuota;
pub use start::{RunRequest, StartRunError, Started};

use crate::base::Base;
use crate::cluster::{Cluster, Lease, PeerMessage};
use crate::evaluation::at_once;
use crate::jobs::{Jobs, RunHook, Waiters};
use crate::observe::audit_writer::AuditWriter;
use crate::observe::events::What;
use crate::observe::{Observe, Trouble};
use crate::runtime::{RETRY_PAUSE, Runtime};
use open_runs::{OpenRun, OpenRuns};
use reveille_bus::Bus;
use reveille_core::audit::{Action, Draft};
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::flow::{
    Flow, Node, NodeKey, Run, RunChange, RunEvent, RunHead, RunRefusal, RunState, advance,
};
use reveille_core::id::RunId;
use reveille_core::identity::Identity;
use reveille_core::job::Job;
use reveille_store::workflows::{RunCommit, RunStep, WorkflowStore};
use reveille_store::{Store, StoreError};
use std::ops::Deref;
use std::sync::Arc;

const CONFLICTS_MAX: usize = 50;

pub struct Loaded {
    pub run: Run,
    pub flow: Arc<Flow>,
}

/// Why a run did not change.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RunError {
    #[error("there is no such run")]
    Unknown,
    #[error(transparent)]
    Refused(#[from] RunRefusal),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A handle; clones are the same room.
#[derive(Clone)]
pub struct Workflows(Arc<Inner>);

pub struct Inner {
    runtime: Runtime,
    observe: Observe,
    cluster: Arc<dyn Cluster>,
    jobs: Jobs,
    audit: AuditWriter,
    store: Arc<dyn WorkflowStore>,
    bus: Arc<dyn Bus>,
    locks: RunLocks,
    runs: OpenRuns,
    waiters: Waiters<RunId>,
}

impl Deref for Workflows {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Workflows {
    /// `locks` is where the locks of runs are.
    pub fn new(
        base: Base,
        jobs: Jobs,
        audit: AuditWriter,
        store: Arc<dyn WorkflowStore>,
        locks: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
    ) -> Self {
        let Base { runtime, observe, cluster, .. } = base;
        let locks = RunLocks::new(locks, runtime.end(), observe.metrics().run_lock_fallbacks());
        let (runs, waiters) = (OpenRuns::default(), Waiters::default());
        Self(Arc::new(Inner { runtime, observe, cluster, jobs, audit, store, bus, locks, runs, waiters }))
    }

    /// Changes a run as an event demands.
    pub(crate) async fn drive_run(&self, id: &RunId, event: &RunEvent) -> Result<RunHead, RunError> {
        let slot = self.runs.slot(id);
        let mut open = slot.lock().await;
        let mut lock = None;
        let driven = self.drive_held(&mut open, &mut lock, id, event).await;
        if let Some(lock) = lock {
            lock.release().await;
        }
        if !open.is_unsure && !open.loaded.as_ref().is_some_and(|loaded| loaded.run.is_live()) {
            open.loaded = None;
            drop(open);
            self.runs.close(id);
        }
        driven
    }

    async fn drive_held(
        &self,
        open: &mut OpenRun,
        lock: &mut Option<Lease>,
        id: &RunId,
        event: &RunEvent,
    ) -> Result<RunHead, RunError> {
        for _ in 0..CONFLICTS_MAX {
            // Where others change runs too, what is in memory may be of old.
            let is_fresh = open.loaded.is_none() || !self.cluster.others_may_act();
            let loaded = self.hold(open, id).await?;
            let change = match self.advance(loaded, event).await {
                Ok(change) => Arc::new(change),
                Err(refusal) if is_fresh => return Err(refusal.into()),
                Err(_) => {
                    open.loaded = None;
                    continue;
                }
            };
            let committed = self.store.commit(RunStep::change(&loaded.run.head, change.clone())).await;
            match committed {
                Ok(RunCommit::Done) => {
                    let before = loaded.run.head.state;
                    loaded.run.apply(RunChange::clone(&change));
                    self.publish_run(&loaded.run.head, Some(before));
                    self.observe.metrics().saga().recorded(change.compensations.len());
                    self.act_on_run(loaded, &change.nodes);
                    return Ok(loaded.run.head.clone());
                }
                // Another server was first. It sends off what its own change began.
                Ok(_) => {
                    open.loaded = None;
                    if lock.is_none() {
                        *lock = self.locks.take(id).await;
                    }
                }
                Err(error) => {
                    if open.failed(&error) {
                        self.runtime.spawn(self.clone().resolve_in_doubt(id.clone()));
                    }
                    return Err(error.into());
                }
            }
        }
        Err(StoreError::Unavailable(format!("run {id} kept changing under us")).into())
    }

    /// What follows from an event: at once, or elsewhere if that takes long.
    async fn advance(&self, loaded: &Loaded, event: &RunEvent) -> Result<RunChange, RunRefusal> {
        let now = self.runtime.now();
        if let Some(change) = at_once(|meter| advance(&loaded.run, &loaded.flow, event, now, meter)) {
            return change;
        }
        let (run, flow, event) = (loaded.run.clone(), loaded.flow.clone(), event.clone());
        let advanced = move |meter: &Meter| advance(&run, &flow, &event, now, meter);
        self.runtime.evaluations().run(CostLimit::RUN_EVENT, advanced).await
    }

    /// The same, for what has nobody to tell: a store that fails is tried again until it works.
    pub(crate) async fn drive_run_on(&self, id: &RunId, event: &RunEvent) {
        loop {
            match self.drive_run(id, event).await {
                Err(RunError::Store(error)) if error.is_transient() => {
                    self.observe.log(Trouble::Store, "store failed; retrying", id, &error);
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(RunError::Store(error)) => {
                    return tracing::error!(run = %id, %error, "run cannot advance");
                }
                Err(refused) => return tracing::debug!(run = %id, %refused, "run unchanged"),
                Ok(_) => return,
            }
        }
    }

    /// Acts on a run as it was committed: its timer, what its steps have sent off, who waits for its end.
    /// Called with the run held; everything here is derived from the run, so calling it again does no harm.
    pub(crate) fn act_on_run(&self, loaded: &Loaded, nodes: &[(NodeKey, Node)]) {
        let head = &loaded.run.head;
        self.runs.timers.set(&head.id, head.due);
        self.observe.metrics().saga().settled(head, nodes);
        for (key, node) in nodes {
            if node.owes_cancel {
                self.runtime.spawn(self.clone().call_back(head.id.clone(), key.clone(), node.clone()));
            } else if !node.state.is_settled() && node.sent.is_some() {
                self.send_off(loaded, key, node);
            }
        }
        if head.owes_rollback {
            self.runtime.spawn(self.clone().undo(head.id.clone()));
        }
        if head.state.is_terminal() {
            self.waiters.wake(&head.id);
            self.cluster.publish(&|| PeerMessage::Run(head.id.clone()));
            self.notify_parent(&loaded.run);
        }
    }

    /// Tells those who watch that a run is in another state.
    fn publish_run(&self, head: &RunHead, before: Option<RunState>) {
        if before != Some(head.state) {
            self.publish_run_state(head, before);
        }
    }

    /// Says it again: whoever committed the change may have been killed before it could. Readers tell by the revision
    /// whether they know it.
    fn publish_run_again(&self, head: &RunHead) {
        self.publish_run_state(head, Some(head.state));
    }

    fn publish_run_state(&self, head: &RunHead, before: Option<RunState>) {
        let RunHead { id, workflow, state, revision, .. } = head.clone();
        self.observe.events().publish(
            head.updated_at,
            &head.tenant,
            What::Run { id, workflow, state, before, revision },
        );
    }

    /// The same for all that is under way: nobody knows what of it was done.
    pub(crate) fn act_on_all(&self, loaded: &Loaded) {
        let live: Vec<_> = loaded.run.live().map(|(key, node)| (key.clone(), node.clone())).collect();
        self.act_on_run(loaded, &live);
    }

    /// Somebody wants a run no more, nor the jobs that it has sent off.
    pub async fn cancel_run(
        &self,
        id: &RunId,
        by: impl Into<Identity>,
        reason: &str,
    ) -> Result<RunHead, RunError> {
        let (by, reason) = (by.into(), reason.to_owned());
        let (workflows, id) = (self.clone(), id.clone());
        self.runtime
            .run_detached(async move {
                let event = RunEvent::Cancel { by: by.name.clone(), reason: reason.clone() };
                let head = workflows.drive_run(&id, &event).await?;
                let entry = workflows.about_run(&head, Action::RunCancelled, &by);
                workflows.audit.record(Draft { reason, ..entry }).await;
                Ok(head)
            })
            .await
    }
}

#[async_trait::async_trait]
impl RunHook for Workflows {
    fn job_ended(&self, job: &Arc<Job>) {
        self.on_step_ended(job);
    }

    fn saga_owed(&self, job: &Arc<Job>) {
        self.note_in_saga_later(job);
    }

    async fn note_in_saga(&self, job: &Job) {
        self.note_saga(job).await;
    }

    fn job_found(&self, job: &Job) {
        self.keep_if_wanted(job);
    }

    fn server_lost(&self) {
        self.runs.left_behind.notify_one();
    }
}
