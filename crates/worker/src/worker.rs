//! The worker: how it is described, how it runs, how it ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reveille_core::id::{Topic, WorkerId};
use reveille_wire::key::{signing_key, verifying_key};
use reveille_wire::subject;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::beats::WorkerBeats;
use crate::blobs::BlobClient;
use crate::cancel;
use crate::connect::Connect;
use crate::error::Error;
use crate::failure::Failure;
use crate::handler::{self, Handler};
use crate::intake::JobIntake;
use crate::job::Job;
use crate::ledger::AssignmentLedger;
use crate::publisher::Publisher;
use crate::results::Results;
use crate::signatures::Signatures;
use crate::worker_context::{QUEUED_JOBS_MAX, ShutdownPhase, WorkerContext};

/// How long running jobs may take after the worker was told to stop; then they are given back.
const FINISH_MAX: Duration = Duration::from_secs(30);
/// How long the last results are waited for.
const SETTLE_MAX: Duration = Duration::from_secs(10);
/// The most handlers that may run at once.
const CAPACITY_MAX: usize = 100_000;

/// A worker that takes jobs of its topics and runs their handlers.
pub struct Worker {
    profile: WorkerProfile,
    handlers: BTreeMap<String, Handler>,
    signatures: Signatures,
}

/// What a worker says about itself.
pub struct WorkerProfile {
    pub id: String,
    pub pool: String,
    pub capacity: usize,
    pub labels: BTreeMap<String, String>,
    pub capabilities: Vec<String>,
    pub region: String,
    pub kind: String,
    pub agent_name: String,
    /// Whether beats tell the machine's CPU and memory load.
    pub tells_load: bool,
}

impl Worker {
    /// A worker with a name of its own: two workers of one name would both get its jobs. It runs one
    /// job at a time unless told otherwise.
    pub fn new(id: impl Into<String>) -> Self {
        let profile = WorkerProfile {
            id: id.into(),
            pool: String::new(),
            capacity: 1,
            labels: BTreeMap::new(),
            capabilities: Vec::new(),
            region: String::new(),
            kind: String::new(),
            agent_name: String::new(),
            tells_load: true,
        };
        Self { profile, handlers: BTreeMap::new(), signatures: Signatures::default() }
    }

    /// The group of workers that this one belongs to.
    pub fn pool(mut self, pool: impl Into<String>) -> Self {
        self.profile.pool = pool.into();
        self
    }

    /// How many jobs run at once, from 1 to 100,000.
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.profile.capacity = capacity.clamp(1, CAPACITY_MAX);
        self
    }

    /// A label that jobs may ask for.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.profile.labels.insert(key.into(), value.into());
        self
    }

    /// Something that this worker can and others may not.
    pub fn capability(mut self, capability: impl Into<String>) -> Self {
        self.profile.capabilities.push(capability.into());
        self
    }

    /// Where the worker runs.
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.profile.region = region.into();
        self
    }

    /// What kind of machine or process it is; the heartbeat's `type`.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.profile.kind = kind.into();
        self
    }

    /// A name for people.
    pub fn agent_name(mut self, name: impl Into<String>) -> Self {
        self.profile.agent_name = name.into();
        self
    }

    /// Leaves the machine's CPU and memory load out of the beats. A scheduler gives nothing to a worker
    /// whose machine is busy; on a machine that is meant to be busy, such as one that is also the
    /// server's, that is not wanted.
    pub fn keep_load_private(mut self) -> Self {
        self.profile.tells_load = false;
        self
    }

    /// Signs everything that it sends with this key, P-256 as PEM, such as `reveille worker-key pair` makes.
    pub fn private_key(mut self, pem: &str) -> Result<Self, Error> {
        self.signatures.own = Some(signing_key(pem)?);
        Ok(self)
    }

    /// Believes only what is signed with the other half of this key, as `reveille worker-key server` prints it.
    pub fn scheduler_key(mut self, pem: &str) -> Result<Self, Error> {
        self.signatures.scheduler = Some(verifying_key(pem)?);
        Ok(self)
    }

    /// Calls `handler` for jobs of `topic`. What it returns is stored as JSON, at most 2 MiB.
    ///
    /// When the job is cancelled, or its deadline passes, the handler's future is dropped at its next
    /// `.await`; what it spawned elsewhere can watch [`Job::cancelled`].
    pub fn handle<F, Run, Output>(mut self, topic: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Job) -> Run + Send + Sync + 'static,
        Run: Future<Output = Result<Output, Failure>> + Send + 'static,
        Output: Serialize,
    {
        self.handlers.insert(topic.into(), handler::erased(handler));
        self
    }

    /// Works until `shutdown` resolves; then finishes the jobs that are here, for up to 30 seconds,
    /// gives back those that take longer, and sees their results off.
    ///
    /// Servers that are away are waited for, at the start as well as later.
    pub async fn run(self, connect: Connect, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        self.check()?;
        let Self { profile, handlers, signatures } = self;
        let id = WorkerId::known(profile.id.as_str());
        let blobs = BlobClient::open(&connect.redis_url)?;
        let (nats, mut link) = connect.nats(id.as_str()).await?;
        let mut shutdown = std::pin::pin!(shutdown);
        tokio::select! {
            _ = link.wait_for(|is_connected| *is_connected) => {}
            () = &mut shutdown => return Ok(()),
        }

        let phase = ShutdownPhase::new();
        // Ends every task also when this future is dropped half-way.
        let _over = phase.over.clone().drop_guard();
        let capacity = profile.capacity;
        let worker_context = Arc::new(WorkerContext {
            handlers,
            publisher: Arc::new(Publisher::new(nats.clone(), link.clone(), id.clone(), signatures)),
            blobs,
            ledger: AssignmentLedger::default(),
            results: Results::start(nats.clone(), link.clone()).await?,
            slots: Semaphore::new(capacity),
            places: Arc::new(Semaphore::new(capacity + QUEUED_JOBS_MAX)),
            jobs: TaskTracker::new(),
            phase,
        });
        let cancellations = nats.subscribe(subject::JOB_CANCEL).await?;
        tokio::spawn(cancel::listen(Arc::clone(&worker_context), cancellations));
        let intake = tokio::spawn(JobIntake::open(Arc::clone(&worker_context), &nats).await?.run());
        // Only now: whoever hears the first beat may send a job at once.
        tokio::spawn(WorkerBeats { worker_context: Arc::clone(&worker_context), profile, link }.run());
        tracing::info!(worker_id = %id, capacity, "worker is up");

        shutdown.await;
        tracing::info!(worker_id = %id, active_jobs = worker_context.ledger.active(), "worker is stopping");
        worker_context.phase.closing.cancel();
        if let Err(error) = intake.await {
            tracing::error!(%error, "the intake task failed");
        }
        finish_jobs(&worker_context).await;
        settle_results(&worker_context).await;
        if !matches!(timeout(SETTLE_MAX, nats.flush()).await, Ok(Ok(()))) {
            tracing::warn!("NATS is unreachable; the last messages may not have been sent");
        }
        tracing::info!(worker_id = %id, "worker has stopped");
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        WorkerId::parse(&self.profile.id)?;
        check_subject("worker_id", &self.profile.id)?;
        if self.handlers.is_empty() {
            return Err(Error::NoHandler);
        }
        for topic in self.handlers.keys() {
            Topic::parse(topic)?;
            check_subject("topic", topic)?;
        }
        Ok(())
    }
}

async fn finish_jobs(worker_context: &WorkerContext) {
    worker_context.jobs.close();
    if timeout(FINISH_MAX, worker_context.jobs.wait()).await.is_err() {
        tracing::warn!(active_jobs = worker_context.ledger.active(), "jobs take too long and are given back");
        worker_context.phase.abandoning.cancel();
        if timeout(SETTLE_MAX, worker_context.jobs.wait()).await.is_err() {
            tracing::error!(
                active_jobs = worker_context.ledger.active(),
                "jobs do not end after they were given back"
            );
        }
    }
}

async fn settle_results(worker_context: &WorkerContext) {
    if timeout(SETTLE_MAX, worker_context.results.settled()).await.is_err() {
        tracing::warn!(results = worker_context.results.waiting(), "results were not acknowledged");
    }
}

/// Names become parts of subjects, which know no escaping.
fn check_subject(what: &'static str, name: &str) -> Result<(), Error> {
    if name.split('.').any(|part| part.is_empty() || part.contains(['*', '>'])) {
        return Err(Error::Subject { what, name: name.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(worker: &Worker) -> String {
        worker.check().err().map_or_else(String::new, |error| error.to_string())
    }

    fn worker(id: &str, topic: &str) -> Worker {
        Worker::new(id).handle(topic, |job: Job| async move { job.input::<String>() })
    }

    #[test]
    fn names_that_cannot_be_subjects_are_refused() {
        assert_eq!(problem(&worker("rack.7", "job.echo")), "");
        assert_eq!(problem(&worker("", "job.echo")), "worker_id is empty");
        let wrong = "must not have a wildcard or an empty part";
        assert_eq!(problem(&worker("w*", "job.echo")), format!("worker_id \"w*\" {wrong}"));
        assert_eq!(problem(&worker("w", "job..echo")), format!("topic \"job..echo\" {wrong}"));
        assert_eq!(problem(&worker("w", "job.>")), format!("topic \"job.>\" {wrong}"));
    }

    #[test]
    fn a_worker_without_a_handler_is_none() {
        assert_eq!(problem(&Worker::new("w")), "a worker needs at least one handler");
    }
}
