//! Settings of the audit trail's checkpoints. How long the trail is kept is `jobs.audit_days`.

use serde::Deserialize;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSection {
    /// A file with the Ed25519 key that checkpoints are signed with, as PEM.
    pub signing_key_file: Option<PathBuf>,
}
