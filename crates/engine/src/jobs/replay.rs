//! What another policy would have said of the jobs of the past.

use super::Jobs;
use super::blob_access::content;
use super::policy_check::scan_input;
use reveille_core::id::{JobId, TenantId, Topic};
use reveille_core::job::Job;
use reveille_core::policy::{Counting, Policy, Question, Verdict, Windows};
use reveille_core::time::Millis;
use reveille_store::{JobQuery, StoreError};

/// Jobs read in one replay.
pub const REPLAY_MAX: usize = 10_000;
/// Differences that a replay tells one by one.
const DIFFERENCES_MAX: usize = 500;
const PAGE: usize = 500;

#[derive(Debug, Clone, Default)]
pub struct Replay {
    pub examined: usize,
    pub changed: usize,
    /// There were more jobs than a replay looks at.
    pub is_partial: bool,
    /// The first of those that changed.
    pub differences: Vec<Difference>,
}

#[derive(Debug, Clone)]
pub struct Difference {
    pub job: JobId,
    pub tenant: TenantId,
    pub topic: Topic,
    pub was: Verdict,
    pub would_be: Verdict,
}

impl Jobs {
    /// Judges the jobs that were submitted since then by another policy, each as if it came alone: how
    /// often things were asked is left out of it. Inputs that are still there are looked at.
    pub async fn replay(
        &self,
        policy: &Policy,
        tenant: Option<TenantId>,
        since: Millis,
    ) -> Result<Replay, StoreError> {
        let mut replay = Replay::default();
        let mut read = 0;
        let mut query = JobQuery { tenant, updated_after: Some(since), limit: PAGE, ..JobQuery::default() };
        loop {
            let page = self.store.jobs(&query).await?;
            read += page.items.len();
            for job in page.items.iter().filter(|job| job.created_at >= since) {
                let Some(recorded) = job.verdicts.first() else { continue };
                let would_be = self.judged_by(policy, job).await?;
                replay.add(job, &recorded.verdict, would_be);
            }
            query.cursor = page.next;
            replay.is_partial = query.cursor.is_some() && read >= REPLAY_MAX;
            if query.cursor.is_none() || replay.is_partial {
                return Ok(replay);
            }
        }
    }

    async fn judged_by(&self, policy: &Policy, job: &Job) -> Result<Verdict, StoreError> {
        let request = &*job.request;
        let stop = if policy.reads_input(request) && !request.context_ptr.is_empty() {
            scan_input(policy, request, content(&*self.store, &request.context_ptr).await?).await
        } else {
            None
        };
        let (counting, now) = (Counting::DryRun, job.created_at);
        let question = Question { request, input_verdict: stop.as_ref(), counting, now };
        Ok(policy.judge(&question, &mut Windows::default()))
    }
}

impl Replay {
    fn add(&mut self, job: &Job, was: &Verdict, would_be: Verdict) {
        self.examined += 1;
        if was.decision == would_be.decision {
            return;
        }
        self.changed += 1;
        if self.differences.len() < DIFFERENCES_MAX {
            self.differences.push(Difference {
                job: job.id().clone(),
                tenant: job.request.tenant.clone(),
                topic: job.request.topic.clone(),
                was: was.clone(),
                would_be,
            });
        }
    }
}
