//! What can be looked at: jobs, dead letters, dead packets and the audit trail, and waiting for a job to end.

use super::{HeldReadError, Jobs};
use crate::Caller;
use crate::placement::{Ahead, EligibleWorkers};
use reveille_core::audit::{Action, Entry, Verification};
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{DeadLetter, Job};
use reveille_core::request::Request;
use reveille_core::trace::JobTrace;
use reveille_store::{
    AuditQuery, DeadLetterCounts, DeadLetterQuery, DeadPacket, JobQuery, Page, StoreError, verify_chain,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

impl Jobs {
    /// A new id: ordered by time, unguessable enough to be shared.
    pub fn new_id(&self) -> JobId {
        self.runtime.new_job_id()
    }

    /// Where a job stands in its trace.
    pub fn trace_of<'a>(&self, request: &'a Request) -> JobTrace<'a> {
        self.observe.trace_of(request)
    }

    /// Checks a tenant's chain of the audit trail, at most so many entries of it.
    pub async fn verify_audit(
        &self,
        tenant: &TenantId,
        entries_max: u64,
    ) -> Result<Verification, StoreError> {
        verify_chain(&*self.store, tenant, entries_max).await
    }

    pub async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        self.store.job(id).await
    }

    /// One page of jobs, newest first.
    pub async fn list(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        self.store.jobs(query).await
    }

    /// The job once it has ended, or as it is when the patience is over or the server shuts down.
    pub async fn wait_for_end(&self, id: &JobId, patience: Duration) -> Result<Option<Arc<Job>>, StoreError> {
        let waiter = self.waiters.register(id);
        let end = Instant::now() + patience;
        loop {
            let woken = waiter.woken();
            tokio::pin!(woken);
            // From here on a wake is noticed, even one that comes before the first poll.
            woken.as_mut().enable();
            let job = self.store.job(id).await?;
            let is_over = |job: &Arc<Job>| {
                job.state().is_terminal() && !(job.owed.output_scan && self.holds_result(job))
            };
            if self.runtime.is_draining() || job.as_ref().is_none_or(is_over) {
                return Ok(job);
            }
            let look =
                Instant::now().checked_add(self.cluster.wake_patience()).map_or(end, |look| look.min(end));
            if tokio::time::timeout_at(look, woken).await.is_err() && look == end {
                return Ok(job);
            }
        }
    }

    /// Whoever waits for a job is answered with how it stands.
    pub(crate) fn wake_all(&self) {
        self.waiters.wake_all();
    }

    /// Decisions about jobs that are under way here.
    pub fn decisions(&self) -> usize {
        self.locks.busy()
    }

    /// The moments of jobs that this server waits for.
    pub fn timers(&self) -> Ahead {
        self.placement.timers().ahead()
    }

    /// The pools and workers that could get this job.
    pub fn eligible_workers(&self, request: &Request) -> EligibleWorkers {
        self.placement.eligible_workers(request, &self.runtime.rules().routing)
    }

    pub async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError> {
        self.store.dead_letters(query).await
    }

    pub async fn count_dead_letters(
        &self,
        tenant: Option<&TenantId>,
    ) -> Result<DeadLetterCounts, StoreError> {
        self.store.count_dead_letters(tenant).await
    }

    /// Packets that nobody could deal with. They may be anybody's, so who read them is recorded first.
    pub async fn dead_packets(
        &self,
        cursor: Option<u64>,
        limit: usize,
        reader: &Caller,
    ) -> Result<Page<DeadPacket>, HeldReadError> {
        let page = self.store.buried(cursor, limit).await?;
        if !page.items.is_empty() {
            let entry = self.audit.act_for_all(Action::DeadPacketsRead, &reader.into());
            self.audit.record_read(entry).await?;
        }
        Ok(page)
    }

    pub async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
        self.store.audit(query).await
    }
}
