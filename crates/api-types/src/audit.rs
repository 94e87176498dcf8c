//! The audit trail over HTTP, in the reference's shapes.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct TrailQuery {
    /// Whose chain; operators see all of them unless told.
    pub tenant: Option<String>,
    /// 50 unless told, at most 500.
    pub limit: Option<String>,
    /// The `next_cursor` of the page before, which had the same filters.
    pub cursor: Option<String>,
    /// Such as `safety.decision`.
    pub event_type: Option<String>,
    /// INFO, LOW, MEDIUM, HIGH or CRITICAL.
    pub severity: Option<String>,
    pub job_id: Option<String>,
    /// A time such as 2026-11-15T12:00:00Z, or how long ago, such as 24h; it counts as inside.
    pub from: Option<String>,
    /// The same.
    pub to: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct VerifyQuery {
    /// Whose chain; the caller's unless told.
    pub tenant: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct CheckpointQuery {
    /// Whose chain; the caller's unless told.
    pub tenant: Option<String>,
    /// Every chain there is, page by page. For operators.
    pub all: Option<bool>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// 50 unless told, at most 500.
    pub limit: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct LinkQuery {
    /// Whose chain; the caller's unless told.
    pub tenant: Option<String>,
    /// The entry's number.
    pub seq: u64,
}

/// What chains were at this moment, signed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CheckpointPage {
    pub signing_key: SigningKey,
    pub items: Vec<CheckpointLine>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
}

/// The public half of the key that checkpoints are signed with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SigningKey {
    pub key_id: String,
    /// Ed25519, as PEM.
    pub public_key: String,
}

/// One chain's checkpoint, as it stands in a file of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckpointLine {
    /// The text that is signed: a JSON object with `format`, `tenant`, `first_seq`, `last_seq`, `last_hash`, `last_at`,
    /// `at` and `key_id`.
    pub payload: String,
    /// Ed25519 over the bytes of `payload`, in base64.
    pub signature: String,
}

/// What a chain has at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChainLink {
    pub tenant_id: String,
    pub seq: u64,
    /// `kept`, `pruned`, `altered` or `missing`.
    pub state: String,
    /// Of an entry that is kept, and of the last that was pruned.
    pub event_hash: Option<String>,
    /// The oldest entry that must still be there.
    pub retention_boundary_seq: u64,
    pub last_seq: u64,
    /// What was recorded after this is not pruned yet.
    pub kept_since: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TrailPage {
    pub items: Vec<AuditEvent>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
    pub returned: usize,
}

/// One entry of a tenant's chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditEvent {
    /// The tenant and its number for the entry.
    pub id: String,
    /// Every tenant's entries are numbered from one.
    pub seq: u64,
    pub timestamp: String,
    pub event_type: String,
    pub severity: String,
    pub tenant_id: String,
    /// Nothing if it belongs to no job.
    pub job_id: Option<String>,
    pub action: String,
    pub decision: Option<String>,
    pub matched_rule: String,
    pub reason: String,
    pub policy_version: String,
    /// Who did it, or on whose behalf.
    pub identity: String,
    pub extra: BTreeMap<String, String>,
    pub event_hash: String,
    pub prev_hash: String,
}

/// Whether a chain is what it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Verified {
    pub tenant_id: String,
    /// `ok`; `partial` if what is there is sound and older entries were pruned, or newer ones not looked
    /// at; `broken`.
    pub status: String,
    /// Not if the chain is longer than one check looks at.
    pub complete: bool,
    pub total_events: u64,
    pub verified_events: u64,
    pub gaps: Vec<ChainGap>,
    /// The oldest entry that must still be there.
    pub retention_boundary_seq: u64,
    pub first_seq: Option<u64>,
    pub last_seq: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChainGap {
    pub at_seq: u64,
    /// `missing`, `altered` or `reordered`.
    #[serde(rename = "type")]
    pub fault: String,
}

impl Verified {
    /// The same for a person.
    pub fn words(&self) -> String {
        let seen = format!("{} of {} entries checked", self.verified_events, self.total_events);
        match self.gaps.first() {
            Some(gap) => format!("{seen}; entry {} is {}", gap.at_seq, gap.fault),
            None if self.status == "partial" => {
                format!("{seen}; older ones were pruned, or newer ones not looked at")
            }
            None => seen,
        }
    }
}
