//! The rules for packets, the same on every receive and every send.
//!
//! They are exactly those of the published SDK: a looser rule here would send packets that workers silently drop, a
//! stricter one would drop what honest workers send. Several that look missing (a fresh `created_at`, a known result
//! status) are missing there too.

use crate::cap::bus_packet::Payload;
use crate::cap::{
    AlertSeverity, Budget, BusPacket, ErrorCode, JobCancel, JobPriority, JobProgress, JobRequest, JobResult,
    JobStatus, SystemAlert,
};
use crate::packet::PROTOCOL_VERSION;

pub mod trust;

/// The most labels, risk tags or requirements of a job.
pub const LIST_LEN_MAX: usize = 1000;

/// The most tokens that a budget may name.
pub const BUDGET_TOKENS_MAX: i64 = 10_000_000_000;

/// The rule that a packet breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} {wrong}")]
pub struct BadField {
    pub field: &'static str,
    pub wrong: &'static str,
}

const EMPTY: &str = "must not be empty";
const NEGATIVE: &str = "must not be negative";
const NOT_SENDER: &str = "must equal sender_id";

/// Checks envelope and payload; the first broken rule is the answer.
pub fn check(packet: &BusPacket) -> Result<(), BadField> {
    require(!packet.trace_id.is_empty(), "trace_id", EMPTY)?;
    require(!packet.sender_id.is_empty(), "sender_id", EMPTY)?;
    require(packet.protocol_version == PROTOCOL_VERSION, "protocol_version", "must be 1")?;
    require(packet.created_at.is_some(), "created_at", "must be present")?;
    let sender = &packet.sender_id;
    match &packet.payload {
        None => require(false, "payload", "must be present"),
        Some(Payload::JobRequest(request)) => job_request(request),
        Some(Payload::JobResult(result)) => job_result(result, sender),
        Some(Payload::JobProgress(progress)) => job_progress(progress),
        Some(Payload::JobCancel(cancel)) => job_cancel(cancel),
        Some(Payload::Heartbeat(heartbeat)) => {
            require(heartbeat.worker_id == *sender, "heartbeat.worker_id", NOT_SENDER)
        }
        Some(Payload::Handshake(handshake)) => {
            require(handshake.component_id == *sender, "handshake.component_id", NOT_SENDER)
        }
        Some(Payload::Alert(alert)) => system_alert(alert, sender),
        Some(Payload::WorkerHandshakeChallengeRequest(request)) => trust::challenge_request(packet, request),
        Some(Payload::WorkerHandshakeChallenge(challenge)) => trust::challenge(packet, challenge),
        Some(Payload::WorkerHandshakeAuthenticate(answer)) => trust::authenticate(packet, answer),
        Some(Payload::WorkerHandshakeResult(result)) => trust::result(packet, result),
    }
}

fn require(kept: bool, field: &'static str, wrong: &'static str) -> Result<(), BadField> {
    if kept { Ok(()) } else { Err(BadField { field, wrong }) }
}

fn job_request(request: &JobRequest) -> Result<(), BadField> {
    const TOO_MANY: &str = "must not have more than 1000 entries";
    require(!request.job_id.is_empty(), "job_request.job_id", EMPTY)?;
    require(!request.topic.is_empty(), "job_request.topic", EMPTY)?;
    require(JobPriority::is_valid(request.priority), "job_request.priority", "must be a known priority")?;
    require(request.step_index >= 0, "job_request.step_index", NEGATIVE)?;
    require(request.labels.len() <= LIST_LEN_MAX, "job_request.labels", TOO_MANY)?;
    if let Some(meta) = &request.meta {
        require(meta.risk_tags.len() <= LIST_LEN_MAX, "job_request.meta.risk_tags", TOO_MANY)?;
        require(meta.requires.len() <= LIST_LEN_MAX, "job_request.meta.requires", TOO_MANY)?;
    }
    request.budget.as_ref().map_or(Ok(()), job_budget)
}

fn job_budget(budget: &Budget) -> Result<(), BadField> {
    let tokens = [
        ("job_request.budget.max_input_tokens", budget.max_input_tokens),
        ("job_request.budget.max_output_tokens", budget.max_output_tokens),
        ("job_request.budget.max_total_tokens", budget.max_total_tokens),
    ];
    for (field, count) in tokens {
        require(count >= 0, field, NEGATIVE)?;
        require(count <= BUDGET_TOKENS_MAX, field, "must not be more than 10000000000")?;
    }
    require(budget.deadline_ms >= 0, "job_request.budget.deadline_ms", NEGATIVE)
}

fn job_result(result: &JobResult, sender: &str) -> Result<(), BadField> {
    require(!result.job_id.is_empty(), "job_result.job_id", EMPTY)?;
    // An unknown status is let through: the scheduler decides what to make of it.
    require(result.status != JobStatus::Unspecified as i32, "job_result.status", "must be specified")?;
    require(!result.worker_id.is_empty(), "job_result.worker_id", EMPTY)?;
    require(result.worker_id == sender, "job_result.worker_id", NOT_SENDER)?;
    require(result.execution_ms >= 0, "job_result.execution_ms", NEGATIVE)
}

fn job_progress(progress: &JobProgress) -> Result<(), BadField> {
    require(!progress.job_id.is_empty(), "job_progress.job_id", EMPTY)?;
    require((0..=100).contains(&progress.percent), "job_progress.percent", "must be 0 to 100")?;
    require(JobStatus::is_valid(progress.status), "job_progress.status", "must be a known status")
}

fn job_cancel(cancel: &JobCancel) -> Result<(), BadField> {
    require(!cancel.job_id.is_empty(), "job_cancel.job_id", EMPTY)?;
    require(!cancel.requested_by.is_empty(), "job_cancel.requested_by", EMPTY)
}

fn system_alert(alert: &SystemAlert, sender: &str) -> Result<(), BadField> {
    require(!alert.message.is_empty(), "alert.message", EMPTY)?;
    if alert.severity == 0 && alert.error_code_enum == 0 && alert.source_component.is_empty() {
        return legacy_alert(alert);
    }
    let specified = "must be a known value other than unspecified";
    let severity = alert.severity != 0 && AlertSeverity::is_valid(alert.severity);
    let error_code = alert.error_code_enum != 0 && ErrorCode::is_valid(alert.error_code_enum);
    require(severity, "alert.severity", specified)?;
    require(error_code, "alert.error_code_enum", specified)?;
    require(alert.source_component == sender, "alert.source_component", NOT_SENDER)
}

#[expect(deprecated, reason = "the older form is still valid")]
fn legacy_alert(alert: &SystemAlert) -> Result<(), BadField> {
    require(!alert.level.is_empty(), "alert.level", EMPTY)?;
    require(!alert.component.is_empty(), "alert.component", EMPTY)?;
    require(!alert.code.is_empty(), "alert.code", EMPTY)
}
