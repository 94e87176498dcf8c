//! Taking a job in: checked, judged, placed if a worker is free, and committed, all at once.

use crate::Engine;
use bytes::Bytes;
use reveille_core::audit::of_step;
use reveille_core::id::Topic;
use reveille_core::job::{Job, State};
use reveille_core::life;
use reveille_core::policy::{Decision, Judgement, Verdict};
use reveille_core::request::{BadRequest, Request};
use reveille_core::time::Millis;
use reveille_store::{BlobKey, Commit, Step, StoreError};
use std::sync::Arc;

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
    #[error("this server is shutting down")]
    Draining,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// The one way a job comes in, whichever surface it came through.
    pub async fn submit(&self, submission: Submission) -> Result<Submitted, SubmitError> {
        let Submission { request, context, submitter } = submission;
        if self.is_draining() {
            return Err(SubmitError::Draining);
        }
        request.check()?;
        // A delegation goes to its workspace, whatever the files say of its topic.
        let is_routed = request.delegated.is_some() || self.rules().routing.has_topic(&request.topic);
        if submitter == Submitter::Listens && !is_routed {
            return Err(SubmitError::UnknownTopic(request.topic));
        }
        let live = self.timers.len();
        if live >= self.settings.live_jobs_max || self.floor().is_full_for(&request) {
            return Err(SubmitError::TooMany(live));
        }
        let now = self.now();
        let job = life::submit(request, now);
        self.metrics.received(&job.request.topic);
        let input = self.input_of(&job.request, context.as_ref()).await?;
        let judgement = self.judgement(&job, &input, now);
        if judgement.verdict.decision == Decision::Throttle && submitter == Submitter::Listens {
            return self.turn_away(&job, judgement, now).await;
        }
        let engine = self.clone();
        self.in_full(async move { engine.take_in(job, judgement, context).await }).await
    }

    /// Nothing is stored of a job whose sender is told to come back, except that this was decided.
    async fn turn_away(
        &self,
        job: &Job,
        judgement: Judgement,
        now: Millis,
    ) -> Result<Submitted, SubmitError> {
        let verdict = judgement.verdict.clone();
        if let Ok(judged) = life::judge(job, judgement, now) {
            self.store.record(of_step(None, &judged)).await?;
        }
        Ok(Submitted::Throttled(verdict))
    }

    async fn take_in(
        &self,
        job: Job,
        judgement: Judgement,
        context: Option<Bytes>,
    ) -> Result<Submitted, SubmitError> {
        let (id, now) = (job.id().clone(), job.created_at);
        // From before the commit until the job is settled nobody else may handle it: a worker can be
        // faster than this function.
        let _turn = self.turn(&id).await;
        let job = self.judge_and_place(&job, judgement, now);
        let mut step = Step::insert(job);
        if let Some(context) = context {
            step.blobs.push((BlobKey::context_of(&id), context, now + self.settings.blob_ttl_ms));
        }
        let job = step.job.clone();
        let committed = self.store.commit(step).await;
        if !matches!(committed, Ok(Commit::Done)) {
            // The seat was a new job's. If the id is that of an older one, that one sits as it stands.
            let (engine, id) = (self.clone(), id.clone());
            self.spawn(async move { engine.reseat(&id).await });
        }
        match committed? {
            Commit::Done => {
                self.tell(&job).await;
                self.settle(&job);
                Ok(Submitted::New(job))
            }
            Commit::Duplicate(other) => match self.store.job(&other).await? {
                Some(existing) => existing_job(existing, &job),
                None => Err(StoreError::Unavailable(format!("job {other} went away")).into()),
            },
            Commit::Conflict => {
                Err(StoreError::Unavailable("a new job met another revision of itself".to_owned()).into())
            }
        }
    }

    /// Policy's word and, if it is allowed and a worker is free, its place, as one value to commit.
    fn judge_and_place(&self, job: &Job, judgement: Judgement, now: Millis) -> Job {
        let judged = match life::judge(job, judgement, now) {
            Ok(judged) => judged,
            Err(refusal) => unreachable!("a new job is always open to judgement: {refusal}"),
        };
        if judged.state() != State::Scheduled {
            return judged;
        }
        let offered = self.floor().offer(&judged.request, now);
        match offered {
            Ok(place) => life::assign(&judged, &place, now).unwrap_or(judged),
            Err(_) => judged,
        }
    }
}

/// An id is only the same job within the same tenant.
fn existing_job(existing: Arc<Job>, asked: &Job) -> Result<Submitted, SubmitError> {
    if existing.request.tenant != asked.request.tenant {
        return Err(BadRequest::new("job_id", "is taken").into());
    }
    Ok(Submitted::Existing(existing))
}
