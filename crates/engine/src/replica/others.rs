//! Jobs that another server looks after: they are seated here too while they are at a worker, so that no worker is
//! given too much, and left alone otherwise.

use super::{BEAT, LOOK_AGAIN_LATER_MS, LOOK_AT_OWN_MS, PAGE};
use crate::Engine;
use reveille_core::id::JobId;
use reveille_core::job::{Job, State};
use reveille_core::time::Millis;
use reveille_store::{BEAT_MS, JobQuery, Quota, StoreError};

impl Engine {
    /// Whether a server that is here looks after the job.
    pub(crate) async fn is_in_others_hands(&self, id: &JobId) -> Result<bool, StoreError> {
        if !self.is_one_of_many() {
            return Ok(false);
        }
        let owner = self.store.owner(id).await?;
        Ok(owner.is_some_and(|owner| owner != self.replica.name && self.replicas().contains(&owner)))
    }

    /// Whether what is known of the job is newer than this.
    pub(crate) fn is_behind(&self, job: &Job) -> bool {
        let is_newer = |known: u64| known > job.revision;
        self.timers.revision_of(job.id()).is_some_and(is_newer)
            || (self.is_one_of_many() && self.replica.ended().revision_of(job.id()).is_some_and(is_newer))
    }

    /// Whether a packet was committed so long ago that others may have taken over meanwhile.
    pub(crate) fn is_late(&self, job: &Job) -> bool {
        self.is_one_of_many() && self.now().0 - job.updated_at.0 > BEAT_MS
    }

    /// Nothing is done for it here; it counts while it is at a worker, and is looked at now and then.
    pub(crate) fn seat_anothers(&self, job: &Job) {
        if self.is_behind(job) {
            return;
        }
        let now = self.now();
        let Some(attempt) = job.attempt() else {
            self.timers.clear(job.id());
            return self.placement().leave(job.id());
        };
        let tenant = &job.request.tenant;
        self.placement().reserve_at(&job.request, attempt.worker.as_ref(), attempt.dispatched_at, now);
        self.timers.watch(job.id(), tenant, job.state(), job.revision, now + LOOK_AGAIN_LATER_MS);
    }

    /// When to look at a job of ours that is due then.
    pub(crate) fn look_by(&self, due: Millis, now: Millis) -> Millis {
        if self.is_one_of_many() { due.min(now + LOOK_AT_OWN_MS) } else { due }
    }

    /// Others may have had our jobs, and nobody has told us what became of them.
    pub(super) async fn look_at_own(self) {
        for id in self.timers.own() {
            self.reseat(&id).await;
        }
    }

    /// All that is at workers when this server starts.
    pub(super) async fn seat_all_at_workers(&self) {
        for state in [State::Dispatched, State::Running] {
            let mut query = JobQuery { state: Some(state), limit: PAGE, ..JobQuery::default() };
            loop {
                let page = match self.store.jobs(&query).await {
                    Ok(page) => page,
                    Err(error) => {
                        let words = "jobs at workers could not be read";
                        self.trouble.store.tell(self.now(), words, &state, &error);
                        tokio::time::sleep(BEAT).await;
                        continue;
                    }
                };
                for job in &page.items {
                    let _turn = self.turn(job.id()).await;
                    if self.timers.revision_of(job.id()).is_none() {
                        self.seat_anothers(job);
                    }
                }
                query.cursor = page.next;
                if query.cursor.is_none() {
                    break;
                }
            }
        }
    }

    /// What a step that gives this job to a worker needs there to be room for.
    pub(crate) fn room_for_placed(&self, job: &Job) -> Quota {
        let Some(attempt) = job.attempt().filter(|_| self.is_one_of_many()) else { return Quota::default() };
        let (rules, request) = (self.rules(), &job.request);
        let worker_max =
            attempt.worker.as_ref().and_then(|worker| self.placement().jobs_max_at(request, worker));
        let limit = rules.policy.tenant_jobs_max(&request.tenant);
        Quota {
            worker_max,
            tenant_max: limit.into_iter().chain(job.jobs_max()).min(),
            topic_max: rules.routing.topic_max(&request.topic),
            queue_max: None,
        }
    }
}
