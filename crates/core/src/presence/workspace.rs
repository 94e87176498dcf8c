//! A Molecule workspace: what it is, how it says it is doing, and how that changes its status.

use crate::id::{TenantId, WorkspaceId};
use crate::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// At this error rate an online workspace is degraded.
pub const DEGRADED_AT: f64 = 0.5;
/// Below this one a degraded workspace is online again. Between the two nothing changes.
pub const RECOVERED_BELOW: f64 = 0.1;
/// How many forwarded ids are followed.
pub const FORWARD_HOPS_MAX: usize = 5;
/// Delegations a workspace takes at once unless its record says otherwise.
pub const TASKS_AT_ONCE: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceStatus {
    /// Made by somebody, not heard yet.
    #[default]
    Provisioning,
    Online,
    Degraded,
    Offline,
    /// Retired: kept so that whoever asks for it is told where to go.
    Removed,
}

impl WorkspaceStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provisioning => "provisioning",
            Self::Online => "online",
            Self::Degraded => "degraded",
            Self::Offline => "offline",
            Self::Removed => "removed",
        }
    }
}

/// What the platform knows of a workspace, beside its latest beat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workspace {
    pub id: WorkspaceId,
    pub tenant: TenantId,
    pub status: WorkspaceStatus,
    pub name: String,
    #[serde(default)]
    pub role: Option<String>,
    #[serde(default)]
    pub tier: i64,
    #[serde(default)]
    pub runtime: Option<String>,
    /// Where it takes A2A messages.
    #[serde(default)]
    pub url: Option<String>,
    /// As it was sent, unknown keys included.
    #[serde(default)]
    pub agent_card: Option<Value>,
    #[serde(default)]
    pub parent_id: Option<WorkspaceId>,
    #[serde(default)]
    pub forwarded_to: Option<WorkspaceId>,
    /// SHA-256 of its token, once it has one.
    #[serde(default)]
    pub token_hash: Option<[u8; 32]>,
    #[serde(default)]
    pub max_concurrent_tasks: Option<u32>,
    #[serde(default)]
    pub x: f64,
    #[serde(default)]
    pub y: f64,
    #[serde(default)]
    pub collapsed: bool,
    pub created_at: Millis,
    pub updated_at: Millis,
}

impl Workspace {
    pub fn is_removed(&self) -> bool {
        self.status == WorkspaceStatus::Removed
    }

    /// Delegations that it takes at the same time.
    pub fn at_once(&self) -> u32 {
        self.max_concurrent_tasks.unwrap_or(TASKS_AT_ONCE)
    }
}

/// The latest beat of a workspace; there is no history.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pulse {
    pub error_rate: f64,
    pub sample_error: String,
    pub active_tasks: u32,
    pub uptime_seconds: i64,
    pub current_task: String,
    /// It beats, and its agent hangs.
    pub wedged: bool,
    /// What the beats so far make of it; see [`stays_degraded`].
    pub degraded: bool,
}

/// The hysteresis: sick at [`DEGRADED_AT`], well again below [`RECOVERED_BELOW`], and no change in between.
pub fn stays_degraded(was: bool, pulse: &Pulse) -> bool {
    pulse.wedged || pulse.error_rate >= if was { RECOVERED_BELOW } else { DEGRADED_AT }
}

/// What a beat makes of the status: where to, and the name of the event. Nothing if it stays.
pub fn transition(status: WorkspaceStatus, pulse: &Pulse) -> Option<(WorkspaceStatus, &'static str)> {
    use WorkspaceStatus::{Degraded, Offline, Online, Provisioning, Removed};
    let sick = stays_degraded(false, pulse);
    match status {
        Online | Offline | Provisioning if sick => Some((Degraded, "WORKSPACE_DEGRADED")),
        Degraded if !stays_degraded(true, pulse) => Some((Online, "WORKSPACE_ONLINE")),
        Offline | Provisioning => Some((Online, "WORKSPACE_ONLINE")),
        Online | Degraded | Removed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use WorkspaceStatus::{Degraded, Offline, Online, Removed};

    #[test]
    fn a_status_has_hysteresis() {
        for (status, error_rate, after) in [
            (Online, 0.49, None),
            (Online, 0.5, Some(Degraded)),
            (Degraded, 0.5, None),
            (Degraded, 0.1, None),
            (Degraded, 0.09, Some(Online)),
            (Offline, 0.0, Some(Online)),
            (Offline, 0.9, Some(Degraded)),
            (Removed, 0.0, None),
        ] {
            let pulse = Pulse { error_rate, ..Pulse::default() };
            let told = transition(status, &pulse).map(|(status, _)| status);
            assert_eq!(told, after, "{status:?} at {error_rate}");
        }
        let wedged = Pulse { wedged: true, ..Pulse::default() };
        assert_eq!(transition(Online, &wedged), Some((Degraded, "WORKSPACE_DEGRADED")));
        assert_eq!(transition(Degraded, &wedged), None, "it hangs still");
    }
}
