//! After a start: pick up every live job where it stands.

use crate::Engine;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Phase, State};
use reveille_core::life;
use reveille_store::{Commit, JobQuery, Page, Step, StoreError};
use rustc_hash::FxHashSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

const PAGE: usize = 500;
const PAUSE: Duration = Duration::from_secs(1);

impl Engine {
    /// Reads the live jobs page by page, behind the open doors: first those at workers, because limits
    /// count them, then the others. What arrives meanwhile is handled as always.
    pub(crate) async fn recover(self) {
        if self.is_one_of_many() {
            return self.join().await;
        }
        let at_workers = self.adopt_at_workers().await;
        self.end_recount();
        let (mut cursor, mut found) = (None, at_workers.len());
        loop {
            let Some(page) = or_pause(self.store.live(cursor, PAGE).await).await else { continue };
            // Those at workers were picked up already.
            for job in page.items.iter().filter(|job| !at_workers.contains(job.id())) {
                found += 1;
                self.adopt(job.id()).await;
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        tracing::info!(jobs = found, "live jobs picked up");
        self.picked_up().await;
    }

    /// From here on everything that is owed is in hand.
    pub(crate) async fn picked_up(&self) {
        if self.is_recovered() {
            return;
        }
        self.set_recovered();
        *self.sent_early() = FxHashSet::default();
        // Policy may have changed while we were down.
        self.clone().review_approvals().await;
    }

    async fn adopt_at_workers(&self) -> FxHashSet<JobId> {
        let mut adopted = FxHashSet::default();
        for state in [State::Dispatched, State::Running] {
            let mut query = JobQuery { state: Some(state), limit: PAGE, ..JobQuery::default() };
            loop {
                let Some(page) = or_pause(self.store.jobs(&query).await).await else { continue };
                for job in &page.items {
                    if adopted.insert(job.id().clone()) {
                        self.adopt(job.id()).await;
                    }
                }
                query.cursor = page.next;
                if query.cursor.is_none() {
                    break;
                }
            }
        }
        adopted
    }

    /// A packet that is sent twice may be run twice: what was sent since the start is not picked up.
    fn is_sent(&self, job: &Job) -> bool {
        let Phase::Dispatched(attempt) = &job.phase else { return false };
        self.sent_early().contains(&(job.id().clone(), attempt.number))
    }

    pub(crate) fn note_sent(&self, job: &Job) {
        if let Phase::Dispatched(attempt) = &job.phase
            && !self.is_recovered()
        {
            self.sent_early().insert((job.id().clone(), attempt.number));
        }
    }

    fn sent_early(&self) -> MutexGuard<'_, FxHashSet<(JobId, u32)>> {
        self.sent_early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every job that was at a worker before our start is seated, or has been settled since: from here on
    /// limits can be kept.
    pub(crate) fn end_recount(&self) {
        let matches = {
            let mut placement = self.placement();
            placement.end_recount();
            placement.matches(self.now())
        };
        self.assign_all(matches);
    }

    pub(crate) async fn adopt(&self, id: &JobId) {
        loop {
            let turn = self.turn(id).await;
            match self.in_our_time(id).await {
                Ok(Some(job)) if self.is_sent(&job) => return self.keep_if_wanted(&job),
                Ok(Some(job)) if job.is_live() => {
                    self.tell_delegation(&job).await;
                    self.settle(&job);
                    self.keep_if_wanted(&job);
                    return self.resume_delivery(&job);
                }
                Ok(_) => return,
                Err(error) if !error.is_transient() => {
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

/// The page; nothing, and only after a pause, if it could not be read.
async fn or_pause(read: Result<Page<Arc<Job>>, StoreError>) -> Option<Page<Arc<Job>>> {
    match read {
        Ok(page) => Some(page),
        Err(error) => {
            tracing::warn!(%error, "live jobs could not be read; trying again");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}
