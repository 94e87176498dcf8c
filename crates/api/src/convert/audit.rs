//! The audit trail.

use super::text::{cursor, limit, moment};
use crate::ApiError;
use reveille_api_types::audit::{
    AuditEvent, ChainGap, ChainLink, CheckpointLine, SigningKey, TrailQuery, Verified,
};
use reveille_core::audit::{Entry, EventType, Gap, Severity, Verification};
use reveille_core::id::JobId;
use reveille_core::time::Millis;
use reveille_engine::{FoundLink, LinkState, SignedCheckpoint, VerifyingKey};
use reveille_store::AuditQuery;

/// What is asked for, without whose it is.
pub fn audit_query(query: &TrailQuery, now: Millis) -> Result<AuditQuery, ApiError> {
    Ok(AuditQuery {
        event_type: word("event_type", query.event_type.as_deref(), EventType::parse)?,
        severity: word("severity", query.severity.as_deref(), Severity::parse)?,
        job_id: given(query.job_id.as_deref()).map(JobId::parse).transpose()?,
        from: given(query.from.as_deref()).map(|text| moment("from", text, now)).transpose()?,
        to: given(query.to.as_deref()).map(|text| moment("to", text, now)).transpose()?,
        cursor: cursor(query.cursor.as_deref())?,
        limit: limit(query.limit.as_deref())?,
        ..AuditQuery::default()
    })
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

pub fn audit_event(entry: Entry) -> AuditEvent {
    let Entry { seq, draft, prev_hash, event_hash } = entry;
    AuditEvent {
        id: format!("{}:{seq}", draft.tenant),
        seq,
        timestamp: draft.at.rfc3339(),
        event_type: draft.event_type.as_str().to_owned(),
        severity: draft.severity.as_str().to_owned(),
        tenant_id: draft.tenant.to_string(),
        job_id: draft.job_id.map(|id| id.to_string()),
        action: draft.action,
        decision: draft.decision.map(|decision| decision.as_str().to_owned()),
        matched_rule: draft.matched_rule,
        reason: draft.reason,
        policy_version: draft.policy_version,
        identity: draft.identity,
        extra: draft.extra,
        event_hash: event_hash.to_string(),
        prev_hash: prev_hash.to_string(),
    }
}

pub fn signing_key(key: &VerifyingKey) -> SigningKey {
    SigningKey { key_id: key.id(), public_key: key.to_pem() }
}

pub fn checkpoint_line(signed: SignedCheckpoint) -> CheckpointLine {
    CheckpointLine { payload: signed.payload, signature: signed.signature }
}

pub fn chain_link(tenant_id: String, seq: u64, found: &FoundLink) -> ChainLink {
    let (state, hash) = match found.state {
        LinkState::Kept(hash) => ("kept", Some(hash)),
        LinkState::Pruned(hash) => ("pruned", hash),
        LinkState::Altered => ("altered", None),
        LinkState::Missing => ("missing", None),
    };
    ChainLink {
        tenant_id,
        seq,
        state: state.to_owned(),
        event_hash: hash.map(|hash| hash.to_string()),
        retention_boundary_seq: found.boundary_seq,
        last_seq: found.last_seq,
        kept_since: found.kept_since.rfc3339(),
    }
}

/// What was found when at most so many entries were to be looked at.
pub fn verified(tenant_id: String, found: &Verification, entries_max: u64) -> Verified {
    let gap = |gap: &Gap| ChainGap { at_seq: gap.at_seq, fault: gap.fault.as_str().to_owned() };
    Verified {
        tenant_id,
        status: found.status.as_str().to_owned(),
        complete: found.total_events < entries_max,
        total_events: found.total_events,
        verified_events: found.verified_events,
        gaps: found.gaps.iter().map(gap).collect(),
        retention_boundary_seq: found.retention_boundary_seq,
        first_seq: found.first_seq,
        last_seq: found.last_seq,
    }
}
