//! The heartbeat as it is sent: the contract's eleven keys, always, and the four newer ones when known.

use serde::Serialize;

/// What stays the same from beat to beat.
#[derive(Debug, Clone)]
pub struct AgentProfile {
    pub agent_id: String,
    pub agent_name: String,
    pub dispatch_name: Option<String>,
    pub version: Option<String>,
    pub project: String,
    pub tenant_id: Option<String>,
    pub region: Option<String>,
    pub host: Option<String>,
    /// Seconds since the epoch.
    pub started_at: f64,
}

/// What this beat tells that the last one did not know.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentReading {
    pub active_sessions: u32,
    pub memory_rss_bytes: Option<u64>,
    pub memory_total_bytes: Option<u64>,
    pub cpu_pct: Option<f32>,
    /// Seconds since the epoch.
    pub ts: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedStatus {
    Idle,
    Busy,
}

impl ReportedStatus {
    pub fn of(active_sessions: u32) -> Self {
        if active_sessions > 0 { Self::Busy } else { Self::Idle }
    }
}

#[derive(Debug, Serialize)]
pub struct BeatBody<'a> {
    agent_id: &'a str,
    agent_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dispatch_name: Option<&'a str>,
    status: ReportedStatus,
    active_sessions: u32,
    version: Option<&'a str>,
    project: &'a str,
    tenant_id: Option<&'a str>,
    region: Option<&'a str>,
    host: Option<&'a str>,
    started_at: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_rss_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_total_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_pct: Option<f32>,
    ts: f64,
}

impl<'a> BeatBody<'a> {
    pub fn new(profile: &'a AgentProfile, reading: AgentReading) -> Self {
        Self {
            agent_id: &profile.agent_id,
            agent_name: &profile.agent_name,
            dispatch_name: profile.dispatch_name.as_deref(),
            status: ReportedStatus::of(reading.active_sessions),
            active_sessions: reading.active_sessions,
            version: profile.version.as_deref(),
            project: &profile.project,
            tenant_id: profile.tenant_id.as_deref(),
            region: profile.region.as_deref(),
            host: profile.host.as_deref(),
            started_at: profile.started_at,
            memory_rss_bytes: reading.memory_rss_bytes,
            memory_total_bytes: reading.memory_total_bytes,
            cpu_pct: reading.cpu_pct,
            ts: reading.ts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> AgentProfile {
        AgentProfile {
            agent_id: "worker-host-1".into(),
            agent_name: "myvoiceagents".into(),
            dispatch_name: None,
            version: Some("0.13.0".into()),
            project: "mahimai-realty".into(),
            tenant_id: None,
            region: Some("iad".into()),
            host: Some("worker-host-1".into()),
            started_at: 1_783_200_000.0,
        }
    }

    #[test]
    fn a_beat_is_the_contracts_sample_to_the_letter() {
        let reading = AgentReading { ts: 1_783_200_015.0, ..AgentReading::default() };
        assert_eq!(
            serde_json::to_string_pretty(&BeatBody::new(&profile(), reading)).unwrap(),
            r#"{
  "agent_id": "worker-host-1",
  "agent_name": "myvoiceagents",
  "status": "idle",
  "active_sessions": 0,
  "version": "0.13.0",
  "project": "mahimai-realty",
  "tenant_id": null,
  "region": "iad",
  "host": "worker-host-1",
  "started_at": 1783200000.0,
  "ts": 1783200015.0
}"#
        );
    }

    #[test]
    fn newer_keys_are_sent_when_known() {
        let profile = AgentProfile { dispatch_name: Some("front-desk".into()), ..profile() };
        let reading = AgentReading {
            active_sessions: 3,
            memory_rss_bytes: Some(1 << 20),
            memory_total_bytes: Some(1 << 30),
            cpu_pct: Some(12.5),
            ts: 0.0,
        };
        let beat = serde_json::to_value(BeatBody::new(&profile, reading)).unwrap();
        assert_eq!(beat.as_object().unwrap().len(), 15);
        assert_eq!((&beat["status"], &beat["active_sessions"]), (&"busy".into(), &3.into()));
        assert_eq!((&beat["dispatch_name"], &beat["cpu_pct"]), (&"front-desk".into(), &12.5.into()));
        assert_eq!(beat["memory_rss_bytes"], 1_048_576);
    }
}
