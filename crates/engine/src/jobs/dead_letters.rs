//! Dead letters: jobs that ended badly, to be tried again or put away; and jobs that policy would have otherwise.

use super::Jobs;
use super::blob_access::Named;
use super::submit::{Submission, SubmitError, Submitted, Submitter};
use crate::Caller;
use bytes::Bytes;
use reveille_core::audit::{Action, Draft};
use reveille_core::id::JobId;
use reveille_core::identity::Identity;
use reveille_core::job::{DeadLetter, Job, State};
use reveille_core::life;
use reveille_core::policy::Verdict;
use reveille_core::request::Request;
use reveille_core::retry;
use reveille_store::{BlobKey, Commit, DeadLetterQuery, PAGE_LEN_MAX, Step, StoreError};
use std::sync::Arc;

#[derive(Debug, Clone, thiserror::Error)]
pub enum RetryError {
    #[error("the job is known no longer")]
    JobGone,
    #[error("the input has expired; submit the job anew")]
    InputGone,
    #[error("the idempotency key of this retry belongs to job {0}")]
    KeyTaken(JobId),
    #[error("policy offered no remediation {0:?} for this job")]
    NotOffered(String),
    #[error("a job that is {0} was not stopped by policy")]
    NotStopped(State),
    #[error("policy throttles it: {}", .0.reason)]
    Throttled(Verdict),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What became of many retries.
#[derive(Debug, Default)]
pub struct Retried {
    pub retried: Vec<Arc<Job>>,
    pub failed: Vec<(JobId, RetryError)>,
}

impl Jobs {
    /// Keeps a job that could never run where an operator looks for it. Says whether it was not there before.
    pub(crate) async fn insert_dead(&self, dead: Job) -> Result<bool, StoreError> {
        let _lock = self.lock(dead.id()).await;
        Ok(self.commit(None, Step::insert(dead)).await? == Commit::Done)
    }

    /// The end of a job is noted in its saga.
    pub(crate) async fn settle_saga(&self, id: &JobId) -> Result<(), StoreError> {
        let _lock = self.lock(id).await;
        loop {
            let Some(job) = self.store.job(id).await?.filter(|job| job.owed.saga) else { return Ok(()) };
            if self.store.commit(Step::change(&job, life::saga_settled(&job))).await? != Commit::Conflict {
                return Ok(());
            }
        }
    }

    /// A job's entry, if it has one.
    pub async fn dead_letter(&self, job: &JobId) -> Result<Option<DeadLetter>, StoreError> {
        let query = DeadLetterQuery { job: Some(job.clone()), limit: 1, ..DeadLetterQuery::default() };
        Ok(self.store.dead_letters(&query).await?.items.pop())
    }

    /// Asks for the job once more: the same request, a copy of its input, judged afresh. The entry goes
    /// when the new job is stored; whoever comes in between, or comes back after a crash, gets that job.
    pub async fn retry(&self, letter: DeadLetter, by: &Caller) -> Result<Arc<Job>, RetryError> {
        let old = self.store.job(&letter.job_id).await?.ok_or(RetryError::JobGone)?;
        let request = Request { submitted_by: Some(by.key.clone()), ..retry::retry(&old.request, &letter) };
        let (request, context) = self.with_own_input(&old, request).await?;
        let (jobs, by) = (self.clone(), Identity::from(by));
        self.runtime
            .run_detached(async move {
                let job = jobs.ask_again(request, context).await?;
                if jobs.store.remove_dead_letter(&letter.job_id).await? {
                    let entry = jobs.about_letter(&letter, Action::DeadLetterRetried, &by);
                    jobs.audit.record(entry.about("new_job_id", job.id().as_str())).await;
                }
                Ok(job)
            })
            .await
    }

    /// Takes a dead letter off the list. Says whether it was there.
    pub async fn delete_dead_letter(&self, letter: DeadLetter, by: &Caller) -> Result<bool, StoreError> {
        let (jobs, by) = (self.clone(), Identity::from(by));
        self.runtime
            .run_detached(async move {
                let was_there = jobs.store.remove_dead_letter(&letter.job_id).await?;
                if was_there {
                    let entry = jobs.about_letter(&letter, Action::DeadLetterDeleted, &by);
                    jobs.audit.record(entry).await;
                }
                Ok(was_there)
            })
            .await
    }

    fn about_letter(&self, letter: &DeadLetter, action: Action, by: &Identity) -> Draft {
        let entry = self.audit.act(&letter.tenant, action, by).about("topic", letter.topic.as_str());
        Draft { job_id: Some(letter.job_id.clone()), reason: letter.reason.clone(), ..entry }
    }

    /// Asks for a job that policy stopped in one of the ways that policy offered instead. The old job stays
    /// as it is, and the new one is judged like any other.
    pub async fn remediate(&self, old: &Job, remediation: &str, by: &Caller) -> Result<Arc<Job>, RetryError> {
        if !matches!(old.state(), State::Denied | State::ApprovalRequired) {
            return Err(RetryError::NotStopped(old.state()));
        }
        let offered = old.last_verdict().map_or(&[][..], |recorded| &recorded.verdict.remediations);
        let not_offered = || RetryError::NotOffered(remediation.to_owned());
        let remediation = offered.iter().find(|offered| offered.id == remediation).ok_or_else(not_offered)?;
        let request = retry::remedy(&old.request, remediation).map_err(|_| not_offered())?;
        let request = Request { submitted_by: Some(by.key.clone()), ..request };
        let (request, context) = self.with_own_input(old, request).await?;
        self.ask_again(request, context).await
    }

    async fn ask_again(&self, request: Request, context: Option<Bytes>) -> Result<Arc<Job>, RetryError> {
        let id = request.id.clone();
        let submission = Submission { request, context, submitter: Submitter::Listens };
        match self.submit(submission).await? {
            Submitted::New(job) => Ok(job),
            Submitted::Existing(job) if *job.id() == id => Ok(job),
            Submitted::Existing(other) => Err(RetryError::KeyTaken(other.id().clone())),
            Submitted::Throttled(verdict) => Err(RetryError::Throttled(verdict)),
        }
    }

    /// Retries what the query finds, at most its limit. Results that are held back are left alone: to run
    /// such a job again is a decision about one job.
    pub async fn retry_many(&self, mut query: DeadLetterQuery, by: &Caller) -> Result<Retried, StoreError> {
        let max = query.limit;
        query.limit = PAGE_LEN_MAX;
        let mut done = Retried::default();
        loop {
            let page = self.store.dead_letters(&query).await?;
            for letter in page.items.into_iter().filter(|letter| letter.status != State::OutputQuarantined) {
                if done.retried.len() + done.failed.len() == max {
                    return Ok(done);
                }
                let id = letter.job_id.clone();
                match self.retry(letter, by).await {
                    Ok(job) => done.retried.push(job),
                    Err(error) => done.failed.push((id, error)),
                }
            }
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => return Ok(done),
            }
        }
    }

    /// The input belongs to its job and goes with it, so the new job gets a copy. Input that is not the old job's is
    /// only pointed at, as before: a copy would make another's blob the new job's own.
    async fn with_own_input(
        &self,
        old: &Job,
        request: Request,
    ) -> Result<(Request, Option<Bytes>), RetryError> {
        let Some(key) = self.owned(old, Named::Input(&old.request.context_ptr)).await? else {
            return Ok((request, None));
        };
        let input = self.store.blob(&key).await?.ok_or(RetryError::InputGone)?;
        let context_ptr = BlobKey::context_of(&request.id).pointer();
        Ok((Request { context_ptr, ..request }, Some(input)))
    }
}
