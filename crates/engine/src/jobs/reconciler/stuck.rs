//! The replayer: moves jobs on that could go on by themselves and stand still.

use crate::jobs::DriveError;
use crate::jobs::Jobs;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Refusal, State};
use reveille_core::reconcile;
use reveille_store::StoreError;
use std::sync::Arc;
use std::time::Duration;

/// How long an ended job may take to pay what it owes: a little longer than a look at its result.
const PAID_WITHIN: Duration = Duration::from_secs(35);

impl Jobs {
    pub(crate) fn is_stuck(&self, job: &Job) -> bool {
        // A job in the queue is given a worker as soon as there is one, however long that takes.
        let is_waiting = job.state() == State::Scheduled && self.placement.lock().has_reservation(job.id());
        reconcile::is_stuck(job, self.runtime.now()) && !is_waiting
    }

    /// Says whether there was anything left to do.
    pub(crate) async fn move_on(&self, id: &JobId) -> Result<bool, StoreError> {
        let Some(before) = self.store.job(id).await? else { return Ok(false) };
        let Some(job) = self.in_our_time(id).await? else { return Ok(false) };
        if job.updated_at < before.updated_at {
            self.reload(id).await;
            return Ok(true);
        }
        match job.state() {
            State::Pending | State::ApprovalRequired => self.judge_again(id).await,
            State::Scheduled => self.queue_again(id).await,
            _ => self.pay_again(&job).await,
        }
    }

    async fn judge_again(&self, id: &JobId) -> Result<bool, StoreError> {
        let basis = self.policy.recheck_stored(id, |job| self.is_stuck(job)).await;
        let judged = self.drive(id, |job, now| {
            if !self.is_stuck(job) {
                return Err(Refusal::TooEarly);
            }
            self.policy.judge(job, &basis, now)
        });
        match judged.await {
            Ok(_) => Ok(true),
            Err(DriveError::Store(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    async fn queue_again(&self, id: &JobId) -> Result<bool, StoreError> {
        let _lock = self.lock(id).await;
        let job = self.store.job(id).await?.filter(|job| self.is_stuck(job));
        if let Some(job) = &job {
            self.act_on(job);
        }
        Ok(job.is_some())
    }

    /// Here and now, and not in a task of its own: with a bus that is away for hours, those would pile up.
    async fn pay_again(&self, job: &Arc<Job>) -> Result<bool, StoreError> {
        if !self.is_stuck(job) {
            return Ok(false);
        }
        let paid = async {
            if job.owed.has_notices() {
                self.clone().send_notices(job.clone()).await;
            }
            if job.owed.output_scan {
                self.clone().scan_content(job.clone()).await;
            }
            if let Some(runs) = self.runs.get().filter(|_| job.owed.saga) {
                runs.note_in_saga(job).await;
            }
        };
        let paid = tokio::time::timeout(PAID_WITHIN, paid).await;
        paid.map(|()| true).map_err(|_| StoreError::Unavailable(format!("{:?} is still owed", job.owed)))
    }
}
