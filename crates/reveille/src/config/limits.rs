//! What one tenant, or one key, may ask of the server.

use reveille_core::rate::Rate;
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// Live jobs of one tenant at which its new ones are turned away.
    pub queued_per_tenant: usize,
    /// Runs of workflows that one tenant may have under way.
    pub runs_per_tenant: u32,
    /// Workflows that one tenant may have.
    pub workflows_per_tenant: u32,
    /// Calls of one key a second over HTTP; 0 means no limit.
    pub requests_per_second: u32,
    /// Calls of one key at once; 0 means twice as many as in a second.
    pub requests_burst: u32,
}

impl Default for LimitsSection {
    fn default() -> Self {
        Self {
            queued_per_tenant: 100_000,
            runs_per_tenant: 1000,
            workflows_per_tenant: 1000,
            requests_per_second: 0,
            requests_burst: 0,
        }
    }
}

impl LimitsSection {
    /// Nothing means as often as they like.
    pub fn calls(&self) -> Option<Rate> {
        let burst = match self.requests_burst {
            0 => self.requests_per_second.saturating_mul(2),
            burst => burst,
        };
        (self.requests_per_second > 0).then(|| Rate::new(self.requests_per_second, burst))
    }
}
