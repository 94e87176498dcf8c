//! Questions and answers on their way to a kernel and back.

use bytes::Bytes;
use reveille_core::id::TenantId;
use reveille_core::output::{OutputDecision, OutputVerdict, Stage};
use reveille_core::policy::{Budgets, Constraints, Decision, InputContent, Remediation, Verdict};
use reveille_core::request::{Actor, Needs, Priority, Request};
use reveille_kernel::INPUT_LEN_MAX;
use reveille_kernel::convert::{answer, asked, look, looked, question, verdict};
use reveille_wire::{cap, cordum};

fn request() -> Request {
    let mut request = Request::plain("j-1", "job.deploy");
    request.tenant = TenantId::known("acme");
    request.priority = Priority::Critical;
    request.labels = [("env".to_owned(), "prod".to_owned())].into();
    request.actor = Actor {
        principal_id: "ada".to_owned(),
        actor_id: "bot-7".to_owned(),
        actor_type: "service".to_owned(),
        team: String::new(),
    };
    request.needs = Needs {
        capability: "deploy".to_owned(),
        risk_tags: vec!["write".to_owned()],
        requires: vec!["gpu".to_owned()],
        pack_id: "ops".to_owned(),
    };
    request.budget.deadline_ms = 60_000;
    "m-1".clone_into(&mut request.place.memory_id);
    request
}

/// A kernel that is Reveille too sees the facts that its client's rules would have seen.
#[test]
fn a_question_arrives_as_it_was_asked() {
    let request = request();
    let input = Bytes::from_static(b"{\"x\":1}");
    let (arrived, sent) = asked(question(&request, Some(&input)), &request.tenant).unwrap();
    assert!(matches!(sent.contents(), InputContent::Whole(content) if *content == input));
    let expected = Request { trace_id: String::new(), context_ptr: String::new(), ..request };
    assert_eq!(Request { context_ptr: String::new(), ..arrived }, expected);
}

#[test]
fn a_long_input_is_cut_and_says_how_long_it_is() {
    let input = Bytes::from(vec![b'x'; INPUT_LEN_MAX + 1]);
    let question = question(&request(), Some(&input));
    assert_eq!((question.input_content.len(), question.input_size_bytes), (INPUT_LEN_MAX, 65_537));
    let (_, sent) = asked(question, &request().tenant).unwrap();
    assert!(matches!(sent.contents(), InputContent::Part(part, 65_537) if part.len() == INPUT_LEN_MAX));
    let (_, sent) = asked(reveille_kernel::convert::question(&request(), None), &request().tenant).unwrap();
    assert!(matches!(sent.contents(), InputContent::Missing));
}

#[test]
fn a_question_cannot_choose_its_tenant() {
    let question = question(&request(), None);
    assert!(asked(question, &TenantId::known("zeta")).is_err());
}

/// Every decision there is, and what does not answer the question.
#[test]
fn whatever_is_no_answer_denies() {
    use cap::DecisionType as Said;
    let rows = [
        (Said::Allow as i32, false, Decision::Allow),
        (Said::Allow as i32, true, Decision::RequireApproval),
        (Said::Deny as i32, false, Decision::Deny),
        (Said::RequireHuman as i32, false, Decision::RequireApproval),
        (Said::Throttle as i32, false, Decision::Throttle),
        (Said::AllowWithConstraints as i32, false, Decision::AllowWithConstraints),
        (Said::Unspecified as i32, false, Decision::Deny),
        (Said::Quarantine as i32, false, Decision::Deny),
        (Said::Redact as i32, false, Decision::Deny),
        (99, false, Decision::Deny),
    ];
    for (decision, approval_required, expected) in rows {
        let answer =
            cap::PolicyCheckResponse { decision, approval_required, ..cap::PolicyCheckResponse::default() };
        assert_eq!(verdict(answer).decision, expected, "{decision} {approval_required}");
    }
}

#[test]
fn a_verdict_arrives_as_it_was_given() {
    let constraints = Constraints {
        budgets: Budgets { max_runtime_ms: 1, max_retries: 2, max_artifact_bytes: 3, max_concurrent_jobs: 4 },
        redaction_level: "strict".to_owned(),
        ..Constraints::default()
    };
    let remediation = Remediation {
        id: "r".to_owned(),
        replacement_topic: "job.safe".to_owned(),
        add_labels: [("dry_run".to_owned(), "true".to_owned())].into(),
        ..Remediation::default()
    };
    for decision in Decision::ALL {
        let given = Verdict {
            decision: *decision,
            reason: "because".to_owned(),
            rule_id: "rule".to_owned(),
            snapshot: "v1:abc".to_owned(),
            constraints: Some(Box::new(constraints.clone())),
            remediations: vec![remediation.clone()],
        };
        assert_eq!(verdict(answer(given.clone())), given);
    }
}

#[test]
fn a_redaction_without_its_copy_is_a_quarantine() {
    let verdict = |decision| OutputVerdict {
        decision,
        stage: Stage::Async,
        rule_id: "r".to_owned(),
        reason: "found".to_owned(),
        snapshot: "v1:abc".to_owned(),
        findings: Vec::new(),
    };
    let copy = || Some("redis://res:j:redacted:1".to_owned());
    let rows = [
        (OutputDecision::Allow, None, OutputDecision::Allow),
        (OutputDecision::Quarantine, None, OutputDecision::Quarantine),
        (OutputDecision::Deny, None, OutputDecision::Quarantine),
        (OutputDecision::Redact, copy(), OutputDecision::Redact),
        (OutputDecision::Redact, None, OutputDecision::Quarantine),
    ];
    for (decision, copy, expected) in rows {
        let arrived = look(looked(verdict(decision), copy.clone()), Stage::Async);
        assert_eq!((arrived.verdict.decision, arrived.redacted_ptr), (expected, copy));
    }
    let unknown = cordum::OutputCheckResponse { decision: 9, ..cordum::OutputCheckResponse::default() };
    assert_eq!(look(unknown, Stage::Sync).verdict.decision, OutputDecision::Quarantine);
}
