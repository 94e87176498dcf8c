//! Delegations as workspaces give, list and end them.

use crate::molecule::refusal::MoleculeRefusal;
use reveille_core::presence::delegation::{self, DelegationStatus};
use reveille_engine::TakenDelegation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const KEY_LEN_MAX: usize = 256;
/// How much of an answer or an error that an agent reports is looked at.
const REPORTED_LEN_MAX: usize = 64 * 1024;

#[derive(Deserialize, ToSchema)]
pub struct Delegate {
    #[serde(default)]
    #[schema(required = true)]
    pub target_id: String,
    #[serde(default)]
    #[schema(required = true)]
    pub task: String,
    /// The same key gives the same delegation; at most 256 bytes.
    pub idempotency_key: Option<String>,
}

impl Delegate {
    pub fn understood(mut self) -> Result<Self, MoleculeRefusal> {
        let bad = |field: &str| MoleculeRefusal::bad("invalid delegation request").with("field", field);
        if self.target_id.is_empty() {
            return Err(bad("target_id"));
        }
        if self.task.is_empty() {
            return Err(bad("task"));
        }
        self.idempotency_key = self.idempotency_key.filter(|key| !key.is_empty());
        if self.idempotency_key.as_ref().is_some_and(|key| key.len() > KEY_LEN_MAX) {
            return Err(bad("idempotency_key"));
        }
        Ok(self)
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Delegated)]
pub struct DelegationReceipt {
    delegation_id: String,
    /// `delegated`, or for one that was there before, where it stands.
    status: &'static str,
    target_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent_hit: Option<bool>,
    /// Why policy refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl DelegationReceipt {
    pub fn of(taken: &TakenDelegation) -> Self {
        let refused = taken.job.ending().map(|ending| ending.words.clone());
        Self {
            delegation_id: taken.job.id().to_string(),
            status: if taken.is_repeat { DelegationStatus::of(&taken.job).as_str() } else { "delegated" },
            target_id: taken.target.to_string(),
            idempotent_hit: taken.is_repeat.then_some(true),
            warning: refused.filter(|_| !taken.is_repeat),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Delegation {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    delegation_id: String,
    source_id: String,
    target_id: String,
    summary: String,
    status: &'static str,
    created_at: String,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_preview: Option<String>,
}

impl Delegation {
    pub fn of(row: &delegation::Delegation) -> Self {
        Self {
            id: row.id.to_string(),
            kind: "delegation",
            delegation_id: row.id.to_string(),
            source_id: row.source.to_string(),
            target_id: row.target.to_string(),
            summary: row.summary.clone(),
            status: row.status.as_str(),
            created_at: row.created_at.rfc3339(),
            updated_at: row.updated_at.rfc3339(),
            error: row.error.clone(),
            response_preview: row.response_preview.clone(),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = DelegationStatus)]
pub struct RecordedDelegation {
    pub delegation_id: String,
    pub status: &'static str,
}

/// A delegation that an agent runs by itself.
#[derive(Deserialize, ToSchema)]
pub struct RecordDelegation {
    pub target_id: String,
    pub task: String,
    pub delegation_id: String,
}

/// How a delegation ended.
#[derive(Deserialize, ToSchema)]
pub struct DelegationOutcome {
    /// `completed` or `failed`.
    #[serde(default)]
    #[schema(required = true)]
    status: String,
    error: Option<String>,
    response_preview: Option<String>,
}

impl DelegationOutcome {
    pub fn understood(self) -> Result<Result<String, String>, MoleculeRefusal> {
        let told = |text: Option<String>| -> String {
            let mut text = text.unwrap_or_default();
            text.truncate(text.floor_char_boundary(REPORTED_LEN_MAX));
            text
        };
        match self.status.as_str() {
            "completed" => Ok(Ok(told(self.response_preview))),
            "failed" => Ok(Err(told(self.error))),
            _ => Err(MoleculeRefusal::bad("status must be 'completed' or 'failed'").with("field", "status")),
        }
    }
}
