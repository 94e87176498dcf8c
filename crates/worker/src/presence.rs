//! An agent that says it lives, in the words of VoiceGateway's heartbeat contract.
//!
//! [`register_worker`] posts to `/v1/agents/heartbeat` at once, every 15 seconds, and when the agent
//! becomes busy or idle. It is a courtesy to whoever watches: it never fails, blocks or breaks the
//! agent, and what goes wrong is a line in the debug log.
//!
//! There is no goodbye: an agent that stops is offline once its TTL is over.

mod beats;
mod payload;

use std::env;
use std::sync::Arc;
use std::thread;

use tokio::runtime;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::clock;
use crate::error::Error;
use crate::http::address::ServerAddress;
use crate::http::{Bearer, HttpClient};
use beats::{AgentBeats, PresenceSettings, SETTINGS};
use payload::AgentProfile;

/// What an agent tells of itself, and to whom.
#[derive(Clone)]
pub struct Registration {
    collector_url: Option<String>,
    api_key: Option<String>,
    profile: AgentProfile,
}

impl Registration {
    /// An agent of this name on this machine. The name groups agents; their id tells them apart, and is
    /// the machine's name unless set.
    pub fn new(agent_name: impl Into<String>) -> Self {
        let host = host_name();
        let profile = AgentProfile {
            agent_id: host.clone(),
            agent_name: agent_name.into(),
            dispatch_name: None,
            version: None,
            project: "default".to_owned(),
            tenant_id: None,
            region: None,
            host: Some(host),
            started_at: clock::now_s(),
        };
        Self { collector_url: None, api_key: None, profile }
    }

    /// The same with `VOICEGW_COLLECTOR_URL`, `VOICEGW_API_KEY` and `VOICEGW_AGENT_ID`, where set.
    pub fn from_env(agent_name: impl Into<String>) -> Self {
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let mut registration = Self::new(agent_name);
        registration.collector_url = set("VOICEGW_COLLECTOR_URL");
        registration.api_key = set("VOICEGW_API_KEY");
        if let Some(id) = set("VOICEGW_AGENT_ID") {
            registration.profile.agent_id = id;
        }
        registration
    }

    /// `http[s]://host[:port]` of the server that keeps the roster.
    pub fn collector_url(mut self, url: impl Into<String>) -> Self {
        self.collector_url = Some(url.into());
        self
    }

    /// The key that says whose agent this is.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// An id of its own. Two agents on one machine need one each, or they are taken for one.
    pub fn agent_id(mut self, id: impl Into<String>) -> Self {
        self.profile.agent_id = id.into();
        self
    }

    /// The name that calls are dispatched to, if it is not the agent's.
    pub fn dispatch_name(mut self, name: impl Into<String>) -> Self {
        self.profile.dispatch_name = Some(name.into());
        self
    }

    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.profile.version = Some(version.into());
        self
    }

    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.profile.project = project.into();
        self
    }

    /// Advisory: the server goes by the key.
    pub fn tenant_id(mut self, tenant: impl Into<String>) -> Self {
        self.profile.tenant_id = Some(tenant.into());
        self
    }

    /// Where the agent runs.
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.profile.region = Some(region.into());
        self
    }
}

/// Says that this agent lives until the returned value is dropped.
///
/// It beats on the runtime that it is called on. Called outside of any it brings one of its own, so that
/// an agent is seen before its first session too. An address that is none is a warning in the log and
/// an agent that nobody sees, not an error.
pub fn register_worker(registration: Registration) -> AgentPresence {
    start(registration, SETTINGS)
}

fn start(registration: Registration, settings: PresenceSettings) -> AgentPresence {
    let (sessions, told) = watch::channel(0);
    let stop = CancellationToken::new();
    let presence = AgentPresence { sessions: Arc::new(sessions), _stop: stop.clone().drop_guard() };
    let agent_id = registration.profile.agent_id.clone();
    match beats(registration, settings, told) {
        Ok(beats) => spawn(async move {
            stop.run_until_cancelled(beats.run()).await;
        }),
        Err(error) => tracing::warn!(agent_id, %error, "presence is off for this agent"),
    }
    presence
}

fn beats(
    registration: Registration,
    settings: PresenceSettings,
    sessions: watch::Receiver<u32>,
) -> Result<AgentBeats, Error> {
    let Registration { collector_url, api_key, profile } = registration;
    let address = ServerAddress::parse("VOICEGW_COLLECTOR_URL", &collector_url.unwrap_or_default())?;
    let key = match api_key {
        Some(key) => Some(Bearer::new(&key).ok_or(Error::ApiKey)?),
        None => None,
    };
    Ok(AgentBeats { http: HttpClient::new(address), key, profile, sessions, settings })
}

fn spawn(beats: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = runtime::Handle::try_current() {
        runtime.spawn(beats);
        return;
    }
    let own = thread::Builder::new().name("agent-presence".to_owned()).spawn(|| {
        match runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(beats),
            Err(error) => tracing::warn!(%error, "no runtime for heartbeats; presence is off for this agent"),
        }
    });
    if let Err(error) = own {
        tracing::warn!(%error, "no thread for heartbeats; presence is off for this agent");
    }
}

/// The agent is on the roster while this lives.
pub struct AgentPresence {
    sessions: Arc<watch::Sender<u32>>,
    _stop: DropGuard,
}

impl AgentPresence {
    /// The agent is busy while any such value lives.
    pub fn session(&self) -> Session {
        self.sessions.send_modify(|active| *active = active.saturating_add(1));
        Session { sessions: Arc::clone(&self.sessions) }
    }

    /// Stops beating. Dropping the value does the same.
    pub fn stop(self) {}
}

/// One session that the agent is in.
#[must_use = "the session ends when this is dropped"]
pub struct Session {
    sessions: Arc<watch::Sender<u32>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.sessions.send_modify(|active| *active = active.saturating_sub(1));
    }
}

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

#[cfg(test)]
mod tests;
