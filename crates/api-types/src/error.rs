//! What a caller is told when something is wrong.

use serde::{Deserialize, Serialize};

/// What a caller is told when something is wrong. Some codes bring more fields, such as `job_id` or `rule_id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Error {
    /// For a person.
    pub error: String,
    /// Stays the same between versions.
    pub code: String,
    /// The status of this answer.
    pub status: u16,
    /// What in the request it is about, if it is about one thing.
    pub field: Option<String>,
    /// Seconds after which to try again.
    pub retry_after: Option<u64>,
}
