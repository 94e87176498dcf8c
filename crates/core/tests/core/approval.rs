//! Questions and answers: which answer counts, and what a policy that changed makes of a question.

use reveille_core::approval::{Answer, Conflict, Status, job_hash, status};
use reveille_core::id::KeyId;
use reveille_core::job::{Job, Refusal, State};
use reveille_core::life::{self, Due, Limits};
use reveille_core::policy::{Decision, Policy, RecordedVerdict, Verdict};
use reveille_core::reason::Reason;
use reveille_core::request::Request;
use reveille_core::time::Millis;

const NOW: Millis = Millis(1_000_000);

fn said(decision: Decision, snapshot: &str) -> RecordedVerdict {
    let verdict = Policy::builtin().evaluate(&Request::plain("j", "job.pay"));
    let verdict = Verdict { decision, snapshot: snapshot.to_owned(), ..verdict };
    RecordedVerdict { verdict, checked_at: NOW }
}

fn asked() -> Job {
    let job = life::submit(Request::plain("j", "job.pay"), NOW);
    life::judge(&job, said(Decision::RequireApproval, "one"), NOW).unwrap()
}

fn conflict(done: Result<Job, Refusal>) -> Option<Conflict> {
    match done {
        Err(Refusal::Approval(conflict)) => Some(conflict),
        other => {
            other.unwrap();
            None
        }
    }
}

#[test]
fn an_answer_to_another_question_does_not_count() {
    let waits = asked();
    let try_with = |change: &dyn Fn(&mut Answer)| {
        let mut answer = Answer::by("ann");
        change(&mut answer);
        conflict(life::approve(&waits, &answer, said(Decision::Allow, "one"), NOW))
    };
    let hash = job_hash(&waits.request);
    assert_eq!(try_with(&|answer| answer.job_hash = Some(hash.clone())), None);
    assert_eq!(try_with(&|answer| answer.job_hash = Some("0".repeat(64))), Some(Conflict::StaleRequest));
    assert_eq!(try_with(&|answer| answer.policy_snapshot = Some("one".into())), None);
    assert_eq!(
        try_with(&|answer| answer.policy_snapshot = Some("zero".into())),
        Some(Conflict::StaleSnapshot)
    );
    let again = life::judge(&waits, said(Decision::RequireApproval, "two"), NOW + 1).unwrap();
    let old = Answer { policy_snapshot: Some("one".into()), ..Answer::by("ann") };
    assert_eq!(conflict(life::reject(&again, &old, NOW + 2)), Some(Conflict::StaleSnapshot));
}

#[test]
fn one_decision_is_taken_and_the_next_is_told() {
    let approve = |job: &Job| life::approve(job, &Answer::by("ann"), said(Decision::Allow, "one"), NOW);
    let approved = approve(&asked()).unwrap();
    let rejected = life::reject(&asked(), &Answer::by("bob"), NOW).unwrap();
    for job in [&approved, &rejected] {
        assert_eq!(conflict(approve(job)), Some(Conflict::AlreadyResolved));
        assert_eq!(conflict(life::reject(job, &Answer::by("ann"), NOW)), Some(Conflict::AlreadyResolved));
    }
    let unasked = life::submit(Request::plain("j", "job.pay"), NOW);
    let cancelled = life::cancel(&asked(), "ann", "", NOW).unwrap();
    for job in [&unasked, &cancelled] {
        assert_eq!(conflict(approve(job)), Some(Conflict::NotActionable));
    }
    let states = [&asked(), &approved, &rejected, &cancelled, &unasked].map(status);
    let expected = [Status::Pending, Status::Approved, Status::Rejected, Status::Invalidated].map(Some);
    assert_eq!((&states[..4], states[4]), (&expected[..], None));
}

#[test]
fn an_approval_that_policy_no_longer_allows_invalidates_the_question() {
    let denied = life::approve(&asked(), &Answer::by("ann"), said(Decision::Deny, "two"), NOW).unwrap();
    assert_eq!((denied.state(), status(&denied)), (State::Denied, Some(Status::Invalidated)));
    assert_eq!(denied.decided, None, "nobody's approval counted");
    let late = life::approve(&denied, &Answer::by("bob"), said(Decision::Allow, "two"), NOW);
    assert_eq!(conflict(late), Some(Conflict::StaleSnapshot), "whoever comes next is told why");
}

#[test]
fn a_changed_policy_looks_again_at_what_waits() {
    for (decision, state) in [
        (Decision::Allow, State::Scheduled),
        (Decision::RequireApproval, State::ApprovalRequired),
        (Decision::Deny, State::Denied),
        (Decision::Throttle, State::Pending),
    ] {
        let job = life::judge(&asked(), said(decision, "two"), NOW + 1).unwrap();
        assert_eq!(job.state(), state);
        assert_eq!(job.last_verdict().unwrap().verdict.snapshot, "two");
    }
}

#[test]
fn a_question_that_is_asked_anew_is_as_old_as_the_first() {
    let limits = Limits { approval_ms: Some(60_000), ..Limits::default() };
    let mut job = asked();
    for reload in 1..=300 {
        job = life::judge(&job, said(Decision::RequireApproval, &reload.to_string()), NOW + reload).unwrap();
    }
    assert_eq!((job.since(), job.marks.len()), (NOW, 3));
    assert_eq!(life::due(&job, &limits, NOW), Some(NOW + 60_000));
}

#[test]
fn a_question_that_nobody_answers_is_denied_in_time() {
    let limits = Limits { approval_ms: Some(60_000), ..Limits::default() };
    let job = asked();
    assert_eq!(life::due(&job, &Limits::default(), NOW), None, "unless told otherwise it waits for ever");
    assert_eq!(life::pass_time(&job, &limits, None, NOW + 59_999), Ok(Due::Nothing));
    let Ok(Due::Change(ended)) = life::pass_time(&job, &limits, None, NOW + 60_000) else { panic!() };
    assert_eq!(ended.ending().unwrap().reason, Some(Reason::ApprovalExpired));
    assert_eq!((ended.state(), status(&ended)), (State::Denied, Some(Status::Expired)));
    assert!(ended.dead_letter().is_some());
}

#[test]
fn nobody_approves_what_they_asked_for() {
    let mut request = Request::plain("j", "job.pay");
    request.submitted_by = Some(KeyId::known("key_a"));
    request.submitter_name = Some("ann".to_owned());
    "bob".clone_into(&mut request.actor.principal_id);
    let job = life::submit(request, NOW);
    let waits = life::judge(&job, said(Decision::RequireApproval, "one"), NOW).unwrap();
    let from = |key: &str, name: &str| Answer { key: Some(KeyId::known(key)), ..Answer::by(name) };
    let approve =
        |answer: &Answer| conflict(life::approve(&waits, answer, said(Decision::Allow, "one"), NOW));
    assert_eq!(approve(&from("key_a", "bob")), Some(Conflict::OwnJob));
    assert_eq!(approve(&from("key_b", "ann")), Some(Conflict::OwnJob));
    assert_eq!(approve(&from("key_b", "bob")), None, "a name that was only claimed locks nobody out");
    assert_eq!(
        conflict(life::reject(&waits, &from("key_a", "ann"), NOW)),
        None,
        "giving up is anybody's right"
    );
    let nobodys = Answer { key: Some(KeyId::anonymous()), ..Answer::by("nobody") };
    assert!(nobodys.is_from_submitter(&Request::plain("j", "job.pay")), "it may be anybody's");
    assert!(!Answer::by("").is_from_submitter(&Request::plain("j", "job.pay")), "no name is nobody's");
}
