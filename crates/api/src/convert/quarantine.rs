//! Results that output policy holds back.

use reveille_api_types::quarantine::{Held, OutputFinding, OutputSafety};
use reveille_core::job::Job;
use reveille_core::output::{OutputCheck, Resolution, Stage};
use reveille_core::scan::Finding;

pub fn output_safety(check: &OutputCheck) -> OutputSafety {
    let verdict = &check.verdict;
    let resolved = check.resolved.as_ref();
    OutputSafety {
        decision: verdict.decision.as_str().to_owned(),
        reason: verdict.reason.clone(),
        rule_id: verdict.rule_id.clone(),
        policy_snapshot: verdict.snapshot.clone(),
        phase: match verdict.stage {
            Stage::Sync => "sync",
            Stage::Async => "async",
        }
        .to_owned(),
        findings: verdict.findings.iter().map(output_finding).collect(),
        checked_at: check.checked_at.micros(),
        checked_at_text: check.checked_at.rfc3339(),
        redacted: verdict.decision.as_str() == "REDACT" && !check.original_ptr.is_empty(),
        resolution: resolved.map(|resolved| {
            match resolved.how {
                Resolution::Released => "released",
                Resolution::Discarded => "discarded",
            }
            .to_owned()
        }),
        resolved_by: resolved.map(|resolved| resolved.by.clone()),
        resolved_at: resolved.map(|resolved| resolved.at.micros()),
        resolved_note: resolved.map(|resolved| resolved.note.clone()).filter(|note| !note.is_empty()),
    }
}

fn output_finding(finding: &Finding) -> OutputFinding {
    OutputFinding {
        scanner: finding.scanner.clone(),
        name: finding.name.clone(),
        severity: finding.severity.as_str().to_owned(),
        confidence: f64::from(finding.confidence) / 100.0,
        at: finding.at.clone(),
        start: finding.span.start,
        end: finding.span.end,
        preview: finding.preview.clone(),
    }
}

pub fn held(job: &Job) -> Held {
    Held {
        job_id: job.id().to_string(),
        tenant: job.request.tenant.to_string(),
        topic: job.request.topic.to_string(),
        worker_id: job.worker().map(ToString::to_string).unwrap_or_default(),
        held_at: job.since().micros(),
        reason: job.ending().map(|ending| ending.words.clone()).unwrap_or_default(),
        output_safety: job.output.as_deref().map(output_safety),
    }
}
