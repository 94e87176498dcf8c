//! What a workspace asks of the platform, and the token that it does so with.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::Method;
use serde_json::Value;

use crate::clock;
use crate::http::{Answer, Bearer, Http, Trouble, json};
use crate::rhythm::Pace;
use crate::workspace::Enrolment;
use crate::workspace::errors::Report;
use crate::workspace::payload::{self, Completion, Pulse, Register, Registered};
use crate::workspace::tasks::Work;
use crate::workspace::token::TokenFile;

/// What tests shorten.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub pace: Pace,
    pub call_wait_max: Duration,
    /// How long the agent may take to answer when it is woken.
    pub wake_wait_max: Duration,
    /// The least time between two wake-up calls.
    pub wake_every: Duration,
}

pub const SETTINGS: Settings = Settings {
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
    pub settings: Settings,
    http: Http,
    token_file: TokenFile,
    token: Mutex<Option<Bearer>>,
}

impl Platform {
    pub fn new(http: Http, enrolment: Enrolment, token_file: TokenFile, settings: Settings) -> Self {
        Self { enrolment, settings, http, token_file, token: Mutex::new(None) }
    }

    /// Registers with the token in the file, if somebody has put one there since the last time, and keeps
    /// the one that is handed out.
    pub async fn register(&self) -> Result<Answer, Trouble> {
        if let Some(token) = self.token_file.load_new() {
            self.keep(&token);
        }
        let answer = self.post("/registry/register", &Register::from(&self.enrolment)).await?;
        let Registered { auth_token } = answer.json().unwrap_or_default();
        if answer.is_success()
            && let Some(token) = auth_token
        {
            self.keep(&token);
            self.token_file.save(&token);
        }
        Ok(answer)
    }

    pub async fn beat(&self, report: &Report, work: &Work) -> Result<Answer, Trouble> {
        self.post("/registry/heartbeat", &Pulse::new(&self.enrolment.id, report, work)).await
    }

    /// Everything that the platform lists of this workspace's delegations.
    pub async fn delegations(&self) -> Result<Answer, Trouble> {
        let (path, token) = (self.path("delegations"), self.token().clone());
        self.http.get(&path, token.as_ref(), self.settings.call_wait_max).await
    }

    /// Sends the agent a message by its own hand; the answer comes when the agent is done with it.
    pub async fn wake(&self) -> Result<Answer, Trouble> {
        let (path, token) = (self.path("a2a"), self.token().clone());
        let request = self.http.request(Method::POST, &path, token.as_ref());
        let request = request.header("x-workspace-id", &self.enrolment.id);
        let message_id = format!("{:016x}{:016x}", clock::random(), clock::random());
        self.http.send(request, json(&payload::wake(&message_id))?, self.settings.wake_wait_max).await
    }

    /// Tells the people who watch.
    pub async fn notify(&self, completion: &Completion) -> Result<Answer, Trouble> {
        self.post(&self.path("notify"), &payload::notice(completion)).await
    }

    async fn post(&self, path: &str, body: &impl serde::Serialize) -> Result<Answer, Trouble> {
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
pub fn rows(answer: &Answer) -> Option<Vec<Value>> {
    if answer.is_success() { answer.json() } else { None }
}
