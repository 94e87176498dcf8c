//! Bringing a delegated job to its workspace, and what comes back.

use super::in_flight::SendPermit;
use super::{DelegateError, Delegations};
use crate::jobs::SubmitError;
use bytes::Bytes;
use reveille_a2a::message::{self, A2aAnswer};
use reveille_a2a::{A2aError, A2aReply, A2aRequest};
use reveille_core::fleet::Who;
use reveille_core::id::{WorkerId, WorkspaceId};
use reveille_core::job::{Event, Job, Phase, State};
use reveille_core::life::{self, Made, Report, Status};
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_store::{BlobKey, PutMode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long a workspace may take to answer. An agent thinks for minutes.
const PATIENCE: Duration = Duration::from_mins(30);
/// Times that an agent may take a task and break down over it before the task is suspected.
const BREAKDOWNS_MAX: usize = 5;

impl Delegations {
    /// Takes the job to its workspace and waits for the answer. The same message id every time lets the
    /// workspace tell a repetition.
    pub(super) async fn send(self, job: Arc<Job>) {
        let (Some(attempt), Some(hop)) = (job.attempt(), job.request.delegated.clone()) else { return };
        let number = attempt.number;
        let under_way = match self.in_flight.begin(job.id(), number, &hop.to) {
            SendPermit::Send(under_way) => under_way,
            SendPermit::IsUnderWay => return,
            SendPermit::EarlierIs => return self.received(job, number).await,
        };
        let url = self.workspaces.index().find(&hop.to).and_then(|workspace| workspace.url.clone());
        let Some(url) = url else {
            drop(under_way);
            return self.not_reached(&job, number, &hop.to).await;
        };
        let Some(task) = self.task_of(&job).await else {
            drop(under_way);
            return self.answered(&job, Status::Fatal, "the task is no longer stored", String::new()).await;
        };
        let context = self.observe.trace_of(&job.request).attempt(number);
        let trace = context.headers().into_iter().map(|(name, value)| (name.into(), value));
        let request = A2aRequest {
            url,
            body: message::request(job.id().as_str(), &task),
            headers: [("x-workspace-id".into(), hop.from.to_string())].into_iter().chain(trace).collect(),
            patience: PATIENCE,
        };
        let (delegations, received_job) = (self.clone(), job.clone());
        let received = Box::new(move || {
            delegations.runtime.spawn(delegations.clone().received(received_job, number));
        });
        let outcome = tokio::select! {
            outcome = self.a2a.post(request, received) => outcome,
            () = under_way.recalled() => Err(A2aError::Broken("the workspace started anew".to_owned())),
        };
        // What follows may give the job out again, and that request must find the way free.
        drop(under_way);
        self.come_back(job, number, &hop.to, outcome).await;
    }

    async fn come_back(
        &self,
        job: Arc<Job>,
        number: u32,
        from: &WorkspaceId,
        outcome: Result<A2aReply, A2aError>,
    ) {
        if matches!(outcome, Err(A2aError::Unreachable(_))) {
            return self.not_reached(&job, number, from).await;
        }
        // The job may have been given to the same workspace once more while it had the request.
        let job = match self.store.job(job.id()).await {
            Ok(Some(now)) if now.attempt().is_some() => now,
            _ => job,
        };
        match outcome {
            Ok(reply) => match message::answer(reply.status, &reply.body) {
                A2aAnswer::Said(text) => self.said(&job, &text).await,
                // It tells us when it is done.
                A2aAnswer::Queued => {}
                A2aAnswer::Failed { retryable, words } => {
                    let status = if retryable { Status::Retryable } else { Status::Fatal };
                    self.answered(&job, status, &words, String::new()).await;
                }
            },
            Err(error @ (A2aError::Broken(_) | A2aError::TimedOut)) => {
                self.answered(&job, Status::Retryable, &error.to_string(), String::new()).await;
            }
            Err(error) => self.answered(&job, Status::Fatal, &error.to_string(), String::new()).await,
        }
    }

    /// The workspace is back: what it should have had is brought again.
    pub(super) async fn send_again(self, workspace: WorkspaceId) {
        let held = self.placement.lock().held_by(Who::Workspace(workspace.as_str()));
        for id in held {
            if let Ok(Some(job)) = self.store.job(&id).await
                && matches!(job.phase, Phase::Dispatched(_))
            {
                self.runtime.spawn(self.clone().send(job));
            }
        }
    }

    /// The workspace has the request.
    async fn received(self, job: Arc<Job>, number: u32) {
        {
            let _lock = self.jobs.lock(job.id()).await;
            let now = self.store.job(job.id()).await.ok().flatten();
            if let Some(now) = now.filter(|now| now.state() == State::Dispatched) {
                self.statuses.record(&now, DelegationStatus::Received).await;
            }
        }
        let started = self.jobs.drive_on(job.id(), |job, now| life::start(job, number, None, now)).await;
        if let Err(error) = started {
            tracing::debug!(job = %job.id(), %error, "job not marked as running");
        }
    }

    async fn not_reached(&self, job: &Job, number: u32, workspace: &WorkspaceId) {
        self.placement.lock().mark_unreachable(Who::Workspace(workspace.as_str()));
        // It had the request before our restart, and cannot be asked about it now.
        if matches!(self.store.job(job.id()).await, Ok(Some(now)) if now.state() == State::Running) {
            return self
                .answered(job, Status::Retryable, "the workspace was not reached", String::new())
                .await;
        }
        let random = self.runtime.random();
        let back = self.jobs.drive_on(job.id(), |job, now| life::unheard(job, number, now, random)).await;
        if let Err(error) = back {
            tracing::debug!(job = %job.id(), %error, "delegation not taken back");
        }
    }

    /// The answer is kept first and the job ended then, so that whoever sees the end finds the answer.
    async fn said(&self, job: &Job, text: &str) {
        let key = BlobKey::result_of(job.id());
        let value = Bytes::from(json!({ "text": text }).to_string());
        let expires_at = self.runtime.now() + self.runtime.settings().blob_ttl_ms;
        self.jobs.count_blob(&job.request.tenant, value.len(), expires_at);
        let put = || self.store.put_blob(key.clone(), value.clone(), expires_at, PutMode::Always);
        if let Err(error) = self.observe.until_answered("answer not stored; retrying", job.id(), put).await {
            tracing::error!(job = %job.id(), %error, "answer cannot be stored");
            let words = "the answer cannot be stored";
            return self.answered(job, Status::Fatal, words, String::new()).await;
        }
        self.answered(job, Status::Succeeded, "", key.pointer()).await;
    }

    async fn answered(&self, job: &Job, status: Status, words: &str, result_ptr: String) {
        let Some(attempt) = job.attempt() else { return };
        let Some(worker) = attempt.worker.clone() else { return };
        let report = Report {
            worker,
            attempt: Some(u64::from(attempt.number)),
            status,
            result_ptr,
            error_code: String::new(),
            error_message: words.to_owned(),
            execution_ms: self.runtime.now().since(attempt.dispatched_at),
            trace: None,
            made: Made::default(),
        };
        let done = self
            .jobs
            .finish_as(job.id(), &report, None, |job| {
                let broke_down = job.marks.iter().filter(|mark| mark.event == Event::Retry).count() + 1;
                let is_enough = report.status == Status::Retryable && broke_down >= BREAKDOWNS_MAX;
                if is_enough { Status::Failed } else { report.status }
            })
            .await;
        if let Err(error) = done {
            tracing::debug!(job = %job.id(), %error, "the answer changed nothing");
        }
    }

    /// The target says how it went, in a call of its own.
    pub(super) async fn delegation_said(
        &self,
        row: &Delegation,
        outcome: Result<String, String>,
    ) -> Result<(), DelegateError> {
        let job = self.store.job(&row.id).await.map_err(SubmitError::from)?;
        let job = job.ok_or(DelegateError::NotFound)?;
        if job.state().is_terminal() {
            return Ok(());
        }
        let has_it = job.attempt().and_then(|attempt| attempt.worker.as_ref());
        if has_it != Some(&WorkerId::known(row.target.as_str())) {
            return Err(DelegateError::Refused("it was not given this delegation".to_owned()));
        }
        match outcome {
            Ok(text) => self.said(&job, &text).await,
            Err(words) => self.answered(&job, Status::Fatal, &words, String::new()).await,
        }
        Ok(())
    }

    async fn task_of(&self, job: &Job) -> Option<String> {
        let key = self.jobs.context_of(job.id());
        let read = || self.store.blob(&key);
        let blob = self.observe.until_answered("task not read; retrying", job.id(), read).await.ok()??;
        let context: Value = serde_json::from_slice(&blob).ok()?;
        context.get("task").and_then(Value::as_str).map(str::to_owned)
    }
}
