//! After a start: pick up every live job where it stands.

use super::Jobs;
use crate::cluster::SharedCluster;
use crate::observe::Trouble;
use crate::runtime::RETRY_PAUSE;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Phase, State};
use reveille_core::life;
use reveille_store::{Commit, JobQuery, Members, Page, Step, StoreError};
use rustc_hash::FxHashSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::watch;

const PAGE: usize = 500;
/// Jobs taken over at once.
const TAKEN_OVER_AT_ONCE: usize = 200;

impl Jobs {
    /// Reads the live jobs page by page, behind the open doors: first those at workers, because limits
    /// count them, then the others. What arrives meanwhile is handled as always.
    pub(crate) async fn recover(self) {
        let at_workers = self.adopt_at_workers().await;
        self.end_recount();
        let (mut cursor, mut found) = (None, at_workers.len());
        loop {
            let page = self.insist_page(|| self.store.live(cursor, PAGE)).await;
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

    /// Where servers share the store: picks up what is at workers and what others have left behind, and then goes on
    /// doing so. Beats have a task of their own: whoever takes over much must not fall silent over it.
    pub(crate) async fn join_cluster(self, shared: Arc<SharedCluster>) {
        let (sender, mut members) = watch::channel(None);
        let jobs = self.clone();
        let on_return = move || jobs.runtime.spawn(jobs.clone().look_at_own());
        self.runtime.spawn(shared.beat(sender, on_return));
        self.track_all_at_workers().await;
        self.end_recount();
        let mut adoption = Adoption::Whole;
        while members.changed().await.is_ok() {
            let Some(members) = members.borrow_and_update().clone() else { continue };
            if adoption == Adoption::Broken {
                adoption = self.adopt_own().await;
            }
            if adoption == Adoption::Whole {
                adoption = self.take_over_from(&members).await;
            }
            self.picked_up().await;
        }
    }

    /// What this server owns and does not know of: an answer was lost when it took over.
    async fn adopt_own(&self) -> Adoption {
        let mut cursor = None;
        loop {
            let Ok(page) = self.store.owned(cursor, TAKEN_OVER_AT_ONCE).await else {
                return Adoption::Broken;
            };
            for job in &page.items {
                let timers = self.placement.timers();
                if timers.revision_of(job.id()).is_none() || timers.is_anothers(job.id()) {
                    self.adopt(job.id()).await;
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Adoption::Whole;
            }
        }
    }

    async fn take_over_from(&self, members: &Members) -> Adoption {
        for silent in &members.silent {
            let mut jobs = 0;
            loop {
                match self.store.adopt(silent, TAKEN_OVER_AT_ONCE).await {
                    Ok(Some(adopted)) if !adopted.is_empty() => {
                        jobs += adopted.len();
                        for job in adopted {
                            self.adopt(job.id()).await;
                        }
                    }
                    Ok(Some(_)) => {
                        tracing::info!(replica = %silent, jobs, "jobs of a silent server taken over");
                        // It may have ended a job and not told the run that waits for it.
                        self.server_lost();
                        break;
                    }
                    Ok(None) => break,
                    Err(error) => {
                        let words = "jobs of a silent server still to be taken over";
                        self.observe.log(Trouble::Store, words, silent, &error);
                        return Adoption::Broken;
                    }
                }
            }
        }
        Adoption::Whole
    }

    fn server_lost(&self) {
        if let Some(delegations) = self.delegations.get() {
            delegations.server_lost();
        }
        if let Some(runs) = self.runs.get() {
            runs.server_lost();
        }
    }

    fn job_found(&self, job: &Job) {
        if let Some(runs) = self.runs.get() {
            runs.job_found(job);
        }
    }

    fn resume_delegation(&self, job: &Arc<Job>) {
        if job.request.delegated.is_some()
            && let Some(delegations) = self.delegations.get()
        {
            delegations.resume(job);
        }
    }

    /// From here on everything that is owed is in hand.
    pub(crate) async fn picked_up(&self) {
        if self.runtime.is_recovered() {
            return;
        }
        self.runtime.set_recovered();
        *self.sent_early() = FxHashSet::default();
        // Policy may have changed while we were down.
        self.clone().review_approvals().await;
    }

    async fn adopt_at_workers(&self) -> FxHashSet<JobId> {
        let mut adopted = FxHashSet::default();
        for state in [State::Dispatched, State::Running] {
            let mut query = JobQuery { state: Some(state), limit: PAGE, ..JobQuery::default() };
            loop {
                let page = self.insist_page(|| self.store.jobs(&query)).await;
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

    async fn insist_page<F: Future<Output = Result<Page<Arc<Job>>, StoreError>>>(
        &self,
        read: impl FnMut() -> F,
    ) -> Page<Arc<Job>> {
        self.observe.insist(Trouble::Store, "live jobs not read; retrying", &"jobs", read).await
    }

    /// A packet that is sent twice may be run twice: what was sent since the start is not picked up.
    fn is_sent(&self, job: &Job) -> bool {
        let Phase::Dispatched(attempt) = &job.phase else { return false };
        self.sent_early().contains(&(job.id().clone(), attempt.number))
    }

    pub(crate) fn note_sent(&self, job: &Job) {
        if let Phase::Dispatched(attempt) = &job.phase
            && !self.runtime.is_recovered()
        {
            self.sent_early().insert((job.id().clone(), attempt.number));
        }
    }

    fn sent_early(&self) -> MutexGuard<'_, FxHashSet<(JobId, u32)>> {
        self.sent_early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every job that was at a worker before our start has its reservation, or has been acted on since: from here on
    /// limits can be kept.
    pub(crate) fn end_recount(&self) {
        let matches = {
            let mut placement = self.placement.lock();
            placement.end_recount();
            placement.reserve_waiting(self.runtime.now())
        };
        self.assign_all(matches);
    }

    pub(crate) async fn adopt(&self, id: &JobId) {
        loop {
            let lock = self.lock(id).await;
            match self.in_our_time(id).await {
                Ok(Some(job)) if self.is_sent(&job) => return self.job_found(&job),
                Ok(Some(job)) if job.is_live() => {
                    self.record_delegation(&job).await;
                    self.act_on(&job);
                    self.job_found(&job);
                    return self.resume_delegation(&job);
                }
                Ok(_) => return,
                Err(error) if !error.is_transient() => {
                    return tracing::error!(job = %id, %error, "live job unreadable; left alone");
                }
                Err(error) => self.observe.log(Trouble::Store, "live job not read; retrying", id, &error),
            }
            drop(lock);
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// The job; if the clock was set back while nobody looked, with moments that our clock can meet.
    pub(crate) async fn in_our_time(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        loop {
            let Some(job) = self.store.job(id).await? else { return Ok(None) };
            let Some(back) = life::set_back(&job, self.runtime.now()) else { return Ok(Some(job)) };
            let step = Step::change(&job, back);
            let job = step.job.clone();
            if self.store.commit(step).await? == Commit::Done {
                return Ok(Some(job));
            }
        }
    }
}

/// How the last taking over ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Adoption {
    Whole,
    /// Nobody knows which jobs are ours since.
    Broken,
}
