//! Dead letters over HTTP, in the reference's shapes.

use super::text::{cursor, limit, parse_rfc3339};
use crate::ApiError;
use reveille_core::id::Topic;
use reveille_core::job::{self, Job};
use reveille_core::reason::Reason;
use reveille_engine::Retried;
use reveille_store::{DeadLetterCounts, DeadLetterQuery, PAGE_LEN_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Retries of one call, unless told.
const RETRIES: usize = 100;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LetterQuery {
    /// 50 unless told, at most 500.
    limit: Option<String>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// Such as `no_workers` or `timeout`.
    reason_code: Option<String>,
    topic: Option<String>,
}

impl LetterQuery {
    pub fn understood(&self) -> Result<DeadLetterQuery, ApiError> {
        Ok(DeadLetterQuery {
            reason: reason(self.reason_code.as_deref())?,
            topic: topic(self.topic.as_deref())?,
            cursor: cursor(self.cursor.as_deref())?,
            limit: limit(self.limit.as_deref())?,
            ..DeadLetterQuery::default()
        })
    }
}

fn reason(code: Option<&str>) -> Result<Option<Reason>, ApiError> {
    let Some(code) = code.filter(|code| !code.is_empty()) else { return Ok(None) };
    let unknown = || ApiError::field("reason_code", format!("{code:?} is not a reason code"));
    Reason::parse(code).map(Some).ok_or_else(unknown)
}

fn topic(text: Option<&str>) -> Result<Option<Topic>, ApiError> {
    Ok(text.filter(|text| !text.is_empty()).map(Topic::parse).transpose()?)
}

#[derive(Serialize, ToSchema)]
pub struct DeadLetterList {
    pub items: Vec<DeadLetter>,
}

#[derive(Serialize, ToSchema)]
pub struct DeadLetterPage {
    pub items: Vec<DeadLetter>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
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

impl DeadLetter {
    pub fn of(letter: &job::DeadLetter) -> Self {
        Self {
            job_id: letter.job_id.to_string(),
            topic: letter.topic.to_string(),
            tenant: letter.tenant.to_string(),
            status: letter.status.to_string(),
            reason: letter.reason.clone(),
            reason_code: letter.reason_code.map_or("", Reason::code).to_owned(),
            last_state: letter.last_state.to_string(),
            attempts: letter.attempts,
            created_at: letter.created_at.rfc3339(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct DeadLetterStats {
    pub total: u64,
    /// How many of each reason code; `none` for those without.
    pub by_reason: BTreeMap<String, u64>,
}

impl DeadLetterStats {
    pub fn of(counts: &DeadLetterCounts) -> Self {
        let name = |reason: Option<Reason>| reason.map_or("none", Reason::code).to_owned();
        let by_reason = counts.iter().map(|(reason, count)| (name(*reason), *count)).collect();
        Self { total: counts.values().sum(), by_reason }
    }
}

/// Which dead letters to retry. A field that is not known is refused: a filter that is misspelt would
/// retry everything.
#[derive(Deserialize, ToSchema, Default)]
#[serde(default, deny_unknown_fields)]
pub struct RetryFilter {
    pub reason_code: Option<String>,
    pub topic: Option<String>,
    /// Only those that died before this moment, such as 2026-11-15T12:00:00Z.
    pub before: Option<String>,
    /// 100 unless told, at most 500.
    pub limit: Option<usize>,
}

impl RetryFilter {
    pub fn understood(&self) -> Result<DeadLetterQuery, ApiError> {
        Ok(DeadLetterQuery {
            reason: reason(self.reason_code.as_deref())?,
            topic: topic(self.topic.as_deref())?,
            before: self.before.as_deref().map(|text| parse_rfc3339("before", text)).transpose()?,
            limit: self.limit.unwrap_or(RETRIES).min(PAGE_LEN_MAX),
            ..DeadLetterQuery::default()
        })
    }
}

/// The job that was made of a dead letter.
#[derive(Serialize, ToSchema)]
pub struct RetriedJob {
    pub job_id: String,
    /// Where it stands: policy may have denied it, or ask a person first.
    pub state: String,
}

impl RetriedJob {
    pub fn of(job: &Job) -> Self {
        Self { job_id: job.id().to_string(), state: job.state().to_string() }
    }
}

#[derive(Serialize, ToSchema)]
pub struct RetriedMany {
    pub retried: Vec<RetriedJob>,
    pub failed: Vec<NotRetried>,
}

#[derive(Serialize, ToSchema)]
pub struct NotRetried {
    pub job_id: String,
    pub error: String,
}

impl RetriedMany {
    pub fn of(done: &Retried) -> Self {
        let failed = done.failed.iter();
        Self {
            retried: done.retried.iter().map(|job| RetriedJob::of(job)).collect(),
            failed: failed
                .map(|(id, error)| NotRetried { job_id: id.to_string(), error: error.to_string() })
                .collect(),
        }
    }
}
