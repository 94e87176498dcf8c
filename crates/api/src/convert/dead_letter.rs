//! Jobs that ended badly.

use super::text::{cursor, limit, parse_rfc3339};
use crate::ApiError;
use reveille_api_types::dead_letter::{
    DeadLetter, DeadLetterStats, LetterQuery, NotRetried, RetriedJob, RetriedMany, RetryFilter,
};
use reveille_core::id::Topic;
use reveille_core::job::{self, Job};
use reveille_core::reason::Reason;
use reveille_engine::Retried;
use reveille_store::{BlobKey, DeadLetterCounts, DeadLetterQuery, PAGE_LEN_MAX};

/// Retries of one call, unless told.
const RETRIES: usize = 100;

pub fn letter_query(query: &LetterQuery) -> Result<DeadLetterQuery, ApiError> {
    Ok(DeadLetterQuery {
        reason: reason(query.reason_code.as_deref())?,
        topic: topic(query.topic.as_deref())?,
        cursor: cursor(query.cursor.as_deref())?,
        limit: limit(query.limit.as_deref())?,
        ..DeadLetterQuery::default()
    })
}

fn reason(code: Option<&str>) -> Result<Option<Reason>, ApiError> {
    let Some(code) = code.filter(|code| !code.is_empty()) else { return Ok(None) };
    let unknown = || ApiError::field("reason_code", format!("{code:?} is not a reason code"));
    Reason::parse(code).map(Some).ok_or_else(unknown)
}

fn topic(text: Option<&str>) -> Result<Option<Topic>, ApiError> {
    Ok(text.filter(|text| !text.is_empty()).map(Topic::parse).transpose()?)
}

pub fn dead_letter(letter: &job::DeadLetter) -> DeadLetter {
    DeadLetter {
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

pub fn dead_letter_stats(counts: &DeadLetterCounts) -> DeadLetterStats {
    let name = |reason: Option<Reason>| reason.map_or("none", Reason::code).to_owned();
    let by_reason = counts.iter().map(|(reason, count)| (name(*reason), *count)).collect();
    DeadLetterStats { total: counts.values().sum(), by_reason }
}

pub fn retry_query(filter: &RetryFilter) -> Result<DeadLetterQuery, ApiError> {
    Ok(DeadLetterQuery {
        reason: reason(filter.reason_code.as_deref())?,
        topic: topic(filter.topic.as_deref())?,
        before: filter.before.as_deref().map(|text| parse_rfc3339("before", text)).transpose()?,
        limit: filter.limit.unwrap_or(RETRIES).min(PAGE_LEN_MAX),
        ..DeadLetterQuery::default()
    })
}

pub fn retried_job(job: &Job) -> RetriedJob {
    let own = BlobKey::from_pointer(&job.request.context_ptr).ok().and_then(|key| key.job_of_context());
    let input = if own.as_ref() == Some(job.id()) { "copied" } else { "elsewhere" };
    RetriedJob { job_id: job.id().to_string(), state: job.state().to_string(), input: input.to_owned() }
}

pub fn retried_many(done: &Retried) -> RetriedMany {
    let failed = done.failed.iter();
    RetriedMany {
        retried: done.retried.iter().map(|job| retried_job(job)).collect(),
        failed: failed
            .map(|(id, error)| NotRetried { job_id: id.to_string(), error: error.to_string() })
            .collect(),
    }
}
