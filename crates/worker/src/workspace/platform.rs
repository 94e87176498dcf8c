//! What a workspace asks of the platform, and the token that it does so with.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::Method;
use serde_json::Value;

use crate::beat_schedule::Pace;
use crate::clock;
use crate::http::{Bearer, HttpClient, HttpError, HttpResponse, json};
use crate::workspace::Enrolment;
use crate::workspace::errors::ErrorReport;
use crate::workspace::payload::{self, Completion, PulseBody, RegisterBody, RegisterReply};
use crate::workspace::tasks::TaskReport;
use crate::workspace::token::TokenFile;

/// What tests shorten.
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceSettings {
    pub pace: Pace,
    pub call_wait_max: Duration,
    /// How long the agent may take to answer when it is woken.
    pub wake_wait_max: Duration,
    /// The least time between two wake-up calls.
    pub wake_every: Duration,
}

pub const SETTINGS: WorkspaceSettings = WorkspaceSettings {
    pace: Pace {
        beat_every: Duration::from_secs(30),
        beat_gap_min: Duration::from_secs(1),
        pause_min: Duration::from_secs(1),
        pause_max: Duration::from_secs(30),
    },
    call_wait_max: Duration::from_secs(10),
    wake_wait_max: Duration::from_mins(2),
    wake_every: Duration::from_mins(5),
};

pub struct Platform {
    pub enrolment: Enrolment,
    pub settings: WorkspaceSettings,
    http: HttpClient,
    token_file: TokenFile,
    token: Mutex<Option<Bearer>>,
}

impl Platform {
    pub fn new(
        http: HttpClient,
        enrolment: Enrolment,
        token_file: TokenFile,
        settings: WorkspaceSettings,
    ) -> Self {
        Self { enrolment, settings, http, token_file, token: Mutex::new(None) }
    }

    /// Registers with the token in the file, if somebody has put one there since the last time, and keeps
    /// the one that is handed out.
    pub async fn register(&self) -> Result<HttpResponse, HttpError> {
        if let Some(token) = self.token_file.load_new() {
            self.keep(&token);
        }
        let answer = self.post("/registry/register", &RegisterBody::from(&self.enrolment)).await?;
        let RegisterReply { auth_token } = answer.json().unwrap_or_default();
        if answer.is_success()
            && let Some(token) = auth_token
        {
            self.keep(&token);
            self.token_file.save(&token);
        }
        Ok(answer)
    }

    pub async fn beat(&self, report: &ErrorReport, work: &TaskReport) -> Result<HttpResponse, HttpError> {
        self.post("/registry/heartbeat", &PulseBody::new(&self.enrolment.id, report, work)).await
    }

    /// Everything that the platform lists of this workspace's delegations.
    pub async fn delegations(&self) -> Result<HttpResponse, HttpError> {
        let (path, token) = (self.path("delegations"), self.token().clone());
        self.http.get(&path, token.as_ref(), self.settings.call_wait_max).await
    }

    /// Sends the agent a message by its own hand; the answer comes when the agent is done with it.
    pub async fn wake(&self) -> Result<HttpResponse, HttpError> {
        let (path, token) = (self.path("a2a"), self.token().clone());
        let request = self.http.request(Method::POST, &path, token.as_ref());
        let request = request.header("x-workspace-id", &self.enrolment.id);
        let message_id = format!("{:016x}{:016x}", clock::random(), clock::random());
        self.http.send(request, json(&payload::wake(&message_id))?, self.settings.wake_wait_max).await
    }

    /// Tells the people who watch.
    pub async fn notify(&self, completion: &Completion) -> Result<HttpResponse, HttpError> {
        self.post(&self.path("notify"), &payload::notice(completion)).await
    }

    async fn post(&self, path: &str, body: &impl serde::Serialize) -> Result<HttpResponse, HttpError> {
        let token = self.token().clone();
        self.http.post(path, token.as_ref(), body, self.settings.call_wait_max).await
    }

    fn path(&self, what: &str) -> String {
        format!("/workspaces/{}/{what}", self.enrolment.id)
    }

    fn keep(&self, token: &str) {
        let bearer = Bearer::new(token);
        if bearer.is_none() {
            tracing::warn!(workspace_id = self.enrolment.id, "a token that no header can carry is not used");
            return;
        }
        *self.token() = bearer;
    }

    fn token(&self) -> MutexGuard<'_, Option<Bearer>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rows of a listing; nothing if it is none.
pub fn rows(answer: &HttpResponse) -> Option<Vec<Value>> {
    if answer.is_success() { answer.json() } else { None }
}
