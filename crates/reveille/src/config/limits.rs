//! What one tenant, one key, or one address may ask of the server.

use reveille_core::rate::Rate;
use reveille_engine::LimitSettings;
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// Live jobs of one tenant at which its new ones are turned away.
    pub queued_per_tenant: usize,
    /// Agents, and CAP workers that came with a key, that one tenant may have.
    pub members_per_tenant: usize,
    /// Workspaces that one tenant may have.
    pub workspaces_per_tenant: usize,
    /// Bytes of inputs and results that one tenant may have stored.
    pub blob_bytes_per_tenant: u64,
    /// Streams and sockets of events that one tenant may have open.
    pub subscribers_per_tenant: usize,
    /// Jobs of one tenant that may wait for a person.
    pub approvals_per_tenant: u32,
    /// Runs of workflows that one tenant may have under way, those of steps too.
    pub runs_per_tenant: u32,
    /// Workflows that one tenant may have.
    pub workflows_per_tenant: u32,
    /// Calls of one key a second over HTTP; 0 means no limit.
    pub requests_per_second: u32,
    /// Calls of one key at once; 0 means twice as many as in a second.
    pub requests_burst: u32,
    /// Calls of one address a second that show no valid key; 0 means no limit.
    pub unauthenticated_per_second: u32,
}

/// So many seconds' worth of calls without a valid key may come at once: programs start, with a key that is wrong.
const UNAUTHENTICATED_BURST_SECONDS: u32 = 10;

impl Default for LimitsSection {
    fn default() -> Self {
        Self {
            queued_per_tenant: 100_000,
            members_per_tenant: 100_000,
            workspaces_per_tenant: 10_000,
            blob_bytes_per_tenant: 16 * 1024 * 1024 * 1024,
            subscribers_per_tenant: 1000,
            approvals_per_tenant: 10_000,
            runs_per_tenant: 1000,
            workflows_per_tenant: 1000,
            requests_per_second: 0,
            requests_burst: 0,
            unauthenticated_per_second: 50,
        }
    }
}

impl LimitsSection {
    /// What the engine is told.
    pub fn settings(&self) -> LimitSettings {
        LimitSettings {
            queued_per_tenant: self.queued_per_tenant,
            members_per_tenant: self.members_per_tenant,
            workspaces_per_tenant: self.workspaces_per_tenant,
            blob_bytes_per_tenant: self.blob_bytes_per_tenant,
            subscribers_per_tenant: self.subscribers_per_tenant,
            approvals_per_tenant: self.approvals_per_tenant,
            runs_per_tenant: self.runs_per_tenant,
            workflows_per_tenant: self.workflows_per_tenant,
            calls: self.calls(),
            unauthenticated: self.unauthenticated(),
        }
    }

    /// Nothing means as often as they like.
    pub fn unauthenticated(&self) -> Option<Rate> {
        let per_second = self.unauthenticated_per_second;
        let burst = per_second.saturating_mul(UNAUTHENTICATED_BURST_SECONDS);
        (per_second > 0).then(|| Rate::new(per_second, burst))
    }

    /// Nothing means as often as they like.
    pub fn calls(&self) -> Option<Rate> {
        let burst = match self.requests_burst {
            0 => self.requests_per_second.saturating_mul(2),
            burst => burst,
        };
        (self.requests_per_second > 0).then(|| Rate::new(self.requests_per_second, burst))
    }
}
