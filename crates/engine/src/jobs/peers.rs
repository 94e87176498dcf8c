//! Jobs that another server looks after: they count here too while they are at a worker, so that no worker is
//! given too much, and are left alone otherwise.

use super::Jobs;
use crate::cluster::{PeerJob, SharedCluster};
use crate::observe::Trouble;
use reveille_core::id::JobId;
use reveille_core::job::{Job, State};
use reveille_core::request::Request;
use reveille_store::{JobQuery, Quota, StoreError};
use std::sync::Arc;

/// Jobs read at once.
const PAGE: usize = 200;
/// A job that is at another server's worker is looked at this much later, should nothing be heard of it.
const LOOK_AGAIN_MS: i64 = 5_000;
/// And after that this often.
const LOOK_AGAIN_LATER_MS: i64 = 30_000;

impl Jobs {
    /// Whether a server that is here looks after the job.
    pub(super) async fn is_in_others_hands(&self, id: &JobId) -> Result<bool, StoreError> {
        let members = self.cluster.members();
        if members.is_empty() {
            return Ok(false);
        }
        let owner = self.store.owner(id).await?;
        Ok(owner.is_some_and(|owner| owner != self.cluster.name() && members.contains(&owner)))
    }

    /// Whether what is known of the job is newer than this.
    pub(super) fn is_behind(&self, job: &Job) -> bool {
        let is_newer = |known: u64| known > job.revision;
        self.placement.timers().revision_of(job.id()).is_some_and(is_newer)
            || self.cluster.ended_revision(job.id()).is_some_and(is_newer)
    }

    /// Nothing is done for it here; it counts while it is at a worker, and is looked at now and then.
    pub(super) fn track_peers(&self, job: &Job) {
        if self.is_behind(job) {
            return;
        }
        let now = self.runtime.now();
        let Some(attempt) = job.attempt() else {
            self.placement.timers().clear(job.id());
            return self.placement.lock().remove(job.id());
        };
        let tenant = &job.request.tenant;
        self.placement.lock().reserve_at(&job.request, attempt.worker.as_ref(), attempt.dispatched_at, now);
        self.placement.timers().watch(job.id(), tenant, job.state(), job.revision, now + LOOK_AGAIN_LATER_MS);
    }

    /// Others may have had our jobs, and nobody has told us what became of them.
    pub(super) async fn look_at_own(self) {
        for id in self.placement.timers().own() {
            self.reload(&id).await;
        }
    }

    /// All that is at workers when this server starts.
    pub(super) async fn track_all_at_workers(&self) {
        for state in [State::Dispatched, State::Running] {
            let mut query = JobQuery { state: Some(state), limit: PAGE, ..JobQuery::default() };
            loop {
                let words = "jobs at workers not read; retrying";
                let page =
                    self.observe.insist(Trouble::Store, words, &state, || self.store.jobs(&query)).await;
                for job in &page.items {
                    let _lock = self.lock(job.id()).await;
                    if self.placement.timers().revision_of(job.id()).is_none() {
                        self.track_peers(job);
                    }
                }
                query.cursor = page.next;
                if query.cursor.is_none() {
                    break;
                }
            }
        }
    }

    /// What a step that gives this job to a worker, or asks a person about it, needs there to be room for.
    pub(super) fn placed_quota(&self, job: &Job) -> Quota {
        let Some(attempt) = job.attempt() else {
            let approvals_max = self.runtime.settings().limits.approvals_per_tenant;
            return Quota { approvals_max: Some(approvals_max), ..Quota::default() };
        };
        let (rules, request) = (self.runtime.rules(), &job.request);
        let worker_max =
            attempt.worker.as_ref().and_then(|worker| self.placement.lock().jobs_max_at(request, worker));
        let limit = rules.policy.tenant_jobs_max(&request.tenant);
        Quota {
            worker_max,
            tenant_max: limit.into_iter().chain(job.jobs_max()).min(),
            topic_max: rules.routing.topic_max(&request.topic),
            queue_max: None,
            approvals_max: None,
        }
    }

    /// Another server has committed a job.
    pub(crate) fn on_peer_job(&self, shared: &SharedCluster, peer: &PeerJob) {
        let timers = self.placement.timers();
        let known = timers.revision_of(&peer.id).or_else(|| self.cluster.ended_revision(&peer.id));
        if known.is_some_and(|known| known >= peer.revision) {
            return;
        }
        let now = self.runtime.now();
        let matches = {
            let mut table = self.placement.lock();
            if peer.is_at_worker() {
                let request = Arc::new(Request {
                    tenant: peer.tenant.clone(),
                    delegated: peer.delegated.clone(),
                    ..Request::plain(peer.id.as_str(), peer.topic.as_str())
                });
                table.reserve_at(&request, peer.worker.as_ref(), peer.at, now);
            } else {
                table.remove(&peer.id);
            }
            table.reserve_waiting(now)
        };
        if peer.state.is_terminal() {
            shared.note_ended(&peer.id, peer.revision);
            self.waiters.wake(&peer.id);
        }
        if peer.is_at_worker() {
            timers.watch(&peer.id, &peer.tenant, peer.state, peer.revision, now + LOOK_AGAIN_MS);
        } else {
            timers.clear(&peer.id);
        }
        self.assign_all(matches);
    }
}
