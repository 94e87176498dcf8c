//! A VoiceGateway agent, as its last beat told of it.
//!
//! A beat is read without copying: most beats say what the one before said, and then nothing is
//! allocated. Limits are checked here, once, whichever way a beat came in.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub const NAME_LEN_MAX: usize = 256;
pub const SESSIONS_MAX: u32 = 1_000_000;
/// More memory than any machine has, so that arithmetic on it is safe.
pub const MEMORY_BYTES_MAX: u64 = 1 << 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentStatus {
    #[default]
    Idle,
    Busy,
    Offline,
}

impl AgentStatus {
    pub const ALL: [Self; 3] = [Self::Idle, Self::Busy, Self::Offline];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Offline => "offline",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// What we keep of an agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Agent {
    pub name: String,
    pub dispatch_name: Option<String>,
    pub status: AgentStatus,
    pub active_sessions: u32,
    pub version: Option<String>,
    pub project: String,
    pub region: Option<String>,
    pub host: Option<String>,
    /// Seconds since the epoch, by the agent's clock.
    pub started_at: Option<f64>,
    pub memory_rss_bytes: Option<u64>,
    pub memory_total_bytes: Option<u64>,
    /// From 0 to 100.
    pub cpu_pct: Option<f32>,
}

impl Agent {
    /// Memory in use, in percent with one decimal.
    pub fn memory_pct(&self) -> Option<f64> {
        let (rss, total) = (self.memory_rss_bytes?, self.memory_total_bytes.filter(|total| *total > 0)?);
        Some((rss as f64 / total as f64 * 1000.0).round() / 10.0)
    }
}

/// A beat as it came in. `tenant_id` and `ts` of the payload are not here: the tenant is the key's, the
/// time is ours.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentBeat<'a> {
    pub agent_id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub dispatch_name: Option<Cow<'a, str>>,
    pub status: AgentStatus,
    pub active_sessions: u32,
    pub version: Option<Cow<'a, str>>,
    pub project: Cow<'a, str>,
    pub region: Option<Cow<'a, str>>,
    pub host: Option<Cow<'a, str>>,
    pub started_at: Option<f64>,
    pub memory_rss_bytes: Option<u64>,
    pub memory_total_bytes: Option<u64>,
    pub cpu_pct: Option<f32>,
}

/// A field of a beat that cannot be taken, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct BadBeat {
    pub field: &'static str,
    pub problem: &'static str,
}

impl AgentBeat<'_> {
    /// The same beat, for whoever keeps it.
    pub fn kept(&self) -> AgentBeat<'static> {
        let text = |text: &Cow<'_, str>| Cow::Owned(text.to_string());
        AgentBeat {
            agent_id: text(&self.agent_id),
            name: text(&self.name),
            dispatch_name: self.dispatch_name.as_ref().map(text),
            status: self.status,
            active_sessions: self.active_sessions,
            version: self.version.as_ref().map(text),
            project: text(&self.project),
            region: self.region.as_ref().map(text),
            host: self.host.as_ref().map(text),
            started_at: self.started_at,
            memory_rss_bytes: self.memory_rss_bytes,
            memory_total_bytes: self.memory_total_bytes,
            cpu_pct: self.cpu_pct,
        }
    }

    /// Whether every field is within its limits.
    pub fn check(&self) -> Result<(), BadBeat> {
        let text = |field, value: &str| {
            if value.len() > NAME_LEN_MAX {
                return Err(BadBeat { field, problem: "is longer than 256 bytes" });
            }
            if value.chars().any(char::is_control) {
                return Err(BadBeat { field, problem: "has a control character" });
            }
            Ok(())
        };
        if self.agent_id.is_empty() {
            return Err(BadBeat { field: "agent_id", problem: "is empty" });
        }
        if self.agent_id.chars().any(char::is_whitespace) {
            return Err(BadBeat { field: "agent_id", problem: "has a space" });
        }
        if self.name.is_empty() {
            return Err(BadBeat { field: "agent_name", problem: "is empty" });
        }
        text("agent_id", &self.agent_id)?;
        text("agent_name", &self.name)?;
        text("project", &self.project)?;
        for (field, value) in [
            ("dispatch_name", &self.dispatch_name),
            ("version", &self.version),
            ("region", &self.region),
            ("host", &self.host),
        ] {
            text(field, value.as_deref().unwrap_or_default())?;
        }
        if self.active_sessions > SESSIONS_MAX {
            return Err(BadBeat { field: "active_sessions", problem: "is more than 1000000" });
        }
        for (field, value) in
            [("memory_rss_bytes", self.memory_rss_bytes), ("memory_total_bytes", self.memory_total_bytes)]
        {
            if value.is_some_and(|bytes| bytes > MEMORY_BYTES_MAX) {
                return Err(BadBeat { field, problem: "is more than any machine has" });
            }
        }
        if self.cpu_pct.is_some_and(|cpu| !(0.0..=100.0).contains(&cpu)) {
            return Err(BadBeat { field: "cpu_pct", problem: "is not between 0 and 100" });
        }
        if self.started_at.is_some_and(|at| !at.is_finite() || !(0.0..=1e11).contains(&at)) {
            return Err(BadBeat { field: "started_at", problem: "is not a time in seconds" });
        }
        Ok(())
    }

    /// Takes over what the beat says. Answers whether somebody looking at the agent would see a change.
    pub fn apply(&self, agent: &mut Agent) -> bool {
        let mut changed = false;
        let mut text = |kept: &mut String, told: &str| {
            if kept != told {
                told.clone_into(kept);
                changed = true;
            }
        };
        text(&mut agent.name, &self.name);
        text(&mut agent.project, &self.project);
        let mut optional = |kept: &mut Option<String>, told: &Option<Cow<'_, str>>| {
            if kept.as_deref() != told.as_deref() {
                *kept = told.as_deref().map(str::to_owned);
                changed = true;
            }
        };
        optional(&mut agent.dispatch_name, &self.dispatch_name);
        optional(&mut agent.version, &self.version);
        optional(&mut agent.region, &self.region);
        optional(&mut agent.host, &self.host);
        changed |= agent.status != self.status
            || agent.active_sessions != self.active_sessions
            || agent.started_at != self.started_at;
        agent.status = self.status;
        agent.active_sessions = self.active_sessions;
        agent.started_at = self.started_at;
        // Memory and CPU move all the time; they are shown when something else has changed, or when asked.
        agent.memory_rss_bytes = self.memory_rss_bytes;
        agent.memory_total_bytes = self.memory_total_bytes;
        agent.cpu_pct = self.cpu_pct;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat() -> AgentBeat<'static> {
        AgentBeat {
            agent_id: "w1".into(),
            name: "voice".into(),
            project: "default".into(),
            ..AgentBeat::default()
        }
    }

    #[test]
    fn a_beat_that_says_the_same_changes_nothing() {
        let mut agent = Agent::default();
        assert!(beat().apply(&mut agent));
        assert!(!beat().apply(&mut agent));
        assert!(!AgentBeat { cpu_pct: Some(3.0), ..beat() }.apply(&mut agent), "load is not news");
        assert_eq!(agent.cpu_pct, Some(3.0));
        assert!(AgentBeat { status: AgentStatus::Busy, active_sessions: 2, ..beat() }.apply(&mut agent));
    }

    #[test]
    fn a_field_beyond_its_limit_is_named() {
        let long = "x".repeat(NAME_LEN_MAX + 1);
        for (bad, field) in [
            (AgentBeat { agent_id: "".into(), ..beat() }, "agent_id"),
            (AgentBeat { agent_id: "a b".into(), ..beat() }, "agent_id"),
            (AgentBeat { name: long.clone().into(), ..beat() }, "agent_name"),
            (AgentBeat { host: Some(long.into()), ..beat() }, "host"),
            (AgentBeat { active_sessions: SESSIONS_MAX + 1, ..beat() }, "active_sessions"),
            (AgentBeat { cpu_pct: Some(101.0), ..beat() }, "cpu_pct"),
            (AgentBeat { started_at: Some(f64::NAN), ..beat() }, "started_at"),
            (AgentBeat { memory_rss_bytes: Some(u64::MAX), ..beat() }, "memory_rss_bytes"),
        ] {
            assert_eq!(bad.check().unwrap_err().field, field);
        }
        assert_eq!(beat().check(), Ok(()));
    }
}
