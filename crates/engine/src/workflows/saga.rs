//! Sagas that a client drives itself: jobs of a workflow of its own, each with what undoes it.
//!
//! A job that ends and concerns its saga owes that until it is noted: what undoes it is put on the stack of its
//! workflow, or the stack is to be undone. Both are commits of the stack that know the job, so doing it twice
//! does no harm, and nobody needs a lock. From there the rollback is one like any other.

use super::Workflows;
use super::rollback::rollback_of_one;
use super::{Loaded, RunError, RunQuota, StartRunError};
use crate::observe::Trouble;
use reveille_core::digest::sha256_hex;
use reveille_core::flow::{
    ClientUndo, Compensation, Flow, RunEvent, RunRefusal, SagaFailure, Undoing, stack, stack_flow, stack_id,
};
use reveille_core::id::{JobId, RunId, Topic};
use reveille_core::job::{Ending, Job};
use reveille_core::life;
use reveille_core::reason::Reason;
use reveille_core::request::{Place, Request};
use reveille_store::StoreError;
use reveille_wire::convert;
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long to leave a stack alone whose last rollback is about to be made.
const MADE_PAUSE: Duration = Duration::from_millis(25);
/// The topic of a compensation that names none that can be read. Nobody takes it, so that asking for it again
/// does nothing.
const UNREADABLE: &str = "job.compensation.unreadable";

/// Compensations on their way to a stack. A failure waits for those that came before it, so that what was done
/// last is undone first.
#[derive(Default)]
pub(super) struct OnTheirWay(Mutex<FxHashMap<RunId, usize>>);

impl OnTheirWay {
    fn add(&self, stack: RunId) {
        *self.lock().entry(stack).or_default() += 1;
    }

    fn remove(&self, stack: &RunId) {
        let mut stacks = self.lock();
        if let Some(count) = stacks.get_mut(stack) {
            *count -= 1;
            if *count == 0 {
                stacks.remove(stack);
            }
        }
    }

    fn has(&self, stack: &RunId) -> bool {
        self.lock().contains_key(stack)
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<RunId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What every stack goes by.
pub(super) fn flow() -> Arc<Flow> {
    static FLOW: LazyLock<Arc<Flow>> = LazyLock::new(|| Arc::new(stack_flow()));
    FLOW.clone()
}

impl Workflows {
    /// A job that concerns its saga is to be noted there. Called as it is settled, so that whoever sees it
    /// ended comes later.
    pub(super) fn note_in_saga_later(&self, job: &Arc<Job>) {
        if !is_fatal(job) {
            self.runs.on_their_way.add(stack_of(job));
        }
        let (workflows, job) = (self.clone(), job.clone());
        self.runtime.spawn(async move {
            workflows.note_saga(&job).await;
            if !is_fatal(&job) {
                workflows.runs.on_their_way.remove(&stack_of(&job));
            }
        });
    }

    /// Notes the end of a job in its saga, and then that it is noted.
    pub(super) async fn note_saga(&self, job: &Job) {
        let words = "job not noted in its saga; retrying";
        self.observe.insist(Trouble::Store, words, job.id(), || self.try_note(job)).await;
        let words = "job noted in its saga, but not marked as noted; retrying";
        self.observe.insist(Trouble::Store, words, job.id(), || self.jobs.settle_saga(job.id())).await;
    }

    async fn try_note(&self, job: &Job) -> Result<(), StoreError> {
        match job.ending().filter(|ending| ending.is_fatal) {
            Some(ending) => self.fail_saga(job, ending).await,
            None => self.record_compensation(job).await,
        }
    }

    /// Puts what undoes a job on the stack of its workflow.
    async fn record_compensation(&self, job: &Job) -> Result<(), StoreError> {
        let request = match convert::compensation(&job.request) {
            Ok(request) => request,
            Err(problem) => {
                tracing::warn!(job = %job.id(), %problem, "compensation unreadable");
                let words = format!("what undoes job {} cannot be read: {problem}", job.id());
                if self.bury_compensation(job, None, Reason::SagaUnmarshalFailed, &words).await? {
                    self.observe.metrics().saga().unreadable();
                }
                return Ok(());
            }
        };
        let undo = ClientUndo { asked_at: job.created_at, request: request.clone() };
        let undo = Arc::new(Compensation::of_client(job.id(), undo));
        let refused = match self.drive_stack(job, &RunEvent::Record(undo.clone())).await {
            Ok(()) | Err(RunError::Refused(RunRefusal::Stale)) => return Ok(()),
            Err(RunError::Refused(RunRefusal::Failed)) => return self.undo_one(job, &undo).await,
            Err(RunError::Store(error)) if error.is_transient() => return Err(error),
            Err(refused) => refused,
        };
        tracing::warn!(job = %job.id(), %refused, "compensation not recorded");
        let words = format!("what undoes job {} cannot be kept: {refused}", job.id());
        self.bury_compensation(job, Some(request), Reason::SagaNotRecorded, &words).await.map(drop)
    }

    /// Has the stack undone. While one rollback is being made, the next failure waits.
    async fn fail_saga(&self, job: &Job, ending: &Ending) -> Result<(), StoreError> {
        let stack = stack_of(job);
        while !self.runtime.is_recovered() || self.runs.on_their_way.has(&stack) {
            tokio::time::sleep(MADE_PAUSE).await;
        }
        let failed = SagaFailure { job: job.id().clone(), at: job.since() };
        let event = RunEvent::Fail { failed, words: ending.words.clone() };
        loop {
            match self.drive_stack(job, &event).await {
                Err(RunError::Refused(RunRefusal::TooEarly)) => tokio::time::sleep(MADE_PAUSE).await,
                Err(RunError::Store(error)) if error.is_transient() => return Err(error),
                Err(RunError::Store(error)) => {
                    tracing::error!(job = %job.id(), %error, "saga rollback cannot start");
                    return Ok(());
                }
                Ok(()) | Err(_) => return Ok(()),
            }
        }
    }

    /// Changes the stack of a job's workflow, which begins with the first that concerns it.
    async fn drive_stack(&self, job: &Job, event: &RunEvent) -> Result<(), RunError> {
        let (id, Request { tenant, place, .. }) = (stack_of(job), &*job.request);
        loop {
            match self.drive_run(&id, event).await {
                Err(RunError::Unknown) => {}
                done => return done.map(drop),
            }
            let empty = stack(tenant, &place.workflow_id, self.runtime.now());
            if let Err(error) = self.begin_run(empty, flow(), RunQuota::Exempt).await {
                return Err(RunError::Store(of_start(error)));
            }
        }
    }

    /// The workflow had failed before this job of it was over: it is undone by itself.
    async fn undo_one(&self, job: &Job, undo: &Compensation) -> Result<(), StoreError> {
        let id = stack_of(job);
        let Some(Loaded { run, flow }) = self.load_run(&id).await? else { return Ok(()) };
        let list = Undoing::of(&flow, undo).into_iter().collect();
        let begun = self.begin_rollback(rollback_of_one(&id, job.id()), &run.head, list, false).await;
        self.observe.metrics().saga().recorded(usize::from(begun.is_ok()));
        begun.map_err(of_start)
    }

    /// Keeps a compensation where an operator looks: among the dead letters, under a name made of the job it
    /// undoes. Says whether it was not there before.
    pub(super) async fn bury_compensation(
        &self,
        of: &Job,
        request: Option<Request>,
        reason: Reason,
        words: &str,
    ) -> Result<bool, StoreError> {
        let id = JobId::known(format!("comp-{}", &sha256_hex(of.id().as_str().as_bytes())[..32]));
        let unreadable = || Request {
            topic: Topic::known(UNREADABLE),
            compensation: bytes::Bytes::new(),
            delegated: None,
            ..(*of.request).clone()
        };
        let mut request = request.unwrap_or_else(unreadable);
        let workflow = std::mem::take(&mut request.place.workflow_id);
        for (name, value) in [("saga_compensation", "true"), ("is_compensation", "true")] {
            request.labels.insert(name.to_owned(), value.to_owned());
        }
        request.labels.insert("saga_workflow_id".to_owned(), workflow);
        // Asked for again, it is a job by itself: how it ends is nothing to the saga.
        let place = Place { parent_job_id: of.id().to_string(), ..request.place };
        let request = Request { id: id.clone(), idempotency_key: None, place, ..request };
        self.jobs.insert_dead(life::stillborn(request, reason, words, self.runtime.now())).await
    }
}

fn stack_of(job: &Job) -> RunId {
    stack_id(&job.request.tenant, &job.request.place.workflow_id)
}

fn is_fatal(job: &Job) -> bool {
    job.ending().is_some_and(|ending| ending.is_fatal)
}

/// What can keep a stack or a rollback from beginning: nothing but the store.
fn of_start(error: StartRunError) -> StoreError {
    match error {
        StartRunError::Store(error) => error,
        other => StoreError::Unavailable(other.to_string()),
    }
}
