//! Approvals: a person answers for a job that waits, and policy that has changed looks at it again.

use super::Jobs;
use crate::DriveError;
use reveille_core::approval::{Answer, Choice, Conflict};
use reveille_core::id::JobId;
use reveille_core::job::{Job, Refusal, State};
use reveille_core::life;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_store::{JobQuery, PAGE_LEN_MAX, StoreError};
use std::sync::Arc;

/// A decision that holds.
#[derive(Debug, Clone)]
pub enum ApprovalOutcome {
    Now(Arc<Job>),
    /// The same was decided before; this answer changed nothing.
    Before(Arc<Job>),
}

impl Jobs {
    /// Lets a job go on. The approval and policy's second look are one commit.
    pub async fn approve(&self, id: &JobId, answer: Answer) -> Result<ApprovalOutcome, DriveError> {
        let job = self.store.job(id).await?.ok_or(DriveError::Unknown)?;
        if self.is_from_submitter(&job.request, &answer) {
            return Err(Refusal::from(Conflict::OwnJob).into());
        }
        let jobs = self.clone();
        let basis = self.policy.recheck(id, is_asking).await?;
        if let Some(problem) = basis.problem() {
            return Err(DriveError::Unjudged(problem));
        }
        let decide = move |job: &Job, now| match jobs.policy.verdict_on(job, &basis, now) {
            Ok(Ok(recorded)) => life::approve(job, &answer, recorded, now),
            // It has moved on since it was checked; the answer says how.
            _ => Err(answer.meets(job).err().unwrap_or(Refusal::TooEarly)),
        };
        match self.once(id, Choice::Approve, self.decided(id, decide).await).await? {
            ApprovalOutcome::Now(job) if job.state() == State::Denied => {
                Err(Refusal::from(Conflict::StaleSnapshot).into())
            }
            answered => Ok(answered),
        }
    }

    /// Whether whoever answers is who asked. A request may claim any name, but the key it came with has one
    /// that was given to it. A person is also who asked with a key that they made.
    pub fn is_from_submitter(&self, request: &Request, answer: &Answer) -> bool {
        let by = request.submitted_by.as_ref();
        let given = by.and_then(|key| self.keys.name_of(key));
        let maker = by.and_then(|key| self.keys.get(key)).map(|key| key.created_by);
        let is_maker =
            answer.key.as_ref().is_some_and(|key| key.is_person() && maker.as_deref() == Some(key.as_str()));
        answer.is_from_submitter(request)
            || is_maker
            || given.is_some_and(|name| answer.has_name(request, &name))
    }

    pub async fn reject(&self, id: &JobId, answer: Answer) -> Result<ApprovalOutcome, DriveError> {
        let decide = move |job: &Job, now| life::reject(job, &answer, now);
        self.once(id, Choice::Reject, self.decided(id, decide).await).await
    }

    /// Saying the same twice is saying it once.
    async fn once(
        &self,
        id: &JobId,
        choice: Choice,
        done: Result<Arc<Job>, DriveError>,
    ) -> Result<ApprovalOutcome, DriveError> {
        let refusal = match done {
            Ok(job) => return Ok(ApprovalOutcome::Now(job)),
            Err(DriveError::Refused(refusal @ Refusal::Approval(Conflict::AlreadyResolved))) => refusal,
            Err(error) => return Err(error),
        };
        let job = self.store.job(id).await?.ok_or(DriveError::Unknown)?;
        let is_same = job.decided.as_ref().is_some_and(|decided| decided.choice == choice);
        if is_same { Ok(ApprovalOutcome::Before(job)) } else { Err(refusal.into()) }
    }

    /// How long somebody may still take to decide; nothing for a job that waits for ever, or for nobody.
    pub fn time_to_decide(&self, job: &Job) -> Option<i64> {
        let now = self.runtime.now();
        let until = life::due(job, &self.limits(job), now).filter(|_| is_asking(job))?;
        Some(until.since(now).max(0))
    }

    /// Policy has changed, or may have: whoever waits for a person is judged by what holds now. What it
    /// allows goes on, what it denies is denied, and what still needs a person goes on waiting.
    pub(crate) async fn review_approvals(self) {
        let state = Some(State::ApprovalRequired);
        let mut query = JobQuery { state, limit: PAGE_LEN_MAX, ..JobQuery::default() };
        loop {
            let read = || self.store.jobs(&query);
            let page =
                match self.observe.until_answered("approvals not read; retrying", &"approvals", read).await {
                    Ok(page) => page,
                    Err(error) => return given_up(&error),
                };
            for job in page.items {
                if self.policy.kernel_address().is_none()
                    && !asks_under(&job, self.runtime.rules().policy.snapshot())
                {
                    self.review(job.id()).await;
                }
            }
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => return,
            }
        }
    }

    async fn review(&self, id: &JobId) {
        let basis = self.policy.recheck_stored(id, is_asking).await;
        // Whoever waits for a person does not run because somebody else is away.
        if basis.problem().is_some() {
            return;
        }
        let decide = |job: &Job, now: Millis| match self.policy.verdict_on(job, &basis, now)? {
            Ok(recorded) if is_asking(job) && !asks_under(job, &recorded.verdict.snapshot) => {
                life::judge(job, recorded, now)
            }
            _ => Err(Refusal::TooEarly),
        };
        if let Err(error) = self.drive_on(id, decide).await {
            tracing::debug!(job = %id, %error, "policy not checked again");
        }
    }
}

fn given_up(error: &StoreError) {
    tracing::error!(%error, "approvals cannot be read; left unchanged");
}

fn is_asking(job: &Job) -> bool {
    job.state() == State::ApprovalRequired
}

fn asks_under(job: &Job, snapshot: &str) -> bool {
    job.last_verdict().is_some_and(|recorded| recorded.verdict.snapshot == snapshot)
}
