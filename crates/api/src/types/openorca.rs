//! What the `OpenOrca` console understands: one snapshot, and frames that change it.
//!
//! The shapes are the console's types, which are wider than what VoiceGateway fills in. Frames are told
//! apart by `type` in the data, because the console listens with `onmessage` and would not see a named
//! event.

mod ids;
mod node;
mod task;

pub use ids::NodeIds;
pub use node::{FleetNode, KnownMember, Machine};
pub use task::{ConsoleTask, Intervention, holder_contract, resolution};

use reveille_core::time::Millis;
use reveille_engine::Count;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The console shows what it gets from a runtime of this name.
pub const RUNTIME: &str = "voicegateway";

/// What the console asks for before anything else.
#[derive(Serialize, ToSchema)]
pub struct RuntimeInfo {
    pub runtime: &'static str,
    pub language: &'static str,
    pub version: &'static str,
    pub supports: Supports,
}

#[derive(Serialize, ToSchema)]
pub struct Supports {
    pub sse: bool,
    pub interventions: bool,
    pub snapshots: bool,
}

/// A person's decision.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes; what is sent is read leniently")]
pub struct ResolveIntervention {
    #[schema(rename = "interventionId")]
    intervention_id: String,
    /// approve, deny or later; later unless told.
    action: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct ResolvedIntervention {
    /// `resolved` or `later`.
    pub status: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Snapshot)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleSnapshot {
    /// At most 5,000; of a larger fleet those heard last.
    pub agents: Vec<FleetNode>,
    /// The newest 100.
    pub tasks: Vec<ConsoleTask>,
    /// Empty.
    #[schema(value_type = Vec<Value>)]
    pub action_log: [Value; 0],
    pub interventions: Vec<Intervention>,
    /// Empty.
    #[schema(value_type = Vec<Value>)]
    pub swarms: [Value; 0],
    pub machines: Vec<Machine>,
    pub fleet_health: FleetHealth,
    pub meta: SnapshotMeta,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotMeta {
    pub runtime: &'static str,
    pub generated_at: String,
    pub connection_status: &'static str,
    pub runtime_version: &'static str,
    /// There are more members than are shown; the counts are of all.
    pub truncated: bool,
}

impl SnapshotMeta {
    pub fn at(now: Millis, truncated: bool) -> Self {
        Self {
            runtime: RUNTIME,
            generated_at: now.rfc3339(),
            connection_status: "connected",
            runtime_version: env!("CARGO_PKG_VERSION"),
            truncated,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetHealth {
    pub total_agents: u64,
    /// At work.
    pub active_agents: u64,
    pub offline_agents: u64,
    pub interventions_required: usize,
    /// Sessions, jobs and tasks in the hands of those who are there.
    pub tasks_in_progress: u64,
    /// Since midnight, UTC.
    pub tasks_completed_today: u64,
    pub swarms_active: u64,
    /// healthy, degraded or critical.
    pub overall_health: &'static str,
}

impl FleetHealth {
    pub fn of(count: Count, waiting: usize, completed_today: u64) -> Self {
        Self {
            total_agents: count.total,
            active_agents: count.busy,
            offline_agents: count.offline,
            interventions_required: waiting,
            tasks_in_progress: count.in_hand,
            tasks_completed_today: completed_today,
            swarms_active: 0,
            overall_health: overall(count, waiting),
        }
    }
}

/// Critical when nobody is there; degraded when a quarter is away, somebody is not well, or a person is
/// waited for.
fn overall(count: Count, waiting: usize) -> &'static str {
    if count.total > 0 && count.offline == count.total {
        "critical"
    } else if count.offline * 4 >= count.total.max(1) || count.degraded > 0 || waiting > 0 {
        "degraded"
    } else {
        "healthy"
    }
}

/// What is pushed.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type")]
pub enum ConsoleFrame<'a> {
    #[serde(rename = "snapshot.replace")]
    SnapshotReplace { snapshot: &'a ConsoleSnapshot },
    #[serde(rename = "agent.updated")]
    AgentUpdated { agent: &'a FleetNode },
    #[serde(rename = "task.created")]
    TaskCreated { task: &'a ConsoleTask },
    #[serde(rename = "task.updated")]
    TaskUpdated { task: &'a ConsoleTask },
    #[serde(rename = "intervention.created")]
    InterventionCreated { intervention: &'a Intervention },
    #[serde(rename = "intervention.resolved", rename_all = "camelCase")]
    InterventionResolved { intervention_id: &'a str, resolution: &'static str },
    #[serde(rename = "fleet.updated", rename_all = "camelCase")]
    FleetUpdated { fleet_health: &'a FleetHealth },
    #[serde(rename = "runtime.status")]
    RuntimeStatus {
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'static str>,
    },
}

impl ConsoleFrame<'_> {
    /// One line of data, and an empty one.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: ");
        // Writing to memory fails only if the data cannot be JSON, which it always can.
        let _ = serde_json::to_writer(&mut *out, self);
        out.extend_from_slice(b"\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_follows_from_the_counts() {
        let count = |total, offline| Count { total, offline, ..Count::default() };
        for (count, waiting, expected) in [
            (count(0, 0), 0, "healthy"),
            (count(10, 2), 0, "healthy"),
            (count(8, 2), 0, "degraded"),
            (count(10, 0), 1, "degraded"),
            (Count { degraded: 1, ..count(10, 0) }, 0, "degraded"),
            (count(10, 10), 0, "critical"),
        ] {
            assert_eq!(overall(count, waiting), expected, "{count:?}");
        }
    }
}
