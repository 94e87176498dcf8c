//! The one way a stored job changes: take its lock, load, decide, commit.

use super::Jobs;
use super::locks::JobLock;
use crate::locks::BUSY_PAUSE;
use crate::observe::Trouble;
use crate::runtime::RETRY_PAUSE;
use reveille_core::id::JobId;
use reveille_core::identity::Identity;
use reveille_core::job::{Event, Job, Refusal, State};
use reveille_core::life::{self, Limits};
use reveille_core::time::Millis;
use reveille_store::{Commit, ExceededQuota, Lock, Opened, Preconditions, Receipt, Step, StoreError};
use std::fmt::Display;
use std::sync::Arc;

/// Another server may get in between; this often in a row means that something else is wrong.
const CONFLICTS_MAX: usize = 50;

/// Why a job did not change.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DriveError {
    #[error("there is no such job")]
    Unknown,
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Policy would have to be asked, and cannot be.
    #[error("{0}")]
    Unjudged(String),
    /// The message was acted on before.
    #[error("it was dealt with before")]
    Seen,
    #[error("another server is about to change it")]
    Busy,
    /// Another server has filled the place meanwhile.
    #[error("there is no room for it any more")]
    QuotaExceeded,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a person may be asked about one more job of a tenant.
#[derive(Debug, Clone, Copy)]
enum MayAsk {
    IfWeSeeRoom,
    /// All servers together have asked about as many as may be.
    No,
}

/// A job as it is, with its lock: nobody else of this process changes it meanwhile.
pub(super) struct LockedJob<'a> {
    pub job: Arc<Job>,
    /// What the change depends on beside the job.
    pub preconditions: Preconditions,
    /// Another server may have changed it since it was cached or read, and what is decided on it is no answer
    /// unless it is committed.
    is_loose: bool,
    lock: JobLock<'a>,
}

impl<'a> LockedJob<'a> {
    /// A record that nobody of this process has changed since. If somebody else has, the commit says so.
    pub fn known(job: Arc<Job>, lock: JobLock<'a>) -> Self {
        Self { job, preconditions: Preconditions::default(), is_loose: false, lock }
    }
}

/// Whether this change has a job wait for a person.
fn begins_to_ask(before: &Job, after: &Job) -> bool {
    after.state() == State::ApprovalRequired && before.state() != State::ApprovalRequired
}

impl Jobs {
    /// Changes a job as `decide` says. It may be asked more than once, each time about the job as it is.
    pub(super) async fn drive(
        &self,
        id: &JobId,
        decide: impl Fn(&Job, Millis) -> Result<Job, Refusal> + Send + Sync,
    ) -> Result<Arc<Job>, DriveError> {
        let taken = self.take(id).await?;
        self.drive_taken(taken, decide).await
    }

    /// A job with its lock, for whoever has to look at more than the job before deciding.
    async fn take(&self, id: &JobId) -> Result<LockedJob<'_>, DriveError> {
        let lock = self.lock(id).await;
        let job = self.store.job(id).await?.ok_or(DriveError::Unknown)?;
        Ok(LockedJob::known(job, lock))
    }

    /// The same, to act on a message that may come again. Where servers share the store, it is tried without a lock
    /// there first, on what is cached of the job or on a plain read: the commit compares its revision and looks for
    /// the message. Only then is it opened.
    pub(super) async fn take_to_answer(
        &self,
        id: &JobId,
        message: Option<&Receipt>,
        is_first_try: bool,
    ) -> Result<LockedJob<'_>, DriveError> {
        let Some(message) = message else { return self.take(id).await };
        let answers = Some(message.clone());
        let lock = self.lock(id).await;
        if let Some(cache) = self.cluster.job_cache().filter(|_| is_first_try) {
            let job = match cache.get(id) {
                Some(job) => Some(job),
                None => self.store.job(id).await?,
            };
            if let Some(job) = job {
                let preconditions = Preconditions { answers, ..Preconditions::default() };
                return Ok(LockedJob { job, preconditions, is_loose: true, lock });
            }
        }
        match self.store.open(id, message).await? {
            Opened::Seen => Err(DriveError::Seen),
            Opened::Busy => Err(DriveError::Busy),
            Opened::Job { job, lock: under } => {
                let preconditions = Preconditions { under, answers, ..Preconditions::default() };
                let job = job.ok_or(DriveError::Unknown)?;
                Ok(LockedJob { job, preconditions, is_loose: false, lock })
            }
        }
    }

    pub(super) async fn drive_taken(
        &self,
        taken: LockedJob<'_>,
        decide: impl Fn(&Job, Millis) -> Result<Job, Refusal> + Send + Sync,
    ) -> Result<Arc<Job>, DriveError> {
        let LockedJob { job: mut before, mut preconditions, is_loose, lock: _lock } = taken;
        let mut may_ask = MayAsk::IfWeSeeRoom;
        for _ in 0..CONFLICTS_MAX {
            let now = self.runtime.now();
            let decided =
                decide(&before, now).and_then(|after| self.ask_or_deny(&before, after, may_ask, now));
            let after = match decided {
                Ok(after) => after,
                Err(_) if is_loose => return Err(self.forget(&before)),
                Err(refusal) => {
                    self.release_lock(preconditions.under).await;
                    return Err(refusal.into());
                }
            };
            let mut step = Step::change(&before, after).on(preconditions.clone());
            step.preconditions.quota = self.cluster.quota(&|| self.placed_quota(&step.job));
            let job = step.job.clone();
            let committed = self.commit(Some(&before), step).await;
            if begins_to_ask(&before, &job) && !matches!(committed, Ok(Commit::Done)) {
                self.placement.timers().take_back(&before);
            }
            match committed? {
                Commit::Done => return Ok(job),
                Commit::QuotaExceeded(ExceededQuota::Approvals) => may_ask = MayAsk::No,
                Commit::QuotaExceeded(_) => return Err(DriveError::QuotaExceeded),
                Commit::Seen => {
                    self.release_lock(preconditions.under).await;
                    return Err(DriveError::Seen);
                }
                Commit::Conflict if is_loose => return Err(self.forget(&before)),
                // Without its lock the change is still compared and swapped.
                Commit::Fenced => preconditions.under = None,
                Commit::Conflict | Commit::Duplicate(_) => {}
            }
            before = self.store.job(job.id()).await?.ok_or(DriveError::Unknown)?;
        }
        Err(StoreError::Unavailable(format!("job {} kept changing under us", before.id())).into())
    }

    /// A job that is to wait for a person does so if one more may, and is denied otherwise.
    fn ask_or_deny(&self, before: &Job, after: Job, may_ask: MayAsk, now: Millis) -> Result<Job, Refusal> {
        if !begins_to_ask(before, &after) {
            return Ok(after);
        }
        let max = self.runtime.settings().limits.approvals_per_tenant as usize;
        match may_ask {
            MayAsk::IfWeSeeRoom if self.placement.timers().reserve_asked(&after, max) => Ok(after),
            MayAsk::IfWeSeeRoom | MayAsk::No => {
                let over = self.observe.metrics().over_quota(self.over_approvals());
                life::deny_unasked(&after, &over, now)
            }
        }
    }

    /// What was cached of a job does not do: it is to be opened.
    fn forget(&self, job: &Job) -> DriveError {
        if let Some(cache) = self.cluster.job_cache() {
            cache.forget(job.id());
        }
        DriveError::Busy
    }

    /// Gives back the store's lock of a job that stays as it is. If that fails, the lock lapses by itself.
    async fn release_lock(&self, lock: Option<Lock>) {
        if let Some(lock) = lock
            && let Err(error) = self.store.unlock(&lock).await
        {
            tracing::debug!(lock = %lock.name, %error, "lock not released; it will expire");
        }
    }

    /// Like [`Jobs::drive`], for what has nobody to answer: a store that fails is tried again until it
    /// works. The caller waits meanwhile, which is what holds the senders back.
    pub(crate) async fn drive_on(
        &self,
        id: &JobId,
        decide: impl Fn(&Job, Millis) -> Result<Job, Refusal> + Send + Sync,
    ) -> Result<Arc<Job>, DriveError> {
        self.keep_driving(id, || self.drive(id, &decide)).await
    }

    /// Does it again for as long as the store fails in a way that may pass, or another server is at it.
    pub(super) async fn keep_driving<F>(
        &self,
        id: &JobId,
        drive: impl Fn() -> F,
    ) -> Result<Arc<Job>, DriveError>
    where
        F: Future<Output = Result<Arc<Job>, DriveError>>,
    {
        loop {
            match drive().await {
                Err(DriveError::Store(error)) if error.is_transient() => {
                    self.log_retry(id, &error);
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(DriveError::Busy) => tokio::time::sleep(BUSY_PAUSE).await,
                done => return done,
            }
        }
    }

    pub(super) fn log_retry(&self, whom: &dyn Display, error: &StoreError) {
        self.observe.log(Trouble::Store, "store failed; retrying", whom, error);
    }

    /// How long a job may stay where it is, and how often it may be tried.
    pub(super) fn limits(&self, job: &Job) -> Limits {
        Limits { approval_ms: self.runtime.settings().approval_ms, ..self.runtime.rules().limits(job) }
    }

    // What people decide; `approvals.rs` has the rest.

    pub async fn cancel(
        &self,
        id: &JobId,
        by: impl Into<Identity>,
        reason: &str,
    ) -> Result<Arc<Job>, DriveError> {
        let (by, reason) = (by.into(), reason.to_owned());
        self.decided(id, move |job, now| life::cancel(job, &by, &reason, now)).await
    }

    /// Like [`Jobs::drive`], for callers that may go away before the answer.
    pub(super) async fn decided(
        &self,
        id: &JobId,
        decide: impl Fn(&Job, Millis) -> Result<Job, Refusal> + Send + Sync + 'static,
    ) -> Result<Arc<Job>, DriveError> {
        let (jobs, id) = (self.clone(), id.clone());
        self.runtime.run_detached(async move { jobs.drive(&id, decide).await }).await
    }

    /// Whether the refusal only says that the job has ended.
    pub fn has_ended(error: &DriveError) -> bool {
        matches!(error, DriveError::Refused(Refusal::NotNow { state, event: Event::Cancel }) if state.is_terminal())
    }
}
