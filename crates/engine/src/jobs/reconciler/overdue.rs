//! The reconciler: ends jobs whose time is over and whose timer did not.

use crate::jobs::DriveError;
use crate::jobs::Jobs;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Refusal};
use reveille_core::reconcile;
use reveille_store::StoreError;

impl Jobs {
    pub(crate) fn is_overdue(&self, job: &Job) -> bool {
        reconcile::is_overdue(job, &self.limits(job), self.runtime.now())
    }

    /// As its timer would have. Says whether there was anything left to do.
    pub(crate) async fn end_overdue(&self, id: &JobId) -> Result<bool, StoreError> {
        let waits_for = self.placement.lock().wait_of(id).map(|wait| wait.reason);
        let not_asked = self.policy.not_asked();
        let ended = self.drive(id, |job, now| {
            if !self.is_overdue(job) {
                return Err(Refusal::TooEarly);
            }
            self.by_time(job, waits_for, &not_asked, now)
        });
        match ended.await {
            Ok(_) => Ok(true),
            Err(DriveError::Store(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }
}
