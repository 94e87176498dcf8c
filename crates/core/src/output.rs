//! What output policy said of a result, and what people did about it.

use crate::id::KeyId;
use crate::scan::Finding;
use crate::time::Millis;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OutputDecision {
    Allow,
    Quarantine,
    /// The same as a quarantine.
    Deny,
    /// A copy without what was found takes the result's place.
    Redact,
}

impl OutputDecision {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "ALLOW",
            Self::Quarantine => "QUARANTINE",
            Self::Deny => "DENY",
            Self::Redact => "REDACT",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "allow" | "permit" => Self::Allow,
            "quarantine" => Self::Quarantine,
            "deny" | "block" => Self::Deny,
            "redact" => Self::Redact,
            _ => return None,
        })
    }
}

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// What is known of the result without reading it, before the job ends.
    Sync,
    /// The content, afterwards.
    Async,
}

/// What was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputVerdict {
    pub decision: OutputDecision,
    pub stage: Stage,
    pub rule_id: String,
    pub reason: String,
    /// Names the policy that spoke.
    pub snapshot: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// What is kept with the job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputCheck {
    pub verdict: OutputVerdict,
    pub checked_at: Millis,
    /// Where the result is that nobody may read: the one that was redacted, or that is in quarantine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub original_ptr: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Resolved>,
}

/// Somebody decided about a result in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    pub by: String,
    /// The credential it was decided with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyId>,
    pub how: Resolution,
    pub at: Millis,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resolution {
    Released,
    Discarded,
}
