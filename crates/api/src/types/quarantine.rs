//! Results that output policy holds back, as people look at them.

use reveille_core::job::Job;
use reveille_core::output::{OutputCheck, Resolution, Stage};
use reveille_core::scan::Finding;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What output policy said of a result.
#[derive(Serialize, ToSchema)]
pub struct OutputSafety {
    /// ALLOW, QUARANTINE, DENY or REDACT.
    pub decision: &'static str,
    pub reason: String,
    pub rule_id: String,
    pub policy_snapshot: String,
    /// `sync`: by what is known of it. `async`: by its content.
    pub phase: &'static str,
    pub findings: Vec<OutputFinding>,
    /// Microseconds.
    pub checked_at: i64,
    pub checked_at_text: String,
    /// A redacted copy has taken the result's place.
    pub redacted: bool,
    /// `released` or `discarded`, once somebody has decided.
    pub resolution: Option<&'static str>,
    pub resolved_by: Option<String>,
    pub resolved_at: Option<i64>,
    pub resolved_note: Option<String>,
}

/// Something that was found. The preview never shows the thing itself.
#[derive(Serialize, ToSchema)]
pub struct OutputFinding {
    pub scanner: String,
    pub name: String,
    pub severity: &'static str,
    /// From 0 to 1.
    pub confidence: f64,
    /// Where: a JSON pointer, or nothing for plain text.
    pub at: String,
    pub start: usize,
    pub end: usize,
    pub preview: String,
}

impl OutputSafety {
    pub fn of(check: &OutputCheck) -> Self {
        let verdict = &check.verdict;
        let resolved = check.resolved.as_ref();
        Self {
            decision: verdict.decision.as_str(),
            reason: verdict.reason.clone(),
            rule_id: verdict.rule_id.clone(),
            policy_snapshot: verdict.snapshot.clone(),
            phase: match verdict.stage {
                Stage::Sync => "sync",
                Stage::Async => "async",
            },
            findings: verdict.findings.iter().map(OutputFinding::of).collect(),
            checked_at: check.checked_at.micros(),
            checked_at_text: check.checked_at.rfc3339(),
            redacted: verdict.decision.as_str() == "REDACT" && !check.original_ptr.is_empty(),
            resolution: resolved.map(|resolved| match resolved.how {
                Resolution::Released => "released",
                Resolution::Discarded => "discarded",
            }),
            resolved_by: resolved.map(|resolved| resolved.by.clone()),
            resolved_at: resolved.map(|resolved| resolved.at.micros()),
            resolved_note: resolved.map(|resolved| resolved.note.clone()).filter(|note| !note.is_empty()),
        }
    }
}

impl OutputFinding {
    fn of(finding: &Finding) -> Self {
        Self {
            scanner: finding.scanner.clone(),
            name: finding.name.clone(),
            severity: finding.severity.as_str(),
            confidence: f64::from(finding.confidence) / 100.0,
            at: finding.at.clone(),
            start: finding.span.start,
            end: finding.span.end,
            preview: finding.preview.clone(),
        }
    }
}

/// A result in quarantine.
#[derive(Serialize, ToSchema)]
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

impl Held {
    pub fn of(job: &Job) -> Self {
        Self {
            job_id: job.id().to_string(),
            tenant: job.request.tenant.to_string(),
            topic: job.request.topic.to_string(),
            worker_id: job.worker().map(ToString::to_string).unwrap_or_default(),
            held_at: job.since().micros(),
            reason: job.ending().map(|ending| ending.words.clone()).unwrap_or_default(),
            output_safety: job.output.as_deref().map(OutputSafety::of),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct HeldPage {
    pub items: Vec<Held>,
    pub next_cursor: Option<String>,
}

/// Why, for whoever asks later.
#[derive(Deserialize, ToSchema, Default)]
#[serde(default)]
pub struct Decided {
    pub note: String,
    pub reason: String,
}

#[derive(Serialize, ToSchema)]
pub struct ResolvedReply {
    pub job_id: String,
    pub state: String,
    /// `released` or `discarded`.
    pub resolution: &'static str,
}
