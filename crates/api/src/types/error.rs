//! What a caller is told when something is wrong, as it is described; [`crate::ApiError`] writes it.

use utoipa::ToSchema;

/// What a caller is told when something is wrong. Some codes bring more fields, such as `job_id` or `rule_id`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes; ApiError writes it")]
pub struct Error {
    /// For a person.
    error: String,
    /// Stays the same between versions.
    code: String,
    /// The status of this answer.
    status: u16,
    /// What in the request it is about, if it is about one thing.
    field: Option<String>,
    /// Seconds after which to try again.
    retry_after: Option<u64>,
}
