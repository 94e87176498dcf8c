//! The audit trail over HTTP, in the reference's shapes.

use super::text::{cursor, limit, moment};
use crate::ApiError;
use reveille_core::audit::{Entry, EventType, Fault, Gap, Severity, Status, Verification};
use reveille_core::id::JobId;
use reveille_core::policy::Decision;
use reveille_core::time::Millis;
use reveille_store::AuditQuery;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TrailQuery {
    /// Whose chain; operators see all of them unless told.
    pub tenant: Option<String>,
    /// 50 unless told, at most 500.
    limit: Option<String>,
    /// The `next_cursor` of the page before, which had the same filters.
    cursor: Option<String>,
    /// Such as `safety.decision`.
    event_type: Option<String>,
    /// INFO, LOW, MEDIUM, HIGH or CRITICAL.
    severity: Option<String>,
    job_id: Option<String>,
    /// A time such as 2026-11-15T12:00:00Z, or how long ago, such as 24h; it counts as inside.
    from: Option<String>,
    /// The same.
    to: Option<String>,
}

impl TrailQuery {
    /// What is asked for, without whose it is.
    pub fn understood(&self, now: Millis) -> Result<AuditQuery, ApiError> {
        Ok(AuditQuery {
            event_type: word("event_type", self.event_type.as_deref(), EventType::parse)?,
            severity: word("severity", self.severity.as_deref(), Severity::parse)?,
            job_id: given(self.job_id.as_deref()).map(JobId::parse).transpose()?,
            from: given(self.from.as_deref()).map(|text| moment("from", text, now)).transpose()?,
            to: given(self.to.as_deref()).map(|text| moment("to", text, now)).transpose()?,
            cursor: cursor(self.cursor.as_deref())?,
            limit: limit(self.limit.as_deref())?,
            ..AuditQuery::default()
        })
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct VerifyQuery {
    /// Whose chain; the caller's unless told.
    pub tenant: Option<String>,
}

/// What a query says of a field; an empty one says nothing.
pub fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

fn word<T>(
    field: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, ApiError> {
    let Some(text) = given(text) else { return Ok(None) };
    let unknown = || ApiError::field(field, format!("{text:?} is not known"));
    parse(text).map(Some).ok_or_else(unknown)
}

#[derive(Serialize, ToSchema)]
pub struct TrailPage {
    pub items: Vec<AuditEvent>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
    pub returned: usize,
}

/// One entry of a tenant's chain.
#[derive(Serialize, ToSchema)]
pub struct AuditEvent {
    /// The tenant and its number for the entry.
    pub id: String,
    /// Every tenant's entries are numbered from one.
    pub seq: u64,
    pub timestamp: String,
    pub event_type: &'static str,
    pub severity: &'static str,
    pub tenant_id: String,
    /// Nothing if it belongs to no job.
    pub job_id: Option<String>,
    pub action: String,
    pub decision: Option<&'static str>,
    pub matched_rule: String,
    pub reason: String,
    pub policy_version: String,
    /// Who did it, or on whose behalf.
    pub identity: String,
    pub extra: BTreeMap<String, String>,
    pub event_hash: String,
    pub prev_hash: String,
}

impl AuditEvent {
    pub fn of(entry: Entry) -> Self {
        let Entry { seq, draft, prev_hash, event_hash } = entry;
        Self {
            id: format!("{}:{seq}", draft.tenant),
            seq,
            timestamp: draft.at.rfc3339(),
            event_type: draft.event_type.as_str(),
            severity: draft.severity.as_str(),
            tenant_id: draft.tenant.to_string(),
            job_id: draft.job_id.map(|id| id.to_string()),
            action: draft.action,
            decision: draft.decision.map(Decision::as_str),
            matched_rule: draft.matched_rule,
            reason: draft.reason,
            policy_version: draft.policy_version,
            identity: draft.identity,
            extra: draft.extra,
            event_hash: event_hash.to_string(),
            prev_hash: prev_hash.to_string(),
        }
    }
}

/// Whether a chain is what it was.
#[derive(Serialize, ToSchema)]
pub struct Verified {
    pub tenant_id: String,
    /// `ok`; `partial` if what is there is sound and older entries were pruned, or newer ones not looked
    /// at; `broken`.
    pub status: &'static str,
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

#[derive(Serialize, ToSchema)]
pub struct ChainGap {
    pub at_seq: u64,
    /// `missing`, `altered` or `reordered`.
    #[serde(rename = "type")]
    pub fault: &'static str,
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

    /// What was found when at most so many entries were to be looked at.
    pub fn of(tenant_id: String, found: &Verification, entries_max: u64) -> Self {
        let gap = |gap: &Gap| ChainGap { at_seq: gap.at_seq, fault: Fault::as_str(gap.fault) };
        Self {
            tenant_id,
            status: Status::as_str(found.status),
            complete: found.total_events < entries_max,
            total_events: found.total_events,
            verified_events: found.verified_events,
            gaps: found.gaps.iter().map(gap).collect(),
            retention_boundary_seq: found.retention_boundary_seq,
            first_seq: found.first_seq,
            last_seq: found.last_seq,
        }
    }
}
