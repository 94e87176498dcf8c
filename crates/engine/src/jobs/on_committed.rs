//! What follows a commit, for every change of a job: written once, here. Only what marks a debt as paid (`settled`,
//! `saga_settled`, and moments set back after a start) is committed without: nothing follows from it.

use super::Jobs;
use super::locks::JobLock;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Phase};
use reveille_core::life::{self, Destination};
use reveille_core::time::Millis;
use reveille_store::{Commit, Step, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

use super::DriveError;
use crate::runtime::RETRY_PAUSE;

/// The moment of a live job that time alone does not change.
pub(super) const NEVER: Millis = Millis(i64::MAX);
/// How long a job stays away from a place that another server has filled.
const FULL_PAUSE: Duration = Duration::from_millis(100);

impl Jobs {
    /// Waits until nothing else is decided about the job.
    pub(crate) async fn lock(&self, job: &JobId) -> JobLock<'_> {
        let asked = Instant::now();
        let lock = self.locks.take(job).await;
        self.observe.metrics().waited_for_lock(asked.elapsed().as_secs_f64());
        lock
    }

    /// Commits a step, and acts on it if it counts. Called with the job's lock held.
    pub(super) async fn commit(&self, before: Option<&Arc<Job>>, step: Step) -> Result<Commit, StoreError> {
        let job = step.job.clone();
        let step = match self.cluster.step_event(&job) {
            Some(event) => step.with_event(event),
            None => step,
        };
        let committed = self.store.commit(step).await;
        match &committed {
            Ok(Commit::Done) => self.on_committed(before.map(|before| &**before), &job).await,
            // A store that fails may have committed all the same.
            Err(error) if error.is_transient() => {
                self.in_doubt.raise(job.id(), job.revision);
                self.runtime.spawn(self.clone().resolve_in_doubt(before.cloned(), job));
            }
            _ => {}
        }
        committed
    }

    /// Finds out whether a commit counted that was not answered, and acts on it if it did.
    async fn resolve_in_doubt(self, before: Option<Arc<Job>>, job: Arc<Job>) {
        loop {
            let lock = self.lock(job.id()).await;
            match self.store.job(job.id()).await {
                Ok(Some(stored)) if stored == job => {
                    // Unless somebody else did the same in the same millisecond, and was answered.
                    if self.in_doubt.settle(job.id(), job.revision) {
                        self.on_committed(before.as_deref(), &job).await;
                    }
                    return;
                }
                Err(error) if error.is_transient() => {}
                // It did not count, or somebody has gone on from there.
                _ => return self.in_doubt.drop_one(job.id(), job.revision),
            }
            drop(lock);
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Counts, publishes, records and exports a committed change, and then acts on the job as it is now. Called with
    /// the job's lock held, so that all of it happens in the order of the commits.
    async fn on_committed(&self, before: Option<&Job>, job: &Arc<Job>) {
        self.in_doubt.settle(job.id(), job.revision);
        self.observe.metrics().observe(before.map(Job::state), job);
        self.cluster.publish_committed(job);
        self.record_delegation(job).await;
        self.observe.export_trace(before, job);
        self.act_on(job);
    }

    pub(super) async fn record_delegation(&self, job: &Job) {
        if job.request.delegated.is_some()
            && let Some(delegations) = self.delegations.get()
        {
            delegations.job_committed(job).await;
        }
    }

    /// Acts on a committed job: timers, placement, packets, whoever waits. Called with the job's lock
    /// held; everything here is derived from the job, so calling it again does no harm.
    pub(super) fn act_on(&self, job: &Arc<Job>) {
        if let Some(cache) = self.cluster.job_cache() {
            cache.note(job);
        }
        self.place(job);
        self.note_sent(job);
        match &job.phase {
            Phase::Dispatched(_) if job.request.delegated.is_some() => {
                if let Some(delegations) = self.delegations.get() {
                    delegations.deliver(job);
                }
            }
            Phase::Dispatched(_) => self.runtime.spawn(self.clone().send(job.clone())),
            Phase::Ended(_) => {
                self.waiters.wake(job.id());
                self.act_on_end(job);
            }
            _ => {}
        }
    }

    fn act_on_end(&self, job: &Arc<Job>) {
        let runs = self.runs.get();
        if let Some(runs) = &runs {
            runs.job_ended(job);
        }
        if job.owed.has_notices() {
            self.runtime.spawn(self.clone().send_notices(job.clone()));
        }
        if job.owed.output_scan {
            self.runtime.spawn(self.clone().scan_content(job.clone()));
        }
        if let Some(runs) = runs.filter(|_| job.owed.saga) {
            runs.saga_owed(job);
        }
    }

    /// Its timer and its place in the table. What that frees or fills may let other jobs go.
    pub(super) fn place(&self, job: &Job) {
        if self.is_behind(job) {
            return;
        }
        let now = self.runtime.now();
        let due = life::due(job, &self.limits(job), now).unwrap_or(NEVER);
        if job.state().is_terminal() {
            self.placement.timers().clear(job.id());
        } else {
            self.placement.timers().set(job, self.cluster.look_by(due, now));
        }
        let matches = {
            let mut table = self.placement.lock();
            table.apply(job, now);
            table.reserve_waiting(now)
        };
        self.assign_all(matches);
    }

    /// Gives waiting jobs to the workers that were found for them.
    pub(crate) fn assign_all(&self, matches: Vec<(JobId, Destination)>) {
        for (id, to) in matches {
            self.runtime.spawn(self.clone().assign(id, to));
        }
    }

    async fn assign(self, id: JobId, to: Destination) {
        let done = self.drive_on(&id, |job, now| life::assign(job, &to, now)).await;
        if let Err(error) = done {
            // It was cancelled, or ended otherwise, while it was on its way: the reservation is given back.
            tracing::debug!(job = %id, %error, "job not assigned");
            self.placement.lock().end_pending(&id);
            if matches!(error, DriveError::QuotaExceeded) {
                // Whoever has filled the place says so at any moment; until then nothing else would be found.
                self.placement.lock().remove(&id);
                tokio::time::sleep(FULL_PAUSE).await;
            }
            self.reload(&id).await;
        }
    }

    /// Places a job as the store has it, and looks at it again when it says.
    pub(crate) async fn reload(&self, id: &JobId) {
        let (_lock, job) = loop {
            let lock = self.lock(id).await;
            match self.store.job(id).await {
                Ok(job) => break (lock, job),
                Err(error) if !error.is_transient() => break (lock, None),
                Err(error) => self.log_retry(id, &error),
            }
            drop(lock);
            tokio::time::sleep(RETRY_PAUSE).await;
        };
        if let Some(job) = job.as_ref().filter(|_| self.placement.timers().is_anothers(id)) {
            self.track_peers(job);
        } else if let Some(job) = &job {
            self.place(job);
        } else {
            self.placement.timers().clear(id);
            self.placement.lock().remove(id);
        }
    }
}
