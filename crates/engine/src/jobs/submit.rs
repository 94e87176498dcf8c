//! Taking a job in: checked, judged, placed if a worker is free, and committed, all at once.

use super::Jobs;
use super::policy_check::PolicyBasis;
use crate::jobs::locks::JobLock;
use crate::observe::metrics::Limit;
use crate::placement::NotAdmitted;
use bytes::Bytes;
use reveille_core::audit::of_step;
use reveille_core::id::{JobId, TenantId, Topic};
use reveille_core::job::{Job, State};
use reveille_core::life::{self, Due};
use reveille_core::policy::{Decision, Verdict};
use reveille_core::quota::{OverQuota, TenantQuota};
use reveille_core::request::{BadRequest, Request};
use reveille_core::time::Millis;
use reveille_store::{
    BlobKey, Commit, ExceededQuota, Opened, Preconditions, Quota, Receipt, Step, StoreError,
};
use std::sync::Arc;

/// How often an input may change under us while its job is judged.
const CHECKS_MAX: usize = 3;

/// A job somebody asks for.
pub struct Submission {
    pub request: Request,
    /// The input, if it comes along; otherwise the request's pointer says where it is.
    pub context: Option<Bytes>,
    pub submitter: Submitter,
}

/// Whether somebody waits for the answer. Whoever does is told to come back later, or that a topic does
/// not exist; on the bus there is nobody to tell, so the job is kept and waits for it to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitter {
    Listens,
    IsGone,
}

#[derive(Debug, Clone)]
pub enum Submitted {
    New(Arc<Job>),
    /// The same idempotency key (or job id) was used before.
    Existing(Arc<Job>),
    Throttled(Verdict),
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Bad(#[from] BadRequest),
    #[error("no pool takes topic {0}")]
    UnknownTopic(Topic),
    #[error("{0} jobs are live already; try again later")]
    TooMany(usize),
    #[error("tenant {tenant} has {live} jobs that have not ended, and may have {max}; try again later")]
    QueueFull { tenant: TenantId, live: usize, max: usize },
    #[error("tenant {0} waits for too many kinds of workers; try again later")]
    TooManyKinds(TenantId),
    #[error("the place it was to have is taken; try again")]
    QuotaExceeded,
    #[error("{0}; try again later")]
    OverQuota(#[from] OverQuota),
    #[error("this server is shutting down")]
    Draining,
    /// The message that asks for it was dealt with, and its job is gone.
    #[error("it was dealt with before")]
    Seen,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SubmitError {
    /// Whether the same job may be taken in later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Store(_)
            | Self::TooMany(_)
            | Self::QueueFull { .. }
            | Self::TooManyKinds(_)
            | Self::QuotaExceeded
            | Self::OverQuota(_) => true,
            Self::Bad(_) | Self::UnknownTopic(_) | Self::Draining | Self::Seen => false,
        }
    }
}

impl Jobs {
    /// The one way a job comes in, whichever surface it came through.
    pub async fn submit(&self, submission: Submission) -> Result<Submitted, SubmitError> {
        self.submit_to_answer(submission, None).await
    }

    /// The same for a message that may come again.
    pub(crate) async fn submit_to_answer(
        &self,
        submission: Submission,
        message: Option<Receipt>,
    ) -> Result<Submitted, SubmitError> {
        let Submission { mut request, context, submitter } = submission;
        if self.runtime.is_draining() {
            return Err(SubmitError::Draining);
        }
        if context.is_some() {
            request.context_ptr = self.context_of(&request.id).pointer();
        }
        request.submitter_name = request.submitted_by.as_ref().and_then(|key| self.keys.name_of(key));
        request.check()?;
        // A delegation goes to its workspace, whatever the files say of its topic.
        let is_routed = request.delegated.is_some() || self.runtime.rules().routing.has_topic(&request.topic);
        if submitter == Submitter::Listens && !is_routed {
            return Err(SubmitError::UnknownTopic(request.topic));
        }
        // A look saves the verdict. What counts is the look in `take_in`.
        if let Err(full) = self.check_quota(&request) {
            return self.existing(&request, None).await?.ok_or(full);
        }
        let now = self.runtime.now();
        let job = life::submit(request, now);
        self.observe.metrics().received(&job.request.topic);
        let jobs = self.clone();
        self.runtime
            .run_detached(Box::pin(async move { jobs.take_in(job, context, submitter, message).await }))
            .await
    }

    /// The job that was asked for before, by its id or by its key: whoever asks again is told of it, however
    /// full it has become since.
    async fn existing(
        &self,
        request: &Request,
        message: Option<&Receipt>,
    ) -> Result<Option<Submitted>, SubmitError> {
        let mut existing = match message {
            None => self.store.job(&request.id).await?,
            Some(message) => match self.store.open_new(&request.id, message).await? {
                Opened::Job { job, .. } => job,
                Opened::Seen | Opened::Busy => return Err(SubmitError::Seen),
            },
        };
        if let (None, Some(key)) = (&existing, &request.idempotency_key)
            && let Some(holder) = self.store.job_of_key(&request.tenant, key).await?
        {
            existing = self.store.job(&holder).await?;
        }
        existing.map(|existing| existing_job(existing, request)).transpose()
    }

    /// The input of a job that we were given together with it.
    pub(crate) fn context_of(&self, id: &JobId) -> BlobKey {
        self.store.colocated_key(BlobKey::context_of(id))
    }

    fn check_quota(&self, request: &Request) -> Result<(), SubmitError> {
        let live = self.placement.timers().len();
        if live >= self.runtime.settings().live_jobs_max {
            return Err(SubmitError::TooMany(live));
        }
        if self.placement.lock().is_full_for(request) {
            self.observe.metrics().limited(Limit::Queue);
            return Err(SubmitError::TooManyKinds(request.tenant.clone()));
        }
        self.check_queue(&request.tenant, self.placement.timers().live_of(&request.tenant))
    }

    /// Nothing is stored of a job whose sender is told to come back, except that this was decided.
    async fn turn_away(&self, judged: &Job, verdict: Verdict) -> Result<Submitted, SubmitError> {
        self.store.record(of_step(None, judged)).await?;
        Ok(Submitted::Throttled(verdict))
    }

    /// Checks a new job and takes its lock. Whoever is asked may be slow, and the id may be that of a job that
    /// is under way, so the lock comes last.
    async fn checked(
        &self,
        request: &Request,
        context: Option<&Bytes>,
    ) -> Result<(JobLock<'_>, PolicyBasis), SubmitError> {
        // A server that is told to stop finishes what it was asked.
        let _begun = self.locks.begin();
        for _ in 0..CHECKS_MAX {
            let basis = self.policy.check(request, context).await?;
            let lock = self.lock(&request.id).await;
            if self.policy.is_unchanged(request, &basis).await? {
                return Ok((lock, basis));
            }
        }
        Err(BadRequest::new("context_ptr", "what it points at keeps changing").into())
    }

    async fn take_in(
        &self,
        job: Job,
        context: Option<Bytes>,
        submitter: Submitter,
        message: Option<Receipt>,
    ) -> Result<Submitted, SubmitError> {
        // Another kernel is not asked twice about the same job.
        if self.policy.kernel_address().is_some()
            && let Some(existing) = self.existing(&job.request, message.as_ref()).await?
        {
            return Ok(existing);
        }
        // Until the job is acted on nobody else may handle it: a worker can be faster than this function.
        let (_lock, basis) = self.checked(&job.request, context.as_ref()).await?;
        let now = self.runtime.now();
        let job = self.judged(&job, &basis, now);
        if let Some(verdict) = throttled(&job).filter(|_| submitter == Submitter::Listens) {
            return match self.existing(&job.request, None).await? {
                Some(existing) => Ok(existing),
                None => self.turn_away(&job, verdict.clone()).await,
            };
        }
        let request = job.request.clone();
        let charged = context
            .as_ref()
            .map(|context| self.charge_blob(&request.tenant, context.len(), self.input_expires_at(now)));
        let stored = match charged.transpose() {
            Err(over) => Err(over.into()),
            Ok(charge) => {
                let stored = self.admit_and_store(job, context, submitter, message, now).await;
                // A store that failed may have stored it all the same.
                if let Some(charge) =
                    charge.filter(|_| !matches!(stored, Ok(Submitted::New(_)) | Err(SubmitError::Store(_))))
                {
                    self.refund_blob(&charge);
                }
                stored
            }
        };
        match stored {
            // Whoever asks again is told of the job, however full it has become since.
            Err(SubmitError::OverQuota(over)) => match self.existing(&request, None).await? {
                Some(existing) => Ok(existing),
                None => Err(self.observe.metrics().over_quota(over).into()),
            },
            stored => stored,
        }
    }

    fn input_expires_at(&self, now: Millis) -> Millis {
        now + self.runtime.settings().blob_ttl_ms
    }

    async fn admit_and_store(
        &self,
        job: Job,
        context: Option<Bytes>,
        submitter: Submitter,
        message: Option<Receipt>,
        now: Millis,
    ) -> Result<Submitted, SubmitError> {
        let job = self.admit(job, submitter, now)?;
        let waiting = self.cluster.others_may_act().then(|| (job.clone(), context.clone()));
        let stored = self.store_new(self.placed(job, now), context, message.clone(), now).await;
        match (stored, waiting) {
            // Another server has filled the place meanwhile: the job waits for the next.
            (Err(SubmitError::QuotaExceeded), Some((job, context))) => {
                self.store_new(job, context, message, now).await
            }
            // Another server has asked about as many as may be asked about.
            (Err(SubmitError::OverQuota(over)), Some((job, context))) if submitter == Submitter::IsGone => {
                self.store_new(self.unasked(&job, over, now), context, message, now).await
            }
            (stored, _) => stored,
        }
    }

    /// Counts a job among its tenant's. One that nobody can be asked about is not taken in, or ends at once.
    fn admit(&self, job: Job, submitter: Submitter, now: Millis) -> Result<Job, SubmitError> {
        let approvals_max = self.runtime.settings().limits.approvals_per_tenant;
        let (tenant, timers) = (&job.request.tenant, self.placement.timers());
        match timers.admit(&job, self.queue_max(tenant), approvals_max as usize) {
            Ok(()) => Ok(job),
            Err(NotAdmitted::Queue(live)) => self.check_queue(tenant, live).map(|()| job),
            Err(NotAdmitted::Approvals) => {
                let over = self.over_approvals();
                match submitter {
                    Submitter::Listens => Err(over.into()),
                    Submitter::IsGone => self.admit(self.unasked(&job, over, now), submitter, now),
                }
            }
        }
    }

    /// A job whose sender is gone, and about which nobody more can be asked.
    fn unasked(&self, job: &Job, over: OverQuota, now: Millis) -> Job {
        match life::deny_unasked(job, &self.observe.metrics().over_quota(over), now) {
            Ok(denied) => denied,
            Err(refusal) => unreachable!("a job that waits for a person can be denied: {refusal}"),
        }
    }

    /// What says that nobody more is asked.
    pub(super) fn over_approvals(&self) -> OverQuota {
        let max = self.runtime.settings().limits.approvals_per_tenant;
        OverQuota { quota: TenantQuota::Approvals, max: max.into() }
    }

    async fn store_new(
        &self,
        job: Job,
        context: Option<Bytes>,
        message: Option<Receipt>,
        now: Millis,
    ) -> Result<Submitted, SubmitError> {
        let id = job.id().clone();
        let quota = self.cluster.quota(&|| Quota {
            queue_max: Some(self.queue_max(&job.request.tenant) as u64),
            ..self.placed_quota(&job)
        });
        let mut step = Step::insert(job).on(Preconditions { quota, under: None, answers: message });
        if let Some(context) = context {
            step.blobs.push((self.context_of(&id), context, self.input_expires_at(now)));
        }
        let job = step.job.clone();
        let committed = self.commit(None, step).await;
        if !matches!(committed, Ok(Commit::Done)) {
            // The reservation was a new job's. If the id is that of an older one, that one has its own.
            if job.state() == State::Dispatched {
                self.placement.lock().end_pending(&id);
            }
            let (jobs, id) = (self.clone(), id.clone());
            self.runtime.spawn(async move { jobs.reload(&id).await });
        }
        match committed? {
            Commit::Done => Ok(Submitted::New(job)),
            Commit::Duplicate(other) => match self.store.job(&other).await? {
                Some(existing) => existing_job(existing, &job.request),
                None => Err(StoreError::Unavailable(format!("job {other} went away")).into()),
            },
            Commit::QuotaExceeded(ExceededQuota::Queue) => {
                self.observe.metrics().limited(Limit::Queue);
                let (tenant, max) = (job.request.tenant.clone(), self.queue_max(&job.request.tenant));
                Err(SubmitError::QueueFull { tenant, live: max, max })
            }
            Commit::QuotaExceeded(ExceededQuota::Approvals) => Err(self.over_approvals().into()),
            Commit::QuotaExceeded(_) => Err(SubmitError::QuotaExceeded),
            Commit::Seen => Err(SubmitError::Seen),
            Commit::Conflict | Commit::Fenced => {
                Err(StoreError::Unavailable("a new job met another revision of itself".to_owned()).into())
            }
        }
    }

    /// How many jobs of a tenant may be live.
    fn queue_max(&self, tenant: &TenantId) -> usize {
        let own = self.runtime.rules().policy.tenant_queue_max(tenant);
        own.map_or(self.runtime.settings().limits.queued_per_tenant, |max| max as usize)
    }

    fn check_queue(&self, tenant: &TenantId, live: usize) -> Result<(), SubmitError> {
        let max = self.queue_max(tenant);
        if live < max {
            return Ok(());
        }
        self.observe.metrics().limited(Limit::Queue);
        Err(SubmitError::QueueFull { tenant: tenant.clone(), live, max })
    }

    /// As policy says, unless its time was over before anybody could say anything.
    fn judged(&self, job: &Job, basis: &PolicyBasis, now: Millis) -> Job {
        if let Ok(Due::Change(expired)) = life::pass_time(job, &self.limits(job), None, now) {
            return *expired;
        }
        match self.policy.judge(job, basis, now) {
            Ok(judged) => judged,
            Err(refusal) => unreachable!("a new job can always be judged: {refusal}"),
        }
    }

    /// With its place, if it is allowed and a worker is free: the verdict and the place are one commit.
    fn placed(&self, judged: Job, now: Millis) -> Job {
        if judged.state() != State::Scheduled {
            return judged;
        }
        let offered = self.placement.lock().reserve_within(&judged.request, judged.jobs_max(), now);
        match offered {
            Ok(place) => life::assign(&judged, &place, now).unwrap_or(judged),
            Err(reason) => {
                self.observe.metrics().has_to_wait(reason);
                judged
            }
        }
    }
}

/// What throttles a new job.
fn throttled(job: &Job) -> Option<&Verdict> {
    let verdict = job.last_verdict().map(|recorded| &recorded.verdict);
    verdict.filter(|verdict| verdict.decision == Decision::Throttle)
}

/// An id is only the same job within the same tenant.
fn existing_job(existing: Arc<Job>, asked: &Request) -> Result<Submitted, SubmitError> {
    if existing.request.tenant != asked.tenant {
        return Err(BadRequest::new("job_id", "is taken").into());
    }
    Ok(Submitted::Existing(existing))
}
