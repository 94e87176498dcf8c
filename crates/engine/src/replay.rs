//! Asking policy: about a job that is to run, and what it would say of others.

use crate::Engine;
use bytes::Bytes;
use reveille_core::id::{JobId, TenantId, Topic};
use reveille_core::job::Job;
use reveille_core::policy::{Counting, Judgement, Policy, Question, Trace, Verdict, Windows};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_store::{JobQuery, StoreError};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// Jobs looked at in one replay.
pub const REPLAY_MAX: usize = 10_000;
/// Differences that a replay tells one by one.
const DIFFERENCES_MAX: usize = 500;
const PAGE: usize = 500;
const PAUSE: Duration = Duration::from_secs(1);

/// What another policy would have said of the jobs of the past.
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

impl Engine {
    /// Asks policy about a job, whose input is what [`Engine::input_of`] says.
    pub(crate) fn judgement(&self, job: &Job, input: &[u8], now: Millis) -> Judgement {
        let counting = if job.judgements.is_empty() { Counting::Counts } else { Counting::Again };
        Judgement { verdict: self.verdict(&job.request, input, counting, now), checked_at: now }
    }

    /// What a job is to work on, if a rule wants to read it; otherwise nothing. A request never changes,
    /// and neither does its input.
    pub(crate) async fn input_of(
        &self,
        request: &Request,
        given: Option<&Bytes>,
    ) -> Result<Bytes, StoreError> {
        if !self.rules().policy.reads_input(request) {
            return Ok(Bytes::new());
        }
        match given {
            Some(given) => Ok(given.clone()),
            None => Ok(self.content(&request.context_ptr).await?.unwrap_or_default()),
        }
    }

    /// The same, for a job that is stored: a store that fails is asked again until it answers.
    pub(crate) async fn stored_input(&self, id: &JobId) -> Bytes {
        if !self.rules().policy.has_input_rules() {
            return Bytes::new();
        }
        loop {
            let read = match self.store.job(id).await {
                Ok(Some(job)) => self.input_of(&job.request, None).await,
                Ok(None) => return Bytes::new(),
                Err(error) => Err(error),
            };
            match read {
                Ok(input) => return input,
                Err(error) if !error.may_pass() => return Bytes::new(),
                Err(error) => {
                    self.trouble.store.tell(
                        self.now(),
                        "an input could not be read; trying again",
                        id,
                        &error,
                    );
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn verdict(&self, request: &Request, input: &[u8], counting: Counting, now: Millis) -> Verdict {
        let policy = &self.rules().policy;
        let question = Question { request, input, counting, now };
        if policy.has_velocity() {
            return policy.judge(&question, &mut self.windows());
        }
        policy.judge(&question, &mut Windows::default())
    }

    /// What policy would say of a request now. Nothing is counted or kept.
    pub fn would_say(&self, request: &Request) -> Verdict {
        self.verdict(request, &[], Counting::Looks, self.now())
    }

    /// The same, rule by rule.
    pub fn policy_trace(&self, request: &Request) -> (Verdict, Trace) {
        self.rules().policy.explain(request, &mut self.windows(), self.now())
    }

    /// Judges the jobs that were submitted since then by another policy, each as if it came alone: how
    /// often things were asked is left out of it.
    pub async fn replay(
        &self,
        policy: &Policy,
        tenant: Option<TenantId>,
        since: Millis,
    ) -> Result<Replay, StoreError> {
        let mut replay = Replay::default();
        let mut query = JobQuery { tenant, updated_after: Some(since), limit: PAGE, ..JobQuery::default() };
        loop {
            let page = self.store.jobs(&query).await?;
            for job in page.items.iter().filter(|job| job.created_at >= since) {
                replay.look(job, policy);
            }
            query.cursor = page.next;
            replay.is_partial = query.cursor.is_some() && replay.examined >= REPLAY_MAX;
            if query.cursor.is_none() || replay.is_partial {
                return Ok(replay);
            }
        }
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replay {
    fn look(&mut self, job: &Job, policy: &Policy) {
        let Some(first) = job.judgements.first() else { return };
        self.examined += 1;
        let would_be = policy.evaluate(&job.request);
        if first.verdict.decision == would_be.decision {
            return;
        }
        self.changed += 1;
        if self.differences.len() < DIFFERENCES_MAX {
            self.differences.push(Difference {
                job: job.id().clone(),
                tenant: job.request.tenant.clone(),
                topic: job.request.topic.clone(),
                was: first.verdict.clone(),
                would_be,
            });
        }
    }
}
