//! Delegations: one workspace gives work to another. Each is a job, with a job's life, policy and limits;
//! only the way to the worker differs, which is A2A over HTTP.
//!
//! The job is the truth. What Molecule's clients follow (`pending`, `dispatched`, `received`, …) is derived from it,
//! and the row in the roster says how far that has got (`status.rs`).

mod delivery;
mod in_flight;
mod local_status;
mod shared_status;
mod status;

pub use shared_status::LOCK as DELEGATION_LOCK;

use crate::base::Base;
use crate::fleet::workspaces::{WorkspaceError, WorkspaceHook, Workspaces};
use crate::jobs::{DelegationHook, Jobs, Submission, SubmitError, Submitted, Submitter};
use crate::locks::SharedLocks;
use crate::observe::Observe;
use crate::placement::PlacementTable;
use crate::roster::RosterWriter;
use crate::runtime::Runtime;
use bytes::Bytes;
use in_flight::InFlight;
use local_status::LocalStatuses;
use reveille_a2a::A2aClient;
use reveille_core::id::{JobId, KeyId, Topic, WorkspaceId};
use reveille_core::job::{Job, State};
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_core::presence::workspace::Workspace;
use reveille_core::request::{Delegated, Request};
use reveille_core::trace::TraceContext;
use reveille_roster::{Roster, RosterError};
use reveille_store::Store;
use serde_json::json;
use shared_status::SharedStatuses;
use status::{StatusLog, StatusWriter};
use std::ops::Deref;
use std::sync::Arc;

/// What policy sees as the topic of every delegation.
pub const TOPIC: &str = "job.delegate";
pub const TASK_LEN_MAX: usize = 256 * 1024;
pub const PREVIEW_LEN_MAX: usize = 300;
/// Delegations listed at once.
pub const LIST_LEN_MAX: usize = 50;
const SUMMARY_LEN_MAX: usize = 200;
/// The label that says what a delegation is about.
const SUMMARY: &str = "molecule.summary";

#[derive(Debug, Clone, thiserror::Error)]
pub enum DelegateError {
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error("self-delegation not permitted")]
    Oneself,
    #[error("task: {0}")]
    BadTask(String),
    #[error("policy throttles delegations; try again later")]
    Throttled,
    #[error("delegation not found")]
    NotFound,
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Roster(#[from] RosterError),
}

/// A delegation that was taken in.
pub struct TakenDelegation {
    pub job: Arc<Job>,
    pub target: WorkspaceId,
    /// The same idempotency key was used before.
    pub is_repeat: bool,
}

/// A handle; clones are the same room.
#[derive(Clone)]
pub struct Delegations(Arc<Inner>);

pub struct Inner {
    runtime: Runtime,
    observe: Observe,
    placement: PlacementTable,
    jobs: Jobs,
    workspaces: Workspaces,
    store: Arc<dyn Store>,
    a2a: Arc<dyn A2aClient>,
    writer: StatusWriter,
    statuses: Arc<dyn StatusLog>,
    in_flight: InFlight,
}

/// What delegations are made of.
pub struct DelegationParts {
    pub base: Base,
    pub jobs: Jobs,
    pub workspaces: Workspaces,
    pub store: Arc<dyn Store>,
    pub a2a: Arc<dyn A2aClient>,
    pub roster: Arc<dyn Roster>,
    pub writer: RosterWriter,
}

impl Deref for Delegations {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Delegations {
    pub fn new(parts: DelegationParts) -> Self {
        let DelegationParts { base, jobs, workspaces, store, a2a, roster, writer } = parts;
        let Base { runtime, observe, placement, .. } = base;
        let writer = StatusWriter {
            runtime: runtime.clone(),
            jobs: jobs.clone(),
            workspaces: workspaces.clone(),
            roster,
            writer,
        };
        let statuses: Arc<dyn StatusLog> = if store.is_shared() {
            let locks = SharedLocks::new(&store);
            Arc::new(SharedStatuses { writer: writer.clone(), observe: observe.clone(), locks })
        } else {
            Arc::new(LocalStatuses::new(writer.clone()))
        };
        let in_flight = InFlight::default();
        Self(Arc::new(Inner {
            runtime,
            observe,
            placement,
            jobs,
            workspaces,
            store,
            a2a,
            writer,
            statuses,
            in_flight,
        }))
    }

    /// Reads how far the statuses of unfinished delegations had got before our restart.
    pub(crate) async fn load(&self) -> Result<(), RosterError> {
        self.statuses.load().await
    }

    /// Records what a crash left unrecorded.
    pub(crate) async fn recover(self) {
        self.statuses.finish().await;
    }

    /// One workspace gives another a task. `by` is the key that speaks for the giver; nothing if it spoke for itself,
    /// with its token.
    pub async fn delegate(
        &self,
        source: &Workspace,
        by: Option<&KeyId>,
        target: &WorkspaceId,
        task: &str,
        idempotency_key: Option<&str>,
        trace: Option<TraceContext>,
    ) -> Result<TakenDelegation, DelegateError> {
        if source.is_removed() {
            return Err(WorkspaceError::Removed.into());
        }
        if task.is_empty() || task.len() > TASK_LEN_MAX {
            return Err(DelegateError::BadTask(format!("must have 1 to {TASK_LEN_MAX} bytes")));
        }
        let asked = self.workspaces.workspace(&source.tenant, target).ok_or(WorkspaceError::NotFound)?;
        // Whoever has an old id is served by the workspace that took its place.
        let found = if asked.is_removed() {
            self.workspaces.successor(&asked).ok_or(WorkspaceError::Removed)?
        } else {
            asked
        };
        if found.id == source.id {
            return Err(DelegateError::Oneself);
        }
        if !self.workspaces.may_talk(source, &found) {
            return Err(WorkspaceError::NotKin.into());
        }
        let id = self.runtime.new_job_id();
        let mut request = Request::plain(id.as_str(), TOPIC);
        request.topic = Topic::known(TOPIC);
        request.tenant = source.tenant.clone();
        request.actor.principal_id = source.id.to_string();
        "service".clone_into(&mut request.actor.actor_type);
        request.labels.insert("molecule.source".to_owned(), source.id.to_string());
        request.labels.insert("molecule.target".to_owned(), found.id.to_string());
        request.labels.insert(SUMMARY.to_owned(), shortened(task, SUMMARY_LEN_MAX));
        request.idempotency_key = idempotency_key.map(|key| format!("delegate:{}:{key}", source.id));
        // Whoever approves it must be someone other than who asked, in whosever name.
        request.submitted_by = Some(by.cloned().unwrap_or_else(|| KeyId::known(source.id.as_str())));
        request.follow(trace);
        request.delegated = Some(Delegated { from: source.id.clone(), to: found.id.clone() });
        let context = Bytes::from(json!({ "task": task }).to_string());
        let submission = Submission { request, context: Some(context), submitter: Submitter::Listens };
        let (job, is_repeat) = match self.jobs.submit(submission).await? {
            Submitted::New(job) => (job, false),
            Submitted::Existing(job) => (job, true),
            Submitted::Throttled(_) => return Err(DelegateError::Throttled),
        };
        // Several servers record in the background; the row is there before the answer all the same.
        if is_repeat || !self.statuses.has_row_at_once() {
            self.make_up_row(job.id()).await?;
        }
        // What was written about it is durable once this is.
        self.writer.writer.flush().await?;
        let target = job.request.delegated.as_ref().map_or(found.id.clone(), |hop| hop.to.clone());
        Ok(TakenDelegation { job, target, is_repeat })
    }

    /// A crash may have come between the job and its row, and whoever asks again may be faster than the
    /// recovery.
    async fn make_up_row(&self, id: &JobId) -> Result<(), DelegateError> {
        let _lock = self.jobs.lock(id).await;
        // What was recorded of it is on the disk after this, and nothing more is recorded while we hold its lock.
        self.writer.writer.flush().await?;
        if let Some(job) = self.jobs.job(id).await.map_err(SubmitError::from)? {
            self.statuses.catch_up(&job).await?;
        }
        Ok(())
    }

    /// What a workspace has delegated, newest first.
    pub async fn delegations_of(&self, source: &WorkspaceId) -> Result<Vec<Delegation>, RosterError> {
        self.writer.roster.delegations_of(source, LIST_LEN_MAX).await
    }

    /// An agent ran a delegation by itself and tells us of it.
    pub async fn record_delegation(
        &self,
        source: &Workspace,
        target: &WorkspaceId,
        id: &JobId,
        task: &str,
    ) -> Result<(), DelegateError> {
        self.workspaces.workspace(&source.tenant, target).ok_or(WorkspaceError::NotFound)?;
        let _lock = self.jobs.lock(id).await;
        if let Some(known) = self.writer.roster.delegation(id).await? {
            let same = known.source == source.id && known.target == *target;
            return if same {
                Ok(())
            } else {
                Err(DelegateError::Refused("delegation_id is taken".to_owned()))
            };
        }
        let now = self.runtime.now();
        let row = Delegation {
            id: id.clone(),
            tenant: source.tenant.clone(),
            source: source.id.clone(),
            target: target.clone(),
            summary: shortened(task, SUMMARY_LEN_MAX),
            status: DelegationStatus::Dispatched,
            error: None,
            response_preview: None,
            is_job: false,
            created_at: now,
            updated_at: now,
        };
        self.writer.keep(row, &[DelegationStatus::Dispatched]).await?;
        Ok(())
    }

    /// An agent says how a delegation ended: one that it ran by itself, or one of our jobs that it took.
    pub async fn report_delegation(
        &self,
        speaker: &Workspace,
        id: &JobId,
        outcome: Result<String, String>,
    ) -> Result<(), DelegateError> {
        let row = self.writer.roster.delegation(id).await?.ok_or(DelegateError::NotFound)?;
        if row.tenant != speaker.tenant || (row.source != speaker.id && row.target != speaker.id) {
            return Err(DelegateError::NotFound);
        }
        if row.is_job {
            if row.target != speaker.id {
                return Err(DelegateError::Refused("only its target may end this delegation".to_owned()));
            }
            return self.delegation_said(&row, outcome).await;
        }
        // One end only: whoever comes second finds the first.
        let _lock = self.jobs.lock(id).await;
        let row = self.writer.roster.delegation(id).await?.ok_or(DelegateError::NotFound)?;
        if row.status.is_final() {
            return Ok(());
        }
        let status = if outcome.is_ok() { DelegationStatus::Completed } else { DelegationStatus::Failed };
        let mut ended = Delegation { status: row.status, updated_at: self.runtime.now(), ..row };
        match outcome {
            Ok(text) => ended.response_preview = Some(shortened(&text, PREVIEW_LEN_MAX)),
            Err(words) => ended.error = Some(shortened(&words, PREVIEW_LEN_MAX)),
        }
        let path = ended.status.announcements(status);
        self.writer.keep(ended, &path).await?;
        Ok(())
    }

    /// What was given to a workspace that is retired ends here: it can go nowhere else.
    async fn end_delegations_to(self, target: WorkspaceId) {
        let given = self.statuses.open_to(&target).await;
        for id in given {
            let ended = self.jobs.cancel(&id, "platform", "the workspace was removed").await;
            if let Err(error) = ended {
                tracing::debug!(job = %id, %error, "delegation not ended");
            }
        }
    }
}

#[async_trait::async_trait]
impl DelegationHook for Delegations {
    async fn job_committed(&self, job: &Job) {
        self.statuses.record(job, DelegationStatus::of(job)).await;
    }

    fn deliver(&self, job: &Arc<Job>) {
        self.runtime.spawn(self.clone().send(job.clone()));
    }

    fn resume(&self, job: &Arc<Job>) {
        if job.state() == State::Running {
            self.deliver(job);
        }
    }

    fn is_in_flight(&self, job: &JobId) -> bool {
        self.in_flight.has(job)
    }

    fn server_lost(&self) {
        self.runtime.spawn(self.clone().recover());
    }
}

impl WorkspaceHook for Delegations {
    fn returned(&self, workspace: &WorkspaceId) {
        self.runtime.spawn(self.clone().send_again(workspace.clone()));
    }

    fn restarted(&self, workspace: &WorkspaceId) {
        self.in_flight.recall(workspace);
    }

    fn retired(&self, workspace: &WorkspaceId) {
        self.runtime.spawn(self.clone().end_delegations_to(workspace.clone()));
    }
}

/// The row of a delegation that is a job, as the job says.
fn row_of(job: &Job) -> Delegation {
    let hop = job.request.delegated.clone();
    let unknown = || WorkspaceId::known("unknown");
    let (source, target) = hop.map_or_else(|| (unknown(), unknown()), |hop| (hop.from, hop.to));
    Delegation {
        id: job.id().clone(),
        tenant: job.request.tenant.clone(),
        source,
        target,
        summary: job.request.labels.get(SUMMARY).cloned().unwrap_or_default(),
        status: DelegationStatus::Pending,
        error: None,
        response_preview: None,
        is_job: true,
        created_at: job.created_at,
        updated_at: job.updated_at,
    }
}

/// At most so many characters, with a sign that there was more.
fn shortened(text: &str, len_max: usize) -> String {
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(len_max).collect();
    if chars.next().is_some() {
        short.push_str("...");
    }
    short
}
