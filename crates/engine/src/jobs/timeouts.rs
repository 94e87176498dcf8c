//! What time, and the loss of a worker, mean for a job.

use super::Jobs;
use super::on_committed::NEVER;
use super::policy_check::PolicyBasis;
use reveille_core::id::{JobId, WorkerId};
use reveille_core::job::{Job, Refusal, State};
use reveille_core::life::{self, Due};
use reveille_core::placement::routing::OnWorkerLost;
use reveille_core::reason::Reason;
use reveille_core::time::Millis;

/// Jobs handled per tick; the rest follow in the next.
const DUE_MAX: usize = 2_000;

impl Jobs {
    /// Looks at every job whose moment has come.
    pub(crate) fn run_due(&self, now: Millis) {
        for id in self.placement.timers().due(now, DUE_MAX) {
            self.runtime.spawn(self.clone().time_has_come(id));
        }
    }

    /// Asks the core what this moment means for the job.
    async fn time_has_come(self, id: JobId) {
        if self.placement.timers().is_anothers(&id) {
            return self.reload(&id).await;
        }
        let waits_for = self.placement.lock().wait_of(&id).map(|wait| wait.reason);
        let basis = self.policy.recheck_stored(&id, |job| self.is_to_be_judged(job)).await;
        let done = self.drive_on(&id, |job, now| self.by_time(job, waits_for, &basis, now)).await;
        if done.is_err() {
            self.reload(&id).await;
        }
    }

    fn is_to_be_judged(&self, job: &Job) -> bool {
        let now = self.runtime.now();
        let is_due = matches!(life::pass_time(job, &self.limits(job), None, now), Ok(Due::Judge));
        if is_due {
            // Its deadline does not wait for the answer.
            self.placement.timers().set(job, job.deadline().unwrap_or(NEVER));
        }
        is_due
    }

    /// What time does to the job, for timers and for the reconciler that comes after them.
    pub(super) fn by_time(
        &self,
        job: &Job,
        waits_for: Option<Reason>,
        basis: &PolicyBasis,
        now: Millis,
    ) -> Result<Job, Refusal> {
        match life::pass_time(job, &self.limits(job), waits_for, now)? {
            Due::Change(after) => Ok(*after),
            Due::Judge => self.policy.judge(job, basis, now),
            Due::Place | Due::Nothing => Err(Refusal::TooEarly),
        }
    }

    /// The worker is gone, and the job is given to another. A workspace that only forgot to beat while it thinks still
    /// answers its request: it keeps the job, and a request that breaks takes it back.
    pub(crate) async fn worker_gone(self, id: JobId, worker: WorkerId) {
        if self.delegations.get().is_some_and(|delegations| delegations.is_in_flight(&id)) {
            return self.reload(&id).await;
        }
        self.lose_attempt(id, Some(worker)).await;
    }

    /// The worker no longer has the job.
    pub(crate) async fn lose_attempt(self, id: JobId, worker: Option<WorkerId>) {
        let lost = self.drive_on(&id, |job, now| self.lost(job, worker.as_ref(), now)).await;
        if let Err(error) = lost {
            tracing::debug!(job = %id, %error, "job not withdrawn from its worker");
            self.reload(&id).await;
        }
    }

    fn lost(&self, job: &Job, worker: Option<&WorkerId>, now: Millis) -> Result<Job, Refusal> {
        let attempt = job.attempt().filter(|attempt| attempt.worker.as_ref() == worker);
        let attempt = attempt.ok_or_else(|| Refusal::ForeignWorker(format!("{worker:?}")))?;
        let mut limits = self.limits(job);
        if self.runtime.rules().routing.on_worker_lost(attempt.pool.as_ref()) == OnWorkerLost::Fail {
            limits.workers_lost_max = 1;
        }
        life::lose_worker(job, attempt.number, &limits, now)
    }

    /// The worker says it is idle, and should have this job: it never got the packet, or we never got the
    /// result.
    pub(crate) async fn worker_idle(self, id: JobId, worker: WorkerId) {
        if self.placement.timers().is_anothers(&id) {
            return self.reload(&id).await;
        }
        match self.store.job(&id).await {
            Ok(Some(job)) if job.state() == State::Dispatched => self.send(job).await,
            _ => {
                tracing::warn!(%worker, job = %id, "worker reports idle; its job is rescheduled");
                self.lose_attempt(id, Some(worker)).await;
            }
        }
    }
}
