//! Between what the core understands and the messages of the two services, both ways.

use crate::{INPUT_LEN_MAX, OutputQuestion, OutputScan};
use bytes::Bytes;
use reveille_core::id::TenantId;
use reveille_core::output::{OutputDecision, OutputVerdict, Stage};
use reveille_core::policy::{
    Budgets, Constraints, Decision, Diff, InputContent, Remediation, Sandbox, Toolchain, Verdict,
};
use reveille_core::request::Request;
use reveille_core::scan::{Finding, Severity};
use reveille_wire::convert::{self, Unusable};
use reveille_wire::{cap, cordum};
use std::collections::BTreeMap;

/// The size of an input that cannot be read.
const NOT_TO_BE_HAD: i64 = -1;
/// Entries of a list, and ways out, that are kept of an answer.
const ENTRIES_MAX: usize = 200;
const WAYS_OUT_MAX: usize = 20;
/// Findings that are kept of an answer.
const FINDINGS_MAX: usize = 100;
/// Characters of what an answer says in words.
const WORDS_MAX: usize = 1_000;

// Jobs.

/// May this job run? As much of its input goes along as fits.
pub fn question(request: &Request, input: Option<&Bytes>) -> cap::PolicyCheckRequest {
    cap::PolicyCheckRequest {
        job_id: request.id.to_string(),
        topic: request.topic.to_string(),
        tenant: request.tenant.to_string(),
        priority: convert::priority(request.priority),
        budget: Some(convert::budget(&request.budget)),
        principal_id: request.actor.principal_id.clone(),
        labels: request.labels.clone(),
        memory_id: request.place.memory_id.clone(),
        // Labels are there already.
        meta: Some(cap::JobMetadata { labels: BTreeMap::new(), ..convert::metadata(request) }),
        input_content: input.map_or_else(Bytes::new, |input| input.slice(..input.len().min(INPUT_LEN_MAX))),
        input_size_bytes: input.map_or(NOT_TO_BE_HAD, |input| input.len() as i64),
        ..cap::PolicyCheckRequest::default()
    }
}

/// What somebody else's job is to work on, as far as they sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentInput {
    pub content: Bytes,
    /// Negative if it is not to be had.
    pub len: i64,
}

impl SentInput {
    pub fn contents(&self) -> InputContent<'_> {
        match u64::try_from(self.len) {
            Err(_) => InputContent::Missing,
            Ok(len) if len > self.content.len() as u64 => InputContent::Part(&self.content, len),
            Ok(_) => InputContent::Whole(&self.content),
        }
    }
}

/// The job that a question is about, with what it is to work on. The tenant is the credential's.
pub fn asked(question: cap::PolicyCheckRequest, tenant: &TenantId) -> Result<(Request, SentInput), Unusable> {
    let cap::PolicyCheckRequest { tenant: tenant_id, input_content, input_size_bytes, .. } = question;
    let job_id = if question.job_id.is_empty() { "unnamed".to_owned() } else { question.job_id };
    let job = cap::JobRequest {
        job_id,
        tenant_id,
        topic: question.topic,
        priority: question.priority,
        budget: question.budget,
        principal_id: question.principal_id,
        labels: question.labels,
        memory_id: question.memory_id,
        meta: question.meta,
        ..cap::JobRequest::default()
    };
    let sent = SentInput { content: input_content, len: input_size_bytes };
    Ok((convert::request(job, String::new(), tenant)?, sent))
}

/// Whatever is not an answer to whether a job may run denies it.
pub fn verdict(answer: cap::PolicyCheckResponse) -> Verdict {
    use cap::DecisionType as Said;
    let said = Said::try_from(answer.decision).unwrap_or(Said::Unspecified);
    let decision = match said {
        Said::Allow | Said::AllowWithConstraints if answer.approval_required => Decision::RequireApproval,
        Said::Allow => Decision::Allow,
        Said::AllowWithConstraints => Decision::AllowWithConstraints,
        Said::RequireHuman => Decision::RequireApproval,
        Said::Throttle => Decision::Throttle,
        Said::Deny | Said::Unspecified | Said::Quarantine | Said::Redact => Decision::Deny,
    };
    let mut reason = clipped(answer.reason);
    if decision == Decision::Deny && said != Said::Deny {
        reason = format!("the safety kernel said {}, which is no answer here. {reason}", said.as_str_name());
    }
    Verdict {
        decision,
        reason,
        rule_id: clipped(answer.rule_id),
        snapshot: clipped(answer.policy_snapshot),
        constraints: answer.constraints.map(|constraints| Box::new(constraints_of(constraints))),
        remediations: answer.remediations.into_iter().take(WAYS_OUT_MAX).map(remediation_of).collect(),
    }
}

pub fn answer(verdict: Verdict) -> cap::PolicyCheckResponse {
    use cap::DecisionType as Said;
    let said = match verdict.decision {
        Decision::Allow => Said::Allow,
        Decision::Deny => Said::Deny,
        Decision::RequireApproval => Said::RequireHuman,
        Decision::Throttle => Said::Throttle,
        Decision::AllowWithConstraints => Said::AllowWithConstraints,
    };
    cap::PolicyCheckResponse {
        decision: said as i32,
        reason: verdict.reason,
        policy_snapshot: verdict.snapshot,
        rule_id: verdict.rule_id,
        constraints: verdict.constraints.map(|constraints| constraints_to(*constraints)),
        approval_required: verdict.decision == Decision::RequireApproval,
        remediations: verdict.remediations.into_iter().map(remediation_to).collect(),
        ..cap::PolicyCheckResponse::default()
    }
}

fn constraints_of(told: cap::PolicyConstraints) -> Constraints {
    let budgets = told.budgets.unwrap_or_default();
    let sandbox = told.sandbox.unwrap_or_default();
    let toolchain = told.toolchain.unwrap_or_default();
    let diff = told.diff.unwrap_or_default();
    Constraints {
        budgets: Budgets {
            max_runtime_ms: budgets.max_runtime_ms.max(0),
            max_retries: budgets.max_retries.max(0) as u32,
            max_artifact_bytes: budgets.max_artifact_bytes.max(0),
            max_concurrent_jobs: budgets.max_concurrent_jobs.max(0) as u32,
        },
        sandbox: Sandbox {
            isolated: sandbox.isolated,
            network_allowlist: bounded(sandbox.network_allowlist),
            fs_read_only: bounded(sandbox.fs_read_only),
            fs_read_write: bounded(sandbox.fs_read_write),
        },
        toolchain: Toolchain {
            allowed_tools: bounded(toolchain.allowed_tools),
            allowed_commands: bounded(toolchain.allowed_commands),
        },
        diff: Diff {
            max_files: diff.max_files,
            max_lines: diff.max_lines,
            deny_path_globs: bounded(diff.deny_path_globs),
        },
        redaction_level: clipped(told.redaction_level),
    }
}

fn constraints_to(constraints: Constraints) -> cap::PolicyConstraints {
    let Constraints { budgets, sandbox, toolchain, diff, redaction_level } = constraints;
    let small = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    cap::PolicyConstraints {
        budgets: Some(cap::BudgetConstraints {
            max_runtime_ms: budgets.max_runtime_ms,
            max_retries: small(budgets.max_retries),
            max_artifact_bytes: budgets.max_artifact_bytes,
            max_concurrent_jobs: small(budgets.max_concurrent_jobs),
        }),
        sandbox: Some(cap::SandboxProfile {
            isolated: sandbox.isolated,
            network_allowlist: sandbox.network_allowlist,
            fs_read_only: sandbox.fs_read_only,
            fs_read_write: sandbox.fs_read_write,
        }),
        toolchain: Some(cap::ToolchainConstraints {
            allowed_tools: toolchain.allowed_tools,
            allowed_commands: toolchain.allowed_commands,
        }),
        diff: Some(cap::DiffConstraints {
            max_files: diff.max_files,
            max_lines: diff.max_lines,
            deny_path_globs: diff.deny_path_globs,
        }),
        redaction_level,
    }
}

fn remediation_of(told: cap::PolicyRemediation) -> Remediation {
    Remediation {
        id: clipped(told.id),
        title: clipped(told.title),
        summary: clipped(told.summary),
        replacement_topic: clipped(told.replacement_topic),
        replacement_capability: clipped(told.replacement_capability),
        add_labels: told
            .add_labels
            .into_iter()
            .take(ENTRIES_MAX)
            .map(|(k, v)| (clipped(k), clipped(v)))
            .collect(),
        remove_labels: bounded(told.remove_labels),
    }
}

fn remediation_to(remediation: Remediation) -> cap::PolicyRemediation {
    cap::PolicyRemediation {
        id: remediation.id,
        title: remediation.title,
        summary: remediation.summary,
        replacement_topic: remediation.replacement_topic,
        replacement_capability: remediation.replacement_capability,
        add_labels: remediation.add_labels,
        remove_labels: remediation.remove_labels,
    }
}

// Results.

/// May this result be read?
pub fn result(looked: &OutputQuestion<'_>) -> cordum::OutputCheckRequest {
    let request = looked.request;
    cordum::OutputCheckRequest {
        job_id: looked.id.to_string(),
        topic: request.topic.to_string(),
        tenant: request.tenant.to_string(),
        labels: request.labels.clone(),
        result_ptr: looked.result_ptr.to_owned(),
        worker_id: looked.worker.map(ToString::to_string).unwrap_or_default(),
        execution_ms: looked.execution_ms,
        output_size_bytes: looked.len as i64,
        workflow_id: request.place.workflow_id.clone(),
        output_content: looked.content.clone().unwrap_or_default(),
        capabilities: Some(request.needs.capability.clone())
            .filter(|name| !name.is_empty())
            .into_iter()
            .collect(),
        risk_tags: request.needs.risk_tags.clone(),
        principal_id: request.actor.principal_id.clone(),
        pack_id: request.needs.pack_id.clone(),
        content_type: request.labels.get("content_type").cloned().unwrap_or_default(),
        ..cordum::OutputCheckRequest::default()
    }
}

/// The job whose result is asked about. The tenant is the credential's.
pub fn looked_at(check: &cordum::OutputCheckRequest, tenant: &TenantId) -> Result<Request, Unusable> {
    let job_id = if check.job_id.is_empty() { "unnamed".to_owned() } else { check.job_id.clone() };
    let meta = cap::JobMetadata {
        capability: check.capabilities.first().cloned().unwrap_or_default(),
        risk_tags: check.risk_tags.clone(),
        pack_id: check.pack_id.clone(),
        ..cap::JobMetadata::default()
    };
    let mut labels = check.labels.clone();
    if !check.content_type.is_empty() {
        labels.insert("content_type".to_owned(), check.content_type.clone());
    }
    let job = cap::JobRequest {
        job_id,
        topic: check.topic.clone(),
        tenant_id: check.tenant.clone(),
        principal_id: check.principal_id.clone(),
        workflow_id: check.workflow_id.clone(),
        labels,
        meta: Some(meta),
        ..cap::JobRequest::default()
    };
    convert::request(job, String::new(), tenant)
}

/// Which look it is.
pub fn stage(looked: &OutputQuestion<'_>) -> Stage {
    if looked.content.is_some() { Stage::Async } else { Stage::Sync }
}

/// What cannot be understood holds the result back.
pub fn look(answer: cordum::OutputCheckResponse, stage: Stage) -> OutputScan {
    let decision = match cordum::OutputDecision::try_from(answer.decision) {
        Ok(cordum::OutputDecision::Allow) => OutputDecision::Allow,
        Ok(cordum::OutputDecision::Redact) => OutputDecision::Redact,
        Ok(cordum::OutputDecision::Quarantine) | Err(_) => OutputDecision::Quarantine,
    };
    let verdict = OutputVerdict {
        decision,
        stage,
        rule_id: clipped(answer.rule_id),
        reason: clipped(answer.reason),
        snapshot: clipped(answer.policy_snapshot),
        findings: answer.findings.into_iter().take(FINDINGS_MAX).map(finding_of).collect(),
    };
    OutputScan { verdict, redacted_ptr: Some(answer.redacted_ptr).filter(|pointer| !pointer.is_empty()) }
}

pub fn looked(verdict: OutputVerdict, redacted_ptr: Option<String>) -> cordum::OutputCheckResponse {
    let decision = match verdict.decision {
        OutputDecision::Allow => cordum::OutputDecision::Allow,
        OutputDecision::Redact if redacted_ptr.is_some() => cordum::OutputDecision::Redact,
        OutputDecision::Redact | OutputDecision::Quarantine | OutputDecision::Deny => {
            cordum::OutputDecision::Quarantine
        }
    };
    cordum::OutputCheckResponse {
        decision: decision as i32,
        reason: verdict.reason,
        rule_id: verdict.rule_id,
        policy_snapshot: verdict.snapshot,
        findings: verdict.findings.into_iter().map(finding_to).collect(),
        redacted_ptr: redacted_ptr.unwrap_or_default(),
    }
}

fn finding_of(told: cordum::OutputFinding) -> Finding {
    let start = usize::try_from(told.offset).unwrap_or(0);
    let len = usize::try_from(told.length).unwrap_or(0);
    Finding {
        scanner: clipped(told.scanner),
        name: clipped(told.r#type),
        severity: Severity::parse(&told.severity).unwrap_or(Severity::High),
        confidence: (told.confidence.clamp(0.0, 1.0) * 100.0).round() as u8,
        at: String::new(),
        span: start..start.saturating_add(len),
        // The kernel's words may quote what it found.
        preview: String::new(),
    }
}

fn finding_to(finding: Finding) -> cordum::OutputFinding {
    cordum::OutputFinding {
        r#type: finding.name.clone(),
        severity: finding.severity.as_str().to_owned(),
        detail: finding.preview,
        offset: finding.span.start as i64,
        length: finding.span.len() as i64,
        scanner: finding.scanner,
        confidence: f32::from(finding.confidence) / 100.0,
        matched_pattern: finding.name,
    }
}

fn bounded(list: Vec<String>) -> Vec<String> {
    list.into_iter().take(ENTRIES_MAX).map(clipped).collect()
}

fn clipped(text: String) -> String {
    if text.len() <= WORDS_MAX { text } else { text.chars().take(WORDS_MAX).collect() }
}
