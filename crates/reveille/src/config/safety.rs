//! The safety kernel that is asked instead of the policy file.

use super::read;
use anyhow::{Context, Result};
use reveille_core::policy::FailMode;
use reveille_kernel::{KernelKey, KernelTarget};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct SafetySection {
    /// `host:port` or a URL; without it the policy file decides.
    pub address: Option<String>,
    /// The authority that vouches for it, a PEM file; the system's unless told.
    pub tls_ca: Option<PathBuf>,
    pub tls_required: bool,
    /// Whether plain text may leave this machine.
    pub insecure: bool,
    /// A file whose first line is the key that the kernel asks for, if it asks for one.
    pub key_file: Option<PathBuf>,
    /// What becomes of jobs while it cannot be asked: `closed` lets them wait, `open` lets them run. Left
    /// out, it is as the policy file says under `input_policy`.
    pub fail_mode: Option<FailMode>,
}

impl SafetySection {
    /// Where to ask; nothing if the policy file decides.
    pub fn target(&self) -> Result<Option<KernelTarget>> {
        let Some(address) = self.address.clone().filter(|address| !address.is_empty()) else {
            let (address, fail_mode) = (self.address.clone(), self.fail_mode);
            let is_plain = *self == Self { address, fail_mode, ..Self::default() };
            anyhow::ensure!(is_plain, "safety.address is missing: how to reach a kernel is set without it");
            return Ok(None);
        };
        let key = self.key_file.as_deref().map(read).transpose().context("safety.key_file")?;
        let key = key.map(|text| text.lines().next().unwrap_or("").trim().to_owned());
        anyhow::ensure!(key.as_deref() != Some(""), "safety.key_file: its first line is empty");
        let key = key.map(KernelKey::new);
        let (tls_ca, tls_required, insecure) = (self.tls_ca.clone(), self.tls_required, self.insecure);
        Ok(Some(KernelTarget { address, tls_ca, tls_required, insecure, key }))
    }
}
