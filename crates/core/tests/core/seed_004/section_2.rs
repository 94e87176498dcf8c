//! Section 2: output policy, both phases.

use super::{NOW, judged, report, running};
use reveille_core::audit::{EventType, of_step};
use reveille_core::job::{Job, State};
use reveille_core::life::{self, Limits, Status};
use reveille_core::output::{OutputDecision, OutputVerdict, Stage};
use reveille_core::policy::{ContentMetadata, Decision, Document, FailMode, Policy};
use reveille_core::reason::Reason;
use reveille_core::request::Request;
use serde_json::json;

const ORIGINAL: &str = "redis://res:j";
const COPY: &str = "redis://res:j:redacted:1";

fn done() -> Job {
    life::await_scan(
        &life::finish(&running(), &report(Status::Succeeded), &Limits::default(), NOW, 0).unwrap(),
    )
}

fn said(stage: Stage, decision: OutputDecision) -> OutputVerdict {
    OutputVerdict {
        decision,
        stage,
        rule_id: "r".to_owned(),
        reason: "a secret".to_owned(),
        snapshot: "s".to_owned(),
        findings: Vec::new(),
    }
}

#[test]
fn every_decision_of_both_phases_ends_as_the_tree_says() {
    use OutputDecision::{Allow, Deny, Quarantine, Redact};
    use State::{OutputQuarantined, Succeeded};
    // Phase, decision, redacted copy; state, and what the result pointer then says.
    let rows = [
        (Stage::Sync, Allow, None, Succeeded, ORIGINAL),
        (Stage::Sync, Quarantine, None, OutputQuarantined, ""),
        (Stage::Sync, Deny, None, OutputQuarantined, ""),
        (Stage::Sync, Redact, Some(COPY), Succeeded, COPY),
        (Stage::Sync, Redact, None, OutputQuarantined, ""),
        (Stage::Async, Allow, None, Succeeded, ORIGINAL),
        (Stage::Async, Quarantine, None, OutputQuarantined, ""),
        (Stage::Async, Deny, None, OutputQuarantined, ""),
        (Stage::Async, Redact, Some(COPY), Succeeded, COPY),
        (Stage::Async, Redact, None, OutputQuarantined, ""),
    ];
    for (stage, decision, copy, state, pointer) in rows {
        let row = format!("{stage:?} {decision:?} {copy:?}");
        let before = done();
        let after = life::check_output(&before, said(stage, decision), copy.map(str::to_owned), NOW).unwrap();
        assert_eq!((after.state(), after.ending().unwrap().result_ptr.as_str()), (state, pointer), "{row}");
        let is_held = state == OutputQuarantined;
        assert_eq!(after.dead_letter().is_some(), is_held, "{row}: a dead letter");
        assert_eq!(after.owed.dead_letter, is_held, "{row}: and those who watch are told");
        let recorded = of_step(Some(&before), &after);
        let is_recorded = is_held || decision == Redact;
        assert_eq!(
            recorded.iter().any(|draft| draft.event_type == EventType::Violation),
            is_recorded,
            "{row}"
        );
        assert!(
            after.output.is_some() && !after.owed.output_scan,
            "{row}: what was said is kept with the job"
        );
        let reason = match stage {
            Stage::Sync => Reason::OutputQuarantined,
            Stage::Async => Reason::OutputQuarantinedAsync,
        };
        assert_eq!(after.ending().unwrap().reason, is_held.then_some(reason), "{row}");
    }
}

#[test]
fn a_job_that_is_not_succeeded_by_now_is_skipped() {
    let held = life::check_output(&done(), said(Stage::Async, OutputDecision::Deny), None, NOW).unwrap();
    let cancelled = life::cancel(&running(), "ann", "", NOW).unwrap();
    for job in [running(), judged(Decision::Allow), judged(Decision::Deny), cancelled, held] {
        let late = life::check_output(&job, said(Stage::Async, OutputDecision::Quarantine), None, NOW);
        assert!(late.is_err(), "{} was downgraded", job.state());
    }
}

fn policy(rules: &serde_json::Value) -> Policy {
    let document = json!({"rules": [{"id": "all", "decision": "allow"}], "output_rules": rules});
    let document: Document = serde_json::from_value(document).unwrap();
    Policy::new(document, b"").unwrap()
}

#[test]
fn the_first_phase_looks_at_what_is_known_and_leaves_the_content_to_the_second() {
    let request = Request::plain("j", "job.echo");
    let sheet = |len| ContentMetadata { len, has_error: false };
    let rows = [
        (json!([]), 10, Some(OutputDecision::Allow)),
        (
            json!([{"id": "big", "match": {"max_output_bytes": 9}, "decision": "deny"}]),
            9,
            Some(OutputDecision::Allow),
        ),
        (
            json!([{"id": "big", "match": {"max_output_bytes": 9}, "decision": "deny"}]),
            10,
            Some(OutputDecision::Deny),
        ),
        (json!([{"id": "s", "match": {"scanners": ["secret"]}, "decision": "deny"}]), 10, None),
    ];
    for (rules, len, decision) in rows {
        let verdict = policy(&rules).output().check_metadata(&request, sheet(len));
        assert_eq!(verdict.as_ref().map(|verdict| verdict.decision), decision, "{rules} of {len} bytes");
        assert!(verdict.is_none_or(|verdict| verdict.stage == Stage::Sync));
    }
}

#[test]
fn what_could_not_be_looked_at_passes_unless_told_otherwise() {
    let policy = policy(&json!([{"id": "s", "match": {"scanners": ["secret"]}, "decision": "deny"}]));
    let unchecked = |mode| policy.output().unchecked(mode, Stage::Async, "it took too long").decision;
    assert_eq!(unchecked(FailMode::Open), OutputDecision::Allow);
    assert_eq!(unchecked(FailMode::Closed), OutputDecision::Quarantine);
    assert_eq!((policy.output().enabled, policy.output().fail_mode), (None, None), "the file need not say");
}
