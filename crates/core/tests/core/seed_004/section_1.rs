//! Section 1: the job state machine.

use super::{NOW, assert_is_page, dispatched, judged, recorded, report, running};
use reveille_core::approval::{Answer, Conflict, job_hash};
use reveille_core::backoff;
use reveille_core::id::WorkerId;
use reveille_core::job::{Event, Job, Phase, Refusal, State, next};
use reveille_core::life::{self, Destination, Due, Limits, Status};
use reveille_core::output::{OutputDecision, OutputVerdict, Stage};
use reveille_core::policy::{Decision, Document, Policy};
use reveille_core::reason::Reason;
use reveille_core::request::Request;
use serde_json::json;
use std::collections::BTreeMap;

/// The arrows of the diagram.
const DIAGRAM: [(State, Event, State); 13] = [
    (State::Pending, Event::Allow, State::Scheduled),
    (State::Pending, Event::RequireApproval, State::ApprovalRequired),
    (State::Pending, Event::Deny, State::Denied),
    (State::ApprovalRequired, Event::Approve, State::Pending),
    (State::Scheduled, Event::Assign, State::Dispatched),
    (State::Dispatched, Event::Start, State::Running),
    (State::Running, Event::Succeed, State::Succeeded),
    (State::Running, Event::Fail, State::Failed),
    (State::Running, Event::Expire, State::Timeout),
    (State::Running, Event::Cancel, State::Cancelled),
    // The async output policy; the sync one ends in the same state before anybody sees SUCCEEDED.
    (State::Succeeded, Event::Quarantine, State::OutputQuarantined),
    // Max scheduling retries.
    (State::Scheduled, Event::GiveUp, State::Failed),
    // Section 3 draws it in words: DISPATCHED has a timeout of its own.
    (State::Dispatched, Event::Expire, State::Timeout),
];

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const RUNNING_AFTER_25_MS: &str = "docs/adr/0003-running-after-25-ms.md";
const WAITING: &str = "docs/adr/0004-waiting-costs-no-writes.md";
const DISCOVERED: &str = "docs/adr/0006-discovered-routing.md";
const CONFIG: &str = "docs/config.md";
const ASKING: &str = "docs/adr/0026-asking-another-kernel.md";
const GATES: &str = "docs/adr/0032-runs-are-values-kept-in-parts.md";
const SAGAS: &str = "docs/adr/0033-sagas-of-clients-are-runs.md";
const HELD_BACK: &str = "docs/adr/0022-results-that-are-held-back.md";

/// What happens beside the diagram, and the page that tells of it.
const BESIDE: [(State, Event, State, &str); 31] = [
    (State::Pending, Event::Submit, State::Pending, ARCHITECTURE),
    // A compensation that nobody could keep is a dead letter.
    (State::Pending, Event::GiveUp, State::Failed, SAGAS),
    (State::Pending, Event::Throttle, State::Pending, CONFIG),
    // Section 6 has it in words: a job that nobody can judge is requeued.
    (State::Pending, Event::Unjudged, State::Pending, ASKING),
    // The diagram has no arrow for a person who says no, nor for a policy that changes its mind meanwhile.
    (State::ApprovalRequired, Event::Reject, State::Denied, ARCHITECTURE),
    (State::ApprovalRequired, Event::Allow, State::Scheduled, ARCHITECTURE),
    // A step of a workflow that is there only to be approved.
    (State::ApprovalRequired, Event::Pass, State::Succeeded, GATES),
    (State::ApprovalRequired, Event::RequireApproval, State::ApprovalRequired, ARCHITECTURE),
    (State::ApprovalRequired, Event::Throttle, State::Pending, ARCHITECTURE),
    (State::ApprovalRequired, Event::Deny, State::Denied, CONFIG),
    // Whoever asked may change their mind, and a deadline passes, wherever the job is.
    (State::Pending, Event::Cancel, State::Cancelled, ARCHITECTURE),
    (State::ApprovalRequired, Event::Cancel, State::Cancelled, ARCHITECTURE),
    (State::Scheduled, Event::Cancel, State::Cancelled, ARCHITECTURE),
    (State::Dispatched, Event::Cancel, State::Cancelled, ARCHITECTURE),
    (State::Pending, Event::Expire, State::Timeout, CONFIG),
    (State::ApprovalRequired, Event::Expire, State::Timeout, CONFIG),
    (State::Scheduled, Event::Expire, State::Timeout, CONFIG),
    // A dispatch that nobody heard, a worker that died, a failure worth another try.
    (State::Dispatched, Event::Open, State::Dispatched, DISCOVERED),
    (State::Dispatched, Event::Unheard, State::Scheduled, WAITING),
    (State::Dispatched, Event::LoseWorker, State::Scheduled, ARCHITECTURE),
    (State::Running, Event::LoseWorker, State::Scheduled, ARCHITECTURE),
    (State::Dispatched, Event::Retry, State::Scheduled, WAITING),
    (State::Running, Event::Retry, State::Scheduled, WAITING),
    // Words from the worker may overtake our own commit of RUNNING, or come from an attempt given up.
    (State::Dispatched, Event::Progress, State::Running, RUNNING_AFTER_25_MS),
    (State::Running, Event::Progress, State::Running, ARCHITECTURE),
    (State::Dispatched, Event::Succeed, State::Succeeded, RUNNING_AFTER_25_MS),
    (State::Scheduled, Event::Succeed, State::Succeeded, ARCHITECTURE),
    (State::Dispatched, Event::Fail, State::Failed, RUNNING_AFTER_25_MS),
    // What people and redaction do to a result.
    (State::Succeeded, Event::Redact, State::Succeeded, HELD_BACK),
    (State::OutputQuarantined, Event::Release, State::Succeeded, HELD_BACK),
    (State::OutputQuarantined, Event::Discard, State::OutputQuarantined, HELD_BACK),
];

#[test]
fn every_state_meets_every_event_as_the_diagram_says() {
    let mut expected: BTreeMap<(State, Event), State> = BTreeMap::new();
    let beside = BESIDE.iter().map(|(from, event, to, page)| {
        assert_is_page(page);
        (*from, *event, *to)
    });
    for (from, event, to) in DIAGRAM.into_iter().chain(beside) {
        assert_eq!(*expected.entry((from, event)).or_insert(to), to, "{from} + {event} is told in two ways");
    }
    let drawn = DIAGRAM.iter().map(|(from, event, _)| (*from, *event));
    for (from, event) in drawn {
        assert!(!BESIDE.iter().any(|row| (row.0, row.1) == (from, event)), "{from} + {event} is drawn");
    }
    for from in State::ALL {
        for event in Event::ALL {
            let refused = Refusal::NotNow { state: *from, event: *event };
            let to = expected.get(&(*from, *event)).copied().ok_or(refused);
            assert_eq!(next(*from, *event), to, "{from} + {event}");
        }
    }
}

#[test]
fn the_six_terminal_states_are_those_of_the_table() {
    let table = ["SUCCEEDED", "FAILED", "TIMEOUT", "CANCELLED", "DENIED", "OUTPUT_QUARANTINED"];
    let ours = State::ALL.iter().filter(|state| state.is_terminal()).map(ToString::to_string);
    assert_eq!(ours.collect::<Vec<_>>(), table);
    // Nothing leads from an ending back to work; a success and its quarantine only swap places.
    for from in State::ALL.iter().filter(|state| state.is_terminal()) {
        for event in Event::ALL {
            if let Ok(to) = next(*from, *event) {
                assert!(to.is_terminal(), "{from} + {event} revives the job");
            }
        }
    }
}

/// A job that has ended in each of the ways there are.
fn ended() -> Vec<Job> {
    let finish = |status| life::finish(&running(), &report(status), &Limits::default(), NOW, 0).unwrap();
    let held = OutputVerdict {
        decision: OutputDecision::Quarantine,
        stage: Stage::Async,
        rule_id: "r".to_owned(),
        reason: "a secret".to_owned(),
        snapshot: "s".to_owned(),
        findings: Vec::new(),
    };
    let ended = vec![
        finish(Status::Succeeded),
        finish(Status::Fatal),
        finish(Status::Timeout),
        life::cancel(&running(), "ann", "", NOW).unwrap(),
        judged(Decision::Deny),
        life::check_output(&finish(Status::Succeeded), held, None, NOW).unwrap(),
    ];
    let states: Vec<State> = ended.iter().map(Job::state).collect();
    let terminal = State::ALL.iter().copied().filter(|state| state.is_terminal());
    assert_eq!(states, terminal.collect::<Vec<_>>(), "each ending is there");
    ended
}

#[test]
fn duplicate_results_are_ignored() {
    use Status::{Cancelled, Denied, Failed, Fatal, Retryable, Succeeded, Timeout};
    for job in ended() {
        for status in [Succeeded, Failed, Retryable, Fatal, Cancelled, Timeout, Denied] {
            for attempt in [None, Some(1), Some(2)] {
                let again = life::Report { attempt, ..report(status) };
                let done = life::finish(&job, &again, &Limits::default(), NOW + 1, 0);
                assert!(done.is_err(), "{} took {status:?} of {attempt:?}", job.state());
            }
        }
        assert_eq!(life::due(&job, &Limits::default(), NOW), None, "nothing is due any more");
        assert_eq!(life::pass_time(&job, &Limits::default(), None, NOW + 1_000_000_000), Ok(Due::Nothing));
    }
}

/// Tries a job until it ends and says how many tries that took, with the delays in between.
fn tried(spoil: impl Fn(&Job, u32, u64) -> Job) -> (Job, u32, Vec<i64>) {
    let (mut job, mut now, mut delays) = (judged(Decision::Allow), NOW, Vec::new());
    let to = Destination { worker: Some(WorkerId::known("w")), pool: None };
    for tries in 1..=1_000 {
        job = life::assign(&job, &to, now).unwrap();
        job = spoil(&job, tries, 0);
        match job.phase {
            Phase::Scheduled { not_before, .. } => {
                delays.push(not_before.since(now).max(0));
                now = now.max(not_before);
            }
            _ => return (job, tries, delays),
        }
    }
    panic!("it never ends")
}

#[test]
fn after_fifty_tries_with_backoff_from_1_s_to_30_s_it_fails_and_is_a_dead_letter() {
    let retryable = |job: &Job, _: u32, random| {
        let at = job.attempt().unwrap().dispatched_at;
        life::finish(job, &report(Status::Retryable), &Limits::default(), at, random).unwrap()
    };
    let unheard = |job: &Job, tries, random| {
        life::unheard(job, tries, job.attempt().unwrap().dispatched_at, random).unwrap()
    };
    let doubling = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
    let (failed, tries, delays) = tried(retryable);
    assert_eq!((tries, &delays[..7], delays.last()), (50, &doubling[..], Some(&30_000)));
    // A packet that nobody heard goes back at once the first time: ADR 0004.
    assert_is_page(WAITING);
    let (unheard, tries, delays) = tried(unheard);
    assert_eq!((tries, delays[0], &delays[1..8], delays.last()), (50, 0, &doubling[..], Some(&30_000)));
    // A job that found nobody is not tried on that schedule, and given up when it would have been used up.
    let waits = judged(Decision::Allow);
    let end = backoff::exhausted_at(NOW);
    assert_eq!(end.since(NOW), 1_000 + 2_000 + 4_000 + 8_000 + 16_000 + 45 * 30_000);
    let Ok(Due::Change(nobody)) = life::pass_time(&waits, &Limits::default(), Some(Reason::NoWorkers), end)
    else {
        panic!("it waits for ever")
    };
    for (job, reason) in [
        (&failed, Reason::MaxRetriesExceeded),
        (&unheard, Reason::DispatchFailed),
        (&*nobody, Reason::NoWorkers),
    ] {
        let letter = job.dead_letter().expect("it is a dead letter");
        assert_eq!((job.state(), letter.reason_code), (State::Failed, Some(reason)));
        assert!(job.owed.dead_letter, "and those who watch are told");
    }
}

#[test]
fn an_approval_is_a_person_and_a_hash_never_a_label() {
    let document: Document =
        serde_json::from_value(json!({"rules": [{"id": "ask", "decision": "require_approval"}]})).unwrap();
    let policy = Policy::new(document, b"").unwrap();
    let mut request = Request::plain("j", "job.pay");
    request.labels.insert("approval_granted".to_owned(), "true".to_owned());
    request.labels.insert("approval_job_hash".to_owned(), job_hash(&request));
    let verdict = policy.evaluate(&request);
    assert_eq!(verdict.decision, Decision::RequireApproval, "whoever asks cannot grant it to themselves");

    let waits = judged(Decision::RequireApproval);
    assert_eq!(waits.state(), State::ApprovalRequired);
    let bound = |hash: String| Answer { job_hash: Some(hash), ..Answer::by("ann") };
    let forged = life::approve(&waits, &bound("0".repeat(64)), recorded(Decision::Allow), NOW);
    assert_eq!(forged, Err(Refusal::Approval(Conflict::StaleRequest)));
    let approved =
        life::approve(&waits, &bound(job_hash(&waits.request)), recorded(Decision::RequireApproval), NOW)
            .unwrap();
    let past: Vec<_> = approved.marks.iter().map(|mark| (mark.event, mark.state)).collect();
    assert_eq!(
        past[2..],
        [(Event::Approve, State::Pending), (Event::Allow, State::Scheduled)],
        "it goes through PENDING and is judged like any other"
    );
}

#[test]
fn a_job_goes_down_the_middle_of_the_diagram() {
    assert_eq!(dispatched().state(), State::Dispatched);
    let done = life::finish(&running(), &report(Status::Succeeded), &Limits::default(), NOW, 0).unwrap();
    let states: Vec<String> = done.marks.iter().map(|mark| mark.state.to_string()).collect();
    assert_eq!(states, ["PENDING", "SCHEDULED", "DISPATCHED", "RUNNING", "SUCCEEDED"]);
}
