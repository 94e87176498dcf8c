//! The one way a job changes: load, decide, commit, and then act on what was committed.

use crate::Engine;
use crate::events::What;
use crate::turns::Turn;
use reveille_core::id::JobId;
use reveille_core::job::{Event, Job, Phase, Refusal};
use reveille_core::life::{self, Destination, Limits};
use reveille_core::time::Millis;
use reveille_store::{Commit, Lock, Opened, Preconditions, Receipt, Step, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Another replica may get in between; this often in a row means that something else is wrong.
const CONFLICTS_MAX: usize = 50;
/// How long to leave a store alone that has just failed.
pub(crate) const STORE_PAUSE: Duration = Duration::from_secs(1);

/// How long to leave a job alone that another server is about to change.
const BUSY_PAUSE: Duration = Duration::from_millis(25);
/// How long a job stays away from a place that another server has filled.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// The moment of a live job that time alone does not change.
pub(crate) const NEVER: Millis = Millis(i64::MAX);

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

/// A job as it is, with its turn: nobody else of this process changes it meanwhile.
pub(crate) struct Taken<'a> {
    pub job: Arc<Job>,
    /// What the change depends on beside the job.
    pub preconditions: Preconditions,
    /// Another server may have changed it since it was remembered or read, and what is decided on it is no answer
    /// unless it is committed.
    is_loose: bool,
    turn: Turn<'a>,
}

impl<'a> Taken<'a> {
    /// A record that nobody of this process has changed since. If somebody else has, the commit says so.
    pub fn known(job: Arc<Job>, turn: Turn<'a>) -> Self {
        Self { job, preconditions: Preconditions::default(), is_loose: false, turn }
    }
}

impl Engine {
    /// Changes a job as `decide` says. It may be asked more than once, each time about the job as it is.
    pub(crate) async fn drive(
        &self,
        id: &JobId,
        decide: impl Fn(&Job, Millis) -> Result<Job, Refusal> + Send + Sync,
    ) -> Result<Arc<Job>, DriveError> {
        let taken = self.take(id).await?;
        self.drive_taken(taken, decide).await
    }

    /// A job with its turn, for whoever has to look at more than the job before deciding.
    pub(crate) async fn take(&self, id: &JobId) -> Result<Taken<'_>, DriveError> {
        let turn = self.turn(id).await;
        let job = self.store.job(id).await?.ok_or(DriveError::Unknown)?;
        Ok(Taken { job, preconditions: Preconditions::default(), is_loose: false, turn })
    }

    /// The same, to act on a message that may come again. Where servers share the store, it is tried without a lock
    /// first, on what is remembered of the job or on a plain read: the commit compares its revision and looks for the
    /// message. Only then is it opened.
    pub(crate) async fn take_to_answer(
        &self,
        id: &JobId,
        message: Option<&Receipt>,
        is_first_try: bool,
    ) -> Result<Taken<'_>, DriveError> {
        let Some(message) = message else { return self.take(id).await };
        let answers = Some(message.clone());
        let turn = self.turn(id).await;
        if is_first_try && self.is_one_of_many() {
            let job = match self.known.get(id) {
                Some(job) => Some(job),
                None => self.store.job(id).await?,
            };
            if let Some(job) = job {
                let preconditions = Preconditions { answers, ..Preconditions::default() };
                return Ok(Taken { job, preconditions, is_loose: true, turn });
            }
        }
        match self.store.open(id, message).await? {
            Opened::Seen => Err(DriveError::Seen),
            Opened::Busy => Err(DriveError::Busy),
            Opened::Job { job, lock } => {
                let preconditions = Preconditions { under: lock, answers, ..Preconditions::default() };
                let job = job.ok_or(DriveError::Unknown)?;
                Ok(Taken { job, preconditions, is_loose: false, turn })
            }
        }
    }

    pub(crate) async fn drive_taken(
        &self,
        taken: Taken<'_>,
        decide: impl Fn(&Job, Millis) -> Result<Job, Refusal> + Send + Sync,
    ) -> Result<Arc<Job>, DriveError> {
        let Taken { job: mut before, mut preconditions, is_loose, turn: _turn } = taken;
        for _ in 0..CONFLICTS_MAX {
            let after = match decide(&before, self.now()) {
                Ok(after) => after,
                Err(_) if is_loose => return Err(self.forget(&before)),
                Err(refusal) => {
                    self.let_go(preconditions.under).await;
                    return Err(refusal.into());
                }
            };
            let mut step = Step::change(&before, after).on(preconditions.clone());
            step.preconditions.quota = self.room_for_placed(&step.job);
            let job = step.job.clone();
            match self.commit_or_make_up(Some(&before), step).await? {
                Commit::Done => {
                    self.tell(Some(&before), &job).await;
                    self.tell_story(Some(&before), &job);
                    self.settle(&job);
                    return Ok(job);
                }
                Commit::QuotaExceeded(_) => return Err(DriveError::QuotaExceeded),
                Commit::Seen => {
                    self.let_go(preconditions.under).await;
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

    /// What was known of a job does not do: it is to be opened.
    fn forget(&self, job: &Job) -> DriveError {
        self.known.forget(job.id());
        DriveError::Busy
    }

    /// A store that fails may have committed all the same. Then what follows from it is made up for.
    pub(crate) async fn commit_or_make_up(
        &self,
        before: Option<&Arc<Job>>,
        step: Step,
    ) -> Result<Commit, StoreError> {
        let job = step.job.clone();
        let step = if self.is_one_of_many() { step.telling(Self::news_of(&job)) } else { step };
        let committed = self.store.commit(step).await;
        if committed.as_ref().is_err_and(StoreError::is_transient) {
            self.doubts.raise(job.id(), job.revision);
            self.spawn(self.clone().make_up_for(before.cloned(), job));
        }
        committed
    }

    async fn make_up_for(self, before: Option<Arc<Job>>, job: Arc<Job>) {
        loop {
            let turn = self.turn(job.id()).await;
            match self.store.job(job.id()).await {
                Ok(Some(stored)) if stored == job => {
                    // Unless somebody else did the same in the same millisecond, and was answered.
                    if !self.doubts.settle(job.id(), job.revision) {
                        return;
                    }
                    self.tell(before.as_deref(), &job).await;
                    self.tell_story(before.as_deref(), &job);
                    return self.settle(&job);
                }
                Err(error) if error.is_transient() => {}
                // It did not count, or somebody has gone on from there.
                _ => return self.doubts.drop_one(job.id(), job.revision),
            }
            drop(turn);
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    /// Gives back the lock of a job that stays as it is. If that fails, the lock lapses by itself.
    pub(crate) async fn let_go(&self, lock: Option<Lock>) {
        if let Some(lock) = lock
            && let Err(error) = self.store.unlock(&lock).await
        {
            tracing::debug!(lock = %lock.name, %error, "a lock is left to lapse");
        }
    }

    /// Like [`Engine::drive`], for what has nobody to tell: a store that fails is tried again until it
    /// works. The caller waits meanwhile, which is what holds the senders back.
    pub(crate) async fn drive_on(
        &self,
        id: &JobId,
        decide: impl Fn(&Job, Millis) -> Result<Job, Refusal> + Send + Sync,
    ) -> Result<Arc<Job>, DriveError> {
        self.keep_driving(id, || self.drive(id, &decide)).await
    }

    /// Does it again for as long as the store fails in a way that may pass, or another server is at it.
    pub(crate) async fn keep_driving<F>(
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
                    self.trouble.store.tell(self.now(), "the store failed; trying again", id, &error);
                    tokio::time::sleep(STORE_PAUSE).await;
                }
                Err(DriveError::Busy) => tokio::time::sleep(BUSY_PAUSE).await,
                done => return done,
            }
        }
    }

    /// Says what was committed, to those who count and those who watch. Called with the job's turn held.
    pub(crate) async fn tell(&self, before: Option<&Job>, job: &Job) {
        self.doubts.settle(job.id(), job.revision);
        self.metrics.observe(before.map(Job::state), job);
        // Where servers share the store, the step itself has told.
        if !self.is_one_of_many() {
            self.events.tell(job.updated_at, &job.request.tenant, What::of_job(job));
        }
        self.tell_others(job);
        self.tell_delegation(job).await;
    }

    /// Acts on a committed job: timers, placement, packets, whoever waits. Called with the job's turn
    /// held; everything here is derived from the job, so calling it again does no harm.
    pub(crate) fn settle(&self, job: &Arc<Job>) {
        if self.is_one_of_many() {
            self.known.note(job);
        }
        self.seat(job);
        self.note_sent(job);
        match &job.phase {
            Phase::Dispatched(_) if job.request.delegated.is_some() => {
                self.spawn(self.clone().deliver(job.clone()));
            }
            Phase::Dispatched(_) => self.spawn(self.clone().send(job.clone())),
            Phase::Ended(_) => {
                self.waiters.wake(job.id());
                self.tell_run(job);
                if job.owed.has_notices() {
                    self.spawn(self.clone().send_notices(job.clone()));
                }
                if job.owed.output_scan {
                    self.spawn(self.clone().second_look(job.clone()));
                }
                if job.owed.saga {
                    self.tell_saga(job);
                }
            }
            _ => {}
        }
    }

    /// Gives waiting jobs to the workers placement has found for them.
    pub(crate) fn assign_all(&self, matches: Vec<(JobId, Destination)>) {
        for (id, to) in matches {
            self.spawn(self.clone().assign(id, to));
        }
    }

    async fn assign(self, id: JobId, to: Destination) {
        let done = self.drive_on(&id, |job, now| life::assign(job, &to, now)).await;
        if let Err(error) = done {
            // It was cancelled, or ended otherwise, while it was on its way: the seat is given back.
            tracing::debug!(job = %id, %error, "not assigned");
            self.placement().end_pending(&id);
            if matches!(error, DriveError::QuotaExceeded) {
                // Whoever has filled the place says so at any moment; until then nothing else would be found.
                self.placement().leave(&id);
                tokio::time::sleep(FULL_PAUSE).await;
            }
            self.reseat(&id).await;
        }
    }

    /// Seats a job in placement as the store has it, and looks at it again when it says.
    pub(crate) async fn reseat(&self, id: &JobId) {
        let (_turn, job) = loop {
            let turn = self.turn(id).await;
            match self.store.job(id).await {
                Ok(job) => break (turn, job),
                Err(error) if !error.is_transient() => break (turn, None),
                Err(error) => {
                    self.trouble.store.tell(self.now(), "the store failed; trying again", id, &error);
                }
            }
            drop(turn);
            tokio::time::sleep(STORE_PAUSE).await;
        };
        if let Some(job) = job.as_ref().filter(|_| self.timers.is_anothers(id)) {
            self.seat_anothers(job);
        } else if let Some(job) = &job {
            self.seat(job);
        } else {
            self.timers.clear(id);
            self.placement().leave(id);
        }
    }

    /// Its timer and its place in placement. What that frees or fills may let other jobs go.
    pub(crate) fn seat(&self, job: &Job) {
        if self.is_behind(job) {
            return;
        }
        let now = self.now();
        let due = life::due(job, &self.limits(job), now).unwrap_or(NEVER);
        if job.state().is_terminal() {
            self.timers.clear(job.id());
        } else {
            self.timers.set(job, self.look_by(due, now));
        }
        let matches = {
            let mut placement = self.placement();
            placement.settle(job, now);
            placement.matches(now)
        };
        self.assign_all(matches);
    }

    /// How long a job may stay where it is, and how often it may be tried.
    pub(crate) fn limits(&self, job: &Job) -> Limits {
        Limits { approval_ms: self.settings.approval_ms, ..self.rules().limits(job) }
    }

    // What people decide; `approvals.rs` has the rest.

    pub async fn cancel(&self, id: &JobId, by: &str, reason: &str) -> Result<Arc<Job>, DriveError> {
        let (by, reason) = (by.to_owned(), reason.to_owned());
        self.decided(id, move |job, now| life::cancel(job, &by, &reason, now)).await
    }

    /// Like [`Engine::drive`], for callers that may go away before the answer.
    pub(crate) async fn decided(
        &self,
        id: &JobId,
        decide: impl Fn(&Job, Millis) -> Result<Job, Refusal> + Send + Sync + 'static,
    ) -> Result<Arc<Job>, DriveError> {
        let (engine, id) = (self.clone(), id.clone());
        self.run_detached(async move { engine.drive(&id, decide).await }).await
    }

    /// Whether the refusal only says that the job has ended.
    pub fn has_ended(error: &DriveError) -> bool {
        matches!(error, DriveError::Refused(Refusal::NotNow { state, event: Event::Cancel }) if state.is_terminal())
    }
}
