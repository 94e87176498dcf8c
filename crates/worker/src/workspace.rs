//! An agent's workspace in the Molecule registry: it registers, beats every 30 seconds, and looks after
//! the work that it has delegated to others.
//!
//! Two loops run side by side and share nothing but the platform: `beats` says that the workspace lives
//! and how it is, `delegations` picks up results after each beat. Nothing that results bring about, such
//! as the message that wakes the agent, can therefore delay a beat.

mod beats;
mod cooldown;
mod delegations;
mod errors;
mod payload;
mod platform;
mod results;
mod seen;
mod tasks;
mod token;

pub use errors::{ErrorTracker, RequestFault};
pub use tasks::Task;

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::Error;
use crate::http::HttpClient;
use crate::http::address::ServerAddress;
use beats::{Vitals, WorkspaceBeats};
use delegations::DelegationPoller;
use platform::{Platform, SETTINGS, WorkspaceSettings};
use results::ResultsFile;
use tasks::Tasks;
use token::TokenFile;

const CONFIGS_DIR_DEFAULT: &str = "/configs";
const RESULTS_FILE_DEFAULT: &str = "/tmp/delegation_results.jsonl";
const ID_LEN_MAX: usize = 128;

/// Who a workspace is and where it is kept.
#[derive(Debug, Clone)]
pub struct Enrolment {
    /// `http[s]://host[:port]` of the platform.
    pub platform_url: String,
    /// The workspace's id, mostly a UUID.
    pub id: String,
    /// Where other agents reach this one.
    pub url: String,
    /// The A2A agent card; it is passed on as it is.
    pub agent_card: Value,
}

/// A workspace that has yet to [run](Workspace::run).
pub struct Workspace {
    enrolment: Enrolment,
    configs_dir: Option<PathBuf>,
    results_file: PathBuf,
    handle: WorkspaceHandle,
    settings: WorkspaceSettings,
}

impl Workspace {
    /// Files are where `CONFIGS_DIR` and `DELEGATION_RESULTS_FILE` say, or else in `/configs`, if there
    /// is such a folder, and at `/tmp/delegation_results.jsonl`.
    pub fn new(enrolment: Enrolment) -> Self {
        let set = |name| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let configs_dir = set("CONFIGS_DIR")
            .or_else(|| Some(PathBuf::from(CONFIGS_DIR_DEFAULT)).filter(|folder| folder.is_dir()));
        let results_file = set("DELEGATION_RESULTS_FILE").unwrap_or_else(|| RESULTS_FILE_DEFAULT.into());
        let started = Instant::now();
        let handle = WorkspaceHandle { errors: ErrorTracker::new(started), tasks: Tasks::default() };
        Self { enrolment, configs_dir, results_file, handle, settings: SETTINGS }
    }

    /// Where the token is kept that the platform hands out once, as `.auth_token`.
    pub fn configs_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.configs_dir = Some(folder.into());
        self
    }

    /// Where results of delegations are written, one JSON object per line.
    pub fn results_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.results_file = path.into();
        self
    }

    /// For the agent's work, to say how it goes while the workspace runs.
    pub fn handle(&self) -> WorkspaceHandle {
        self.handle.clone()
    }

    /// Registers and beats until `shutdown` resolves. A platform that is away is waited for. Fails at
    /// once if the enrolment makes no sense, and when the platform says that the workspace was retired.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let Self { enrolment, configs_dir, results_file, handle, settings } = self;
        check_id(&enrolment.id)?;
        let address = ServerAddress::parse("platform_url", &enrolment.platform_url)?;
        let token = TokenFile::new(configs_dir);
        let platform = Arc::new(Platform::new(HttpClient::new(address), enrolment, token, settings));
        let beaten = Arc::new(Notify::new());
        let vitals = Vitals { errors: handle.errors.clone(), tasks: handle.tasks.watch() };
        let beats = WorkspaceBeats::new(Arc::clone(&platform), vitals, Arc::clone(&beaten));
        let delegations = DelegationPoller::new(platform, ResultsFile::new(results_file), beaten);
        tokio::select! {
            () = shutdown => Ok(()),
            error = beats.run() => Err(error),
            () = delegations.run() => Ok(()),
        }
    }
}

/// What the agent's work says to its workspace. Clones are the same workspace.
#[derive(Clone)]
pub struct WorkspaceHandle {
    errors: ErrorTracker,
    tasks: Tasks,
}

impl WorkspaceHandle {
    /// Where the agent records how its requests end.
    pub fn errors(&self) -> ErrorTracker {
        self.errors.clone()
    }

    /// The agent works on this until the returned value is dropped. Both are told at once.
    pub fn task(&self, description: &str) -> Task {
        self.tasks.start(description)
    }
}

/// Ids become parts of paths.
fn check_id(id: &str) -> Result<(), Error> {
    let is_fine = !id.is_empty()
        && id.len() <= ID_LEN_MAX
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if is_fine { Ok(()) } else { Err(Error::WorkspaceId(id.to_owned())) }
}

#[cfg(test)]
mod tests;
