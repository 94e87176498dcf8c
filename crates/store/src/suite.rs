//! The promises of [`Store`](crate::Store) as tests, run over every adapter.
//!
//! An adapter's tests call [`run`] on a store that was given the clock of a [`ManualClock`]. Each check
//! has its own tenant and ids, so that the checks do not see one another's jobs even where the store is
//! a shared server. What only one adapter can promise (files, recovery) is tested beside that adapter.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed check is a failed test")]

pub mod audit;
pub mod blobs;
pub mod breakers;
pub mod commits;
pub mod dead_packets;
pub mod hooked;
pub mod ledger;
pub mod listing;
pub mod locks;
pub mod pruning;
pub mod sharing;

use crate::{ClockFn, Commit, DeadLetterQuery, Step, Store};
use reveille_core::id::{JobId, TenantId, WorkerId};
use reveille_core::job::{Attempt, Ending, Job, Phase, State};
use reveille_core::life;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Runs every check, in order.
pub async fn run(store: &Arc<dyn Store>, clock: &ManualClock) {
    commits::run(store, clock).await;
    listing::run(&**store, clock).await;
    blobs::run(store, clock).await;
    locks::run(store, clock).await;
    breakers::run(store).await;
    pruning::run(&**store, clock).await;
    audit::run(store, clock).await;
    dead_packets::run(&**store, clock).await;
}

/// A clock that stands still until it is told otherwise.
#[derive(Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub fn new(now: Millis) -> Self {
        Self(Arc::new(AtomicI64::new(now.0)))
    }

    pub fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }

    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    /// What the store under test is made with.
    pub fn clock(&self) -> ClockFn {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}

/// A job of the tenant that is named after the check, called `<check>-<name>`.
pub fn new_job(check: &str, name: &str, now: Millis) -> Job {
    let mut request = Request::plain(&format!("{check}-{name}"), "job.echo");
    request.tenant = TenantId::known(check);
    life::submit(request, now)
}

/// The same job in RUNNING.
pub fn running(job: &Job, now: Millis) -> Job {
    let attempt = Attempt {
        number: 1,
        worker: Some(WorkerId::known("worker-1")),
        pool: None,
        dispatched_at: now,
        progress: None,
    };
    Job { phase: Phase::Running(attempt), updated_at: now, ..job.clone() }
}

/// The same job in a terminal state, still owing what such an ending owes.
pub fn ended(job: &Job, state: State, now: Millis) -> Job {
    let ending = Ending {
        state,
        from: job.state(),
        reason: None,
        words: "it is over".to_owned(),
        error_code: String::new(),
        result_ptr: String::new(),
        worker: None,
        execution_ms: 1,
        is_fatal: false,
        trace: None,
        cancelled_by: None,
    };
    let mut after = Job { phase: Phase::Ended(ending), updated_at: now, ..job.clone() };
    after.owed.dead_letter = state.is_dead_letter();
    after
}

/// A tenant's dead letters, newest first.
pub fn letters_of(tenant: &TenantId, limit: usize) -> DeadLetterQuery {
    DeadLetterQuery { tenant: Some(tenant.clone()), limit, ..DeadLetterQuery::default() }
}

/// Commits what must go through, and returns the job as the store has it.
pub async fn insert(store: &dyn Store, job: Job) -> Arc<Job> {
    commit(store, Step::insert(job)).await
}

pub async fn change(store: &dyn Store, before: &Arc<Job>, after: Job) -> Arc<Job> {
    commit(store, Step::change(before, after)).await
}

pub async fn load(store: &dyn Store, id: &JobId) -> Option<Arc<Job>> {
    store.job(id).await.unwrap()
}

async fn commit(store: &dyn Store, step: Step) -> Arc<Job> {
    let job = Arc::clone(&step.job);
    assert_eq!(store.commit(step).await.unwrap(), Commit::Done);
    job
}
