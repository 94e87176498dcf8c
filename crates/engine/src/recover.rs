//! After a start: pick up every live job where it stands.

use crate::Engine;
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_core::life;
use reveille_store::{Commit, Step, StoreError};
use std::sync::Arc;
use std::time::Duration;

const PAGE: usize = 500;
const PAUSE: Duration = Duration::from_secs(1);

impl Engine {
    /// Reads the live jobs page by page, behind the open doors. What arrives meanwhile is handled as
    /// always; a job that is met twice is settled twice, which does no harm.
    pub(crate) async fn recover(self) {
        let (mut cursor, mut found) = (None, 0usize);
        loop {
            let page = match self.store.live(cursor, PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(%error, "live jobs could not be read; trying again");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            found += page.items.len();
            for job in page.items {
                self.adopt(job.id()).await;
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        self.set_recovered();
        tracing::info!(jobs = found, "live jobs picked up");
        // Policy may have changed while we were down.
        self.review_approvals().await;
    }

    async fn adopt(&self, id: &JobId) {
        loop {
            let turn = self.turn(id).await;
            match self.in_our_time(id).await {
                Ok(Some(job)) if job.is_live() => {
                    self.tell_delegation(&job).await;
                    self.settle(&job);
                    return self.resume_delivery(&job);
                }
                Ok(_) => return,
                Err(error) if !error.may_pass() => {
                    return tracing::error!(job = %id, %error, "a live job cannot be read and is left alone");
                }
                Err(error) => self.trouble.store.tell(
                    self.now(),
                    "a live job could not be read; trying again",
                    id,
                    &error,
                ),
            }
            drop(turn);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The job; if the clock was set back while nobody looked, with moments that our clock can meet.
    pub(crate) async fn in_our_time(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        loop {
            let Some(job) = self.store.job(id).await? else { return Ok(None) };
            let Some(back) = life::set_back(&job, self.now()) else { return Ok(Some(job)) };
            let step = Step::change(&job, back);
            let job = step.job.clone();
            if self.store.commit(step).await? == Commit::Done {
                return Ok(Some(job));
            }
        }
    }
}
