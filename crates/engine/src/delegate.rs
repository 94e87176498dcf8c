//! Delegations: one workspace gives work to another. Each is a job, with a job's life, policy and limits;
//! only the way to the worker differs, which is A2A over HTTP.
//!
//! The job is the truth. What Molecule's clients are told (`pending`, `dispatched`, `received`, …) is told
//! from it, rung by rung, and the row in the roster is where the telling has got to. One server alone keeps the rows
//! of unfinished ones at hand; of several, each reads the row before it tells (`together.rs`).

mod courier;
mod ladder;
mod together;

pub(crate) use ladder::Ladder;
pub(crate) use together::LOCK as DELEGATION_LOCK;

use crate::Engine;
use crate::scribe::Note;
use crate::submit::{Submission, SubmitError, Submitted, Submitter};
use crate::workspaces::WorkspaceError;
use bytes::Bytes;
use reveille_core::id::{JobId, KeyId, Topic, WorkspaceId};
use reveille_core::job::Job;
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_core::presence::workspace::Workspace;
use reveille_core::request::{Delegated, Request};
use reveille_core::trace::TraceContext;
use reveille_roster::RosterError;
use serde_json::json;
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
pub struct Taken {
    pub job: Arc<Job>,
    pub target: WorkspaceId,
    /// The same idempotency key was used before.
    pub is_repeat: bool,
}

impl Engine {
    pub async fn delegate(
        &self,
        source: &Workspace,
        target: &WorkspaceId,
        task: &str,
        idempotency_key: Option<&str>,
        trace: Option<TraceContext>,
    ) -> Result<Taken, DelegateError> {
        if source.is_removed() {
            return Err(WorkspaceError::Removed.into());
        }
        if task.is_empty() || task.len() > TASK_LEN_MAX {
            return Err(DelegateError::BadTask(format!("must have 1 to {TASK_LEN_MAX} bytes")));
        }
        let asked = self.workspace(&source.tenant, target).ok_or(WorkspaceError::NotFound)?;
        // Whoever has an old id is served by the workspace that took its place.
        let found =
            if asked.is_removed() { self.successor(&asked).ok_or(WorkspaceError::Removed)? } else { asked };
        if found.id == source.id {
            return Err(DelegateError::Oneself);
        }
        if !self.workspaces.may_talk(source, &found) {
            return Err(WorkspaceError::NotKin.into());
        }
        let id = self.new_job_id();
        let mut request = Request::plain(id.as_str(), TOPIC);
        request.topic = Topic::known(TOPIC);
        request.tenant = source.tenant.clone();
        request.actor.principal_id = source.id.to_string();
        "service".clone_into(&mut request.actor.actor_type);
        request.labels.insert("molecule.source".to_owned(), source.id.to_string());
        request.labels.insert("molecule.target".to_owned(), found.id.to_string());
        request.labels.insert(SUMMARY.to_owned(), shortened(task, SUMMARY_LEN_MAX));
        request.idempotency_key = idempotency_key.map(|key| format!("delegate:{}:{key}", source.id));
        request.submitted_by = Some(KeyId::known(source.id.as_str()));
        request.follow(trace);
        request.delegated = Some(Delegated { from: source.id.clone(), to: found.id.clone() });
        let context = Bytes::from(json!({ "task": task }).to_string());
        let submission = Submission { request, context: Some(context), submitter: Submitter::Listens };
        let (job, is_repeat) = match self.submit(submission).await? {
            Submitted::New(job) => (job, false),
            Submitted::Existing(job) => (job, true),
            Submitted::Throttled(_) => return Err(DelegateError::Throttled),
        };
        // Several servers tell in the background; the row is there before the answer all the same.
        if is_repeat || self.is_one_of_many() {
            self.make_up_row(job.id()).await?;
        }
        // What was jotted down about it is durable once this is.
        self.write_down(Note::default()).await?;
        let target = job.request.delegated.as_ref().map_or(found.id.clone(), |hop| hop.to.clone());
        Ok(Taken { job, target, is_repeat })
    }

    /// A crash may have come between the job and its row, and whoever asks again may be faster than the
    /// recovery.
    async fn make_up_row(&self, id: &JobId) -> Result<(), DelegateError> {
        let _turn = self.turn(id).await;
        // What was told of it is on the disk after this, and nothing more is told while it is our turn.
        self.write_down(Note::default()).await?;
        let Some(job) = self.store.job(id).await.map_err(SubmitError::from)? else { return Ok(()) };
        if self.is_one_of_many() {
            return Ok(self.tell_together(&job, DelegationStatus::of(&job)).await?);
        }
        if !self.ladder.has(id) {
            match self.roster.delegation(id).await? {
                Some(row) if row.status.is_last() => return Ok(()),
                Some(row) => self.ladder.put(row),
                None => self.open_ladder(&job).await,
            }
        }
        self.climb(&job, DelegationStatus::of(&job)).await;
        Ok(())
    }

    /// What a workspace has delegated, newest first.
    pub async fn delegations_of(&self, source: &WorkspaceId) -> Result<Vec<Delegation>, RosterError> {
        self.roster.delegations_of(source, LIST_LEN_MAX).await
    }

    /// An agent ran a delegation by itself and tells us of it.
    pub async fn record_delegation(
        &self,
        source: &Workspace,
        target: &WorkspaceId,
        id: &JobId,
        task: &str,
    ) -> Result<(), DelegateError> {
        self.workspace(&source.tenant, target).ok_or(WorkspaceError::NotFound)?;
        let _turn = self.turn(id).await;
        if let Some(known) = self.roster.delegation(id).await? {
            let same = known.source == source.id && known.target == *target;
            return if same {
                Ok(())
            } else {
                Err(DelegateError::Refused("delegation_id is taken".to_owned()))
            };
        }
        let now = self.now();
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
        self.keep_rungs(row, &[DelegationStatus::Dispatched]).await?;
        Ok(())
    }

    /// An agent says how a delegation ended: one that it ran by itself, or one of our jobs that it took.
    pub async fn report_delegation(
        &self,
        speaker: &Workspace,
        id: &JobId,
        outcome: Result<String, String>,
    ) -> Result<(), DelegateError> {
        let row = self.roster.delegation(id).await?.ok_or(DelegateError::NotFound)?;
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
        let _turn = self.turn(id).await;
        let row = self.roster.delegation(id).await?.ok_or(DelegateError::NotFound)?;
        if row.status.is_last() {
            return Ok(());
        }
        let status = if outcome.is_ok() { DelegationStatus::Completed } else { DelegationStatus::Failed };
        let mut ended = Delegation { status: row.status, updated_at: self.now(), ..row };
        match outcome {
            Ok(text) => ended.response_preview = Some(shortened(&text, PREVIEW_LEN_MAX)),
            Err(words) => ended.error = Some(shortened(&words, PREVIEW_LEN_MAX)),
        }
        let path = ended.status.path(status);
        self.keep_rungs(ended, &path).await?;
        Ok(())
    }

    /// Where the telling of unfinished delegations had got to before our restart.
    pub(crate) async fn load_ladder(&self) -> Result<(), RosterError> {
        if self.is_one_of_many() {
            return Ok(());
        }
        let mut after: Option<JobId> = None;
        loop {
            let page = self.roster.open_delegations(after.clone(), 500).await?;
            let is_last = page.len() < 500;
            after = page.last().map(|row| row.id.clone());
            for row in page {
                self.ladder.put(row);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Jobs that ended while the row was not written: a crash came in between.
    pub(crate) async fn finish_ladder(self) {
        if self.is_one_of_many() {
            return self.tell_what_was_left_untold().await;
        }
        for id in self.ladder.ids() {
            loop {
                let turn = self.turn(&id).await;
                match self.store.job(&id).await {
                    Ok(Some(job)) => break self.tell_delegation(&job).await,
                    Ok(None) => break self.lose_delegation(&id).await,
                    Err(error) => {
                        tracing::warn!(job = %id, %error, "a delegation could not be read; trying again");
                    }
                }
                drop(turn);
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
    }

    /// What was given to a workspace that is retired ends here: it can go nowhere else.
    pub(crate) async fn end_delegations_to(self, target: WorkspaceId) {
        let given = if self.is_one_of_many() { self.open_to(&target).await } else { self.ladder.to(&target) };
        for id in given {
            let ended = self.cancel(&id, "platform", "the workspace was removed").await;
            if let Err(error) = ended {
                tracing::debug!(job = %id, %error, "a delegation was not ended");
            }
        }
    }
}

/// The row of a delegation that is a job, as the job says.
pub(crate) fn row_of(job: &Job) -> Delegation {
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
pub(crate) fn shortened(text: &str, len_max: usize) -> String {
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(len_max).collect();
    if chars.next().is_some() {
        short.push_str("...");
    }
    short
}
