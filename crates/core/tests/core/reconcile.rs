//! What is overdue, what is stuck, and the numbers that others rely on.

use reveille_core::approval::{Choice, Decided};
use reveille_core::id::WorkerId;
use reveille_core::job::{Job, Phase, State};
use reveille_core::life::{self, Destination, Limits};
use reveille_core::policy::{Decision, Policy, RecordedVerdict, Verdict};
use reveille_core::reconcile::{
    BATCH, ITERATIONS_MAX, LOCK_TTL_MS, MARGIN_MS, PENDING_AGE_MS, POLL_MS, RECONCILER_LOCK, REPLAYER_LOCK,
    TRIES_MAX, is_overdue, is_stuck,
};
use reveille_core::request::Request;
use reveille_core::time::Millis;

const NOW: Millis = Millis(10_000_000);
const DEADLINE_MS: i64 = 60_000;

fn limits() -> Limits {
    Limits { dispatched_ms: 300_000, running_ms: 900_000, approval_ms: Some(600_000), ..Limits::default() }
}

/// A job that has been in a state since then.
fn job(state: State, since: Millis) -> Job {
    with(&Request::plain("j", "job.echo"), state, since)
}

fn with(request: &Request, state: State, since: Millis) -> Job {
    let judged = |decision| {
        let verdict = Verdict { decision, ..Policy::builtin().evaluate(request) };
        let recorded = RecordedVerdict { verdict, checked_at: since };
        life::judge(&life::submit(request.clone(), since), recorded, since).unwrap()
    };
    let place = Destination { worker: Some(WorkerId::known("w")), pool: None };
    let dispatched = || life::assign(&judged(Decision::Allow), &place, since).unwrap();
    match state {
        State::Pending => judged(Decision::Throttle),
        State::ApprovalRequired => judged(Decision::RequireApproval),
        State::Scheduled => judged(Decision::Allow),
        State::Dispatched => dispatched(),
        State::Running => life::start(&dispatched(), 1, None, since).unwrap(),
        State::Denied => judged(Decision::Deny),
        other => unreachable!("no row needs {other}"),
    }
}

#[test]
fn the_numbers_are_the_reference_s() {
    let rows = [
        ("poll interval", POLL_MS, 30_000),
        ("lock TTL, twice the poll interval", LOCK_TTL_MS, 60_000),
        ("iterations a tick", ITERATIONS_MAX as i64, 100),
        ("batch", BATCH as i64, 200),
        ("tries a job", i64::from(TRIES_MAX), 3),
        ("pending age, two minutes", PENDING_AGE_MS, 120_000),
    ];
    for (row, ours, theirs) in rows {
        assert_eq!(ours, theirs, "{row}");
    }
    assert_eq!([RECONCILER_LOCK, REPLAYER_LOCK], ["cordum:reconciler:default", "cordum:replayer:pending"]);
    const { assert!(MARGIN_MS < POLL_MS, "what was missed is found in the pass after the next at the latest") };
}

#[test]
fn the_reconciler_ends_what_has_had_its_time() {
    let limits = limits();
    // What the job is, and how long after it came there its time is over; never, for some.
    let rows = [
        ("longer dispatched than allowed", job(State::Dispatched, NOW), Some(limits.dispatched_ms)),
        ("longer running than allowed", job(State::Running, NOW), Some(limits.running_ms)),
        ("past its deadline in any state", due_at_its_deadline(State::Running), Some(DEADLINE_MS)),
        ("past its deadline while it waits", due_at_its_deadline(State::Scheduled), Some(DEADLINE_MS)),
        ("past its deadline, not judged", due_at_its_deadline(State::Pending), Some(DEADLINE_MS)),
        ("out of tries", job(State::Scheduled, NOW), Some(31_000 + 45 * 30_000)),
        ("not decided by anybody in time", job(State::ApprovalRequired, NOW), limits.approval_ms),
        ("throttled: that is the replayer's", job(State::Pending, NOW), None),
        ("ended", job(State::Denied, NOW), None),
    ];
    for (row, job, over_after_ms) in rows {
        let Some(over_after_ms) = over_after_ms else {
            assert!(!is_overdue(&job, &limits, NOW + 1_000_000_000), "{row}");
            continue;
        };
        let over_at = NOW + over_after_ms;
        assert!(!is_overdue(&job, &limits, over_at), "{row}: the timer has this moment");
        assert!(!is_overdue(&job, &limits, over_at + MARGIN_MS - 1), "{row}: and a little longer");
        assert!(is_overdue(&job, &limits, over_at + MARGIN_MS), "{row}: then it has missed it");
    }
}

fn due_at_its_deadline(state: State) -> Job {
    let mut request = Request::plain("j", "job.echo");
    request.budget.deadline_ms = DEADLINE_MS;
    with(&request, state, NOW)
}

#[test]
fn the_replayer_moves_on_what_stands_still_for_two_minutes() {
    let decided = Some(Decided {
        choice: Choice::Approve,
        by: String::new(),
        key: None,
        at: NOW,
        comment: String::new(),
    });
    let approved = Job { decided, ..job(State::ApprovalRequired, NOW) };
    let throttled = Job {
        phase: Phase::Pending { judge_at: NOW + 900_000, unanswered: 0, throttled: 0 },
        ..job(State::Pending, NOW)
    };
    let held_back = Phase::Scheduled { waiting_since: NOW, not_before: NOW + 900_000 };
    let paid = life::settled(&job(State::Denied, NOW));
    let rows = [
        ("not judged", job(State::Pending, NOW), true),
        ("throttled into the future", throttled, false),
        ("approved, and still waiting for it", approved, true),
        ("waiting for a person", job(State::ApprovalRequired, NOW), false),
        ("waiting for a worker", job(State::Scheduled, NOW), true),
        ("waiting out a delay", Job { phase: held_back, ..job(State::Scheduled, NOW) }, false),
        ("at a worker", job(State::Dispatched, NOW), false),
        ("at work", job(State::Running, NOW), false),
        ("ended, with a word still owed", job(State::Denied, NOW), true),
        ("ended", paid, false),
    ];
    for (row, job, is_meant) in rows {
        assert!(!is_stuck(&job, NOW + PENDING_AGE_MS - 1), "{row}: too early");
        assert_eq!(is_stuck(&job, NOW + PENDING_AGE_MS), is_meant, "{row}");
    }
}

#[test]
fn a_job_from_a_clock_that_was_set_back_is_moved_on() {
    for state in [State::Pending, State::Scheduled, State::Dispatched, State::Running] {
        let job = job(state, NOW);
        assert!(!is_stuck(&job, NOW - MARGIN_MS), "{state}: clocks may be a little apart");
        assert!(is_stuck(&job, NOW - MARGIN_MS - 1), "{state}");
    }
}
