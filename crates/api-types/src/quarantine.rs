//! Results that output policy holds back, as people look at them.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct HeldQuery {
    pub limit: Option<String>,
    pub cursor: Option<String>,
}

/// What output policy said of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OutputSafety {
    /// ALLOW, QUARANTINE, DENY or REDACT.
    pub decision: String,
    pub reason: String,
    pub rule_id: String,
    pub policy_snapshot: String,
    /// `sync`: by what is known of it. `async`: by its content.
    pub phase: String,
    pub findings: Vec<OutputFinding>,
    /// Microseconds.
    pub checked_at: i64,
    pub checked_at_text: String,
    /// A redacted copy has taken the result's place.
    pub redacted: bool,
    /// `released` or `discarded`, once somebody has decided.
    pub resolution: Option<String>,
    pub resolved_by: Option<String>,
    pub resolved_at: Option<i64>,
    pub resolved_note: Option<String>,
}

/// Something that was found. The preview never shows the thing itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OutputFinding {
    pub scanner: String,
    pub name: String,
    pub severity: String,
    /// From 0 to 1.
    pub confidence: f64,
    /// Where: a JSON pointer, or nothing for plain text.
    pub at: String,
    pub start: usize,
    pub end: usize,
    pub preview: String,
}

/// A result in quarantine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Held {
    pub job_id: String,
    pub tenant: String,
    pub topic: String,
    pub worker_id: String,
    /// Microseconds.
    pub held_at: i64,
    pub reason: String,
    pub output_safety: Option<OutputSafety>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeldPage {
    pub items: Vec<Held>,
    pub next_cursor: Option<String>,
}

/// Why, for whoever asks later.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Decided {
    pub note: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ResolvedReply {
    pub job_id: String,
    pub state: String,
    /// `released` or `discarded`.
    pub resolution: String,
}
