//! A workspace registers, and what it is told.

use crate::molecule::posted::workspace_id;
use crate::molecule::refusal::MoleculeRefusal;
use reveille_engine::WorkspaceRegistration;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
pub struct Register {
    /// A UUID.
    id: String,
    /// Where messages to it go.
    url: String,
    /// Kept and shown as it was sent.
    #[schema(value_type = Object)]
    agent_card: Value,
}

impl Register {
    pub fn understood(self) -> Result<WorkspaceRegistration, MoleculeRefusal> {
        let id = workspace_id(&self.id)?;
        Ok(WorkspaceRegistration { id, url: self.url, agent_card: card(self.agent_card)? })
    }
}

#[derive(Deserialize, ToSchema)]
pub struct NewCard {
    pub workspace_id: String,
    #[schema(value_type = Object)]
    agent_card: Value,
}

impl NewCard {
    pub fn card(self) -> Result<Value, MoleculeRefusal> {
        card(self.agent_card)
    }
}

/// A card is kept and shown as it was sent, whatever keys it has.
fn card(card: Value) -> Result<Value, MoleculeRefusal> {
    if card.is_object() {
        return Ok(card);
    }
    Err(MoleculeRefusal::bad("invalid request body")
        .with("field", "agent_card")
        .with("detail", "must be an object"))
}

#[derive(Serialize, ToSchema)]
pub struct Registered {
    pub status: &'static str,
    /// Shown when it registers for the first time, and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_token: Option<String>,
}
