//! Settings of the fleet: how long its members may be silent, what is remembered of it, and whether its workers sign.

use super::{duration, number_or_text};
use anyhow::Result;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetSection {
    /// Seconds of silence after which a member of each contract is dead.
    pub cap_ttl_seconds: u32,
    pub voicegateway_ttl_seconds: u32,
    pub molecule_ttl_seconds: u32,
    /// How often the worker snapshot is written, such as `5s` or `500ms`.
    #[serde(deserialize_with = "number_or_text")]
    pub snapshot_interval: String,
    /// Whether a start takes the fleet over from the last snapshot.
    pub warm_start: bool,
    /// Days that agents which went offline are remembered.
    pub keep_offline_days: u32,
    /// What becomes of packets of CAP workers that are not signed by them: `off`, `warn` or `require`.
    pub signatures: Signatures,
    /// A file with the P-256 key that packets to workers are signed with, as PEM.
    pub signing_key_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signatures {
    #[default]
    Off,
    Warn,
    Require,
}

impl Default for FleetSection {
    fn default() -> Self {
        Self {
            cap_ttl_seconds: 30,
            voicegateway_ttl_seconds: 45,
            molecule_ttl_seconds: 60,
            snapshot_interval: "5s".to_owned(),
            warm_start: true,
            keep_offline_days: 7,
            signatures: Signatures::Off,
            signing_key_file: None,
        }
    }
}

impl FleetSection {
    pub fn snapshot_every(&self) -> Result<Duration> {
        let every = duration(&self.snapshot_interval)?;
        anyhow::ensure!(!every.is_zero(), "0: it must be more than nothing");
        Ok(every)
    }
}
