//! What another policy would have said of the jobs of the past.

use super::Jobs;
use super::blob_access::own_input;
use crate::evaluation::TooManyQuestions;
use crate::rules::read_policy;
use bytes::Bytes;
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::id::{JobId, TenantId, Topic};
use reveille_core::job::Job;
use reveille_core::policy::{
    Counting, ExpensiveRule, InputContent, Policy, Question, RecordedVerdict, Verdict, Windows,
};
use reveille_core::time::Millis;
use reveille_store::{JobQuery, StoreError};
use std::sync::Arc;

/// Jobs read in one replay.
pub const REPLAY_MAX: usize = 10_000;
/// Differences that a replay tells one by one.
const DIFFERENCES_MAX: usize = 500;
const PAGE: usize = 500;
/// Jobs that are judged in one go, and bytes of their inputs, about.
const BATCH_JOBS_MAX: usize = 64;
const BATCH_BYTES_MAX: usize = 4 << 20;

#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// Names the policy that was asked.
    pub snapshot: String,
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

/// Why there is no replay.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReplayError {
    #[error("policy: {0}")]
    BadPolicy(String),
    #[error(transparent)]
    TooExpensive(#[from] ExpensiveRule),
    #[error(transparent)]
    Busy(#[from] TooManyQuestions),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A job of the past with what it was to work on.
struct PastJob {
    job: Arc<Job>,
    input: PastInput,
}

enum PastInput {
    /// No rule reads it.
    NotRead,
    Gone,
    Content(Bytes),
}

impl Jobs {
    /// Judges the jobs that were submitted since then by another policy, each as if it came alone: how
    /// often things were asked is left out of it. Inputs that are still there are looked at.
    ///
    /// The policy is anybody's, so everything about it is worked out in the pool, and what all of it takes
    /// is limited. `asker` is whose question it is, `tenant` whose jobs are looked at.
    pub async fn replay(
        &self,
        policy: String,
        asker: &TenantId,
        tenant: Option<TenantId>,
        since: Millis,
    ) -> Result<Replay, ReplayError> {
        let evaluations = self.runtime.evaluations();
        let _question = evaluations.question(asker)?;
        let read = evaluations.run(CostLimit::PATTERNS, move |_| read_policy(&policy)).await;
        let policy = read.map_err(ReplayError::BadPolicy)?;
        let mut replay = Replay { snapshot: policy.snapshot().to_owned(), ..Replay::default() };
        let mut cost = CostLimit::REPLAY;
        let mut read = 0;
        let mut query = JobQuery { tenant, updated_after: Some(since), limit: PAGE, ..JobQuery::default() };
        loop {
            let page = self.store.jobs(&query).await?;
            read += page.items.len();
            let is_judged = |job: &Arc<Job>| job.created_at >= since && !job.verdicts.is_empty();
            let mut past = page.items.into_iter().filter(is_judged).peekable();
            while past.peek().is_some() {
                let batch = self.with_inputs(&policy, &mut past).await?;
                let policy = policy.clone();
                let judge = move |meter: &Meter| (judge_all(&policy, batch, meter), meter.left());
                let (judged, left) = evaluations.run(cost, judge).await;
                cost = left;
                for (job, would_be) in judged? {
                    replay.add(&job, would_be);
                }
            }
            query.cursor = page.next;
            replay.is_partial = query.cursor.is_some() && read >= REPLAY_MAX;
            if query.cursor.is_none() || replay.is_partial {
                return Ok(replay);
            }
        }
    }

    /// The next jobs, as many as can be held with their inputs.
    async fn with_inputs(
        &self,
        policy: &Policy,
        jobs: &mut impl Iterator<Item = Arc<Job>>,
    ) -> Result<Vec<PastJob>, StoreError> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_JOBS_MAX && bytes < BATCH_BYTES_MAX {
            let Some(job) = jobs.next() else { break };
            let request = &*job.request;
            let input = if policy.reads_input(request) && !request.context_ptr.is_empty() {
                let content = match own_input(request) {
                    Some(key) => self.store.blob(&key).await?,
                    None => None,
                };
                content.map_or(PastInput::Gone, PastInput::Content)
            } else {
                PastInput::NotRead
            };
            if let PastInput::Content(content) = &input {
                bytes += content.len();
            }
            batch.push(PastJob { job, input });
        }
        Ok(batch)
    }
}

fn judge_all(
    policy: &Policy,
    batch: Vec<PastJob>,
    meter: &Meter,
) -> Result<Vec<(Arc<Job>, Verdict)>, ExpensiveRule> {
    let judge = |PastJob { job, input }: PastJob| {
        let request = &*job.request;
        let stop = match &input {
            PastInput::NotRead => None,
            PastInput::Gone => policy.scan_input(request, InputContent::Missing),
            PastInput::Content(input) => policy.scan_input_within(request, input, meter)?,
        };
        let (counting, now) = (Counting::DryRun, job.created_at);
        let question = Question { request, input_verdict: stop.as_ref(), counting, now };
        // Each has what a verdict in force has, and all of them what the replay has.
        let own = Meter::new(CostLimit::VERDICT);
        let verdict = policy.try_judge(&question, &mut Windows::default(), &own)?;
        meter.add(&own).map_err(|reason| ExpensiveRule { rule: verdict.rule_id.clone(), reason })?;
        Ok((job, verdict))
    };
    batch.into_iter().map(judge).collect()
}

impl Replay {
    fn add(&mut self, job: &Job, would_be: Verdict) {
        let Some(RecordedVerdict { verdict: was, .. }) = job.verdicts.first() else { return };
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
