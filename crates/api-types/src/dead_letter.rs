//! Dead letters over HTTP, in the reference's shapes.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct LetterQuery {
    /// 50 unless told, at most 500.
    pub limit: Option<String>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Such as `no_workers` or `timeout`.
    pub reason_code: Option<String>,
    pub topic: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetterList {
    pub items: Vec<DeadLetter>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetterPage {
    pub items: Vec<DeadLetter>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetter {
    pub job_id: String,
    pub topic: String,
    pub tenant: String,
    pub status: String,
    pub reason: String,
    pub reason_code: String,
    pub last_state: String,
    pub attempts: u32,
    /// RFC 3339, as in the reference.
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetterStats {
    pub total: u64,
    /// How many of each reason code; `none` for those without.
    pub by_reason: BTreeMap<String, u64>,
}

/// Which dead letters to retry. A field that is not known is refused: a filter that is misspelt would
/// retry everything.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RetryFilter {
    pub reason_code: Option<String>,
    pub topic: Option<String>,
    /// Only those that died before this moment, such as 2026-11-15T12:00:00Z.
    pub before: Option<String>,
    /// 100 unless told, at most 500.
    pub limit: Option<usize>,
}

/// The job that was made of a dead letter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RetriedJob {
    pub job_id: String,
    /// Where it stands: policy may have denied it, or ask a person first.
    pub state: String,
    /// copied; or elsewhere: what the old job worked on is not its own, and the new one only points at it.
    #[serde(default)]
    pub input: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RetriedMany {
    pub retried: Vec<RetriedJob>,
    pub failed: Vec<NotRetried>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NotRetried {
    pub job_id: String,
    pub error: String,
}
