//! The spans that are told of a job.

use reveille_core::approval::Answer;
use reveille_core::id::WorkerId;
use reveille_core::job::{Job, MARKS_MAX};
use reveille_core::life::{self, Destination, Limits, Report, Status};
use reveille_core::output::{OutputDecision, OutputVerdict, Stage};
use reveille_core::policy::{Decision, Policy, RecordedVerdict, Verdict};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_core::trace::{
    ATTRIBUTE_LEN_MAX, JobTrace, Ratio, SpanId, SpanMoment, SpanOutcome, SpanRecord, TraceContext,
    TraceParent, is_told, spans,
};
use std::collections::BTreeSet;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn limits() -> Limits {
    Limits::default()
}

fn judged(decision: Decision, at: i64) -> RecordedVerdict {
    let verdict = Policy::builtin().evaluate(&Request::plain("j", "job.echo"));
    RecordedVerdict { verdict: Verdict { decision, ..verdict }, checked_at: Millis(at) }
}

fn new(at: i64) -> Job {
    let mut request = Request::plain("j", "job.echo");
    request.follow(TraceContext::read([CALLER.as_bytes()], [&b"a=1"[..]]));
    life::submit(request, Millis(at))
}

fn assigned(job: &Job, worker: &str, at: i64) -> Job {
    let to = Destination { worker: Some(WorkerId::known(worker)), pool: None };
    life::assign(job, &to, Millis(at)).unwrap()
}

fn reported(job: &Job, worker: &str, status: Status, at: i64) -> Job {
    let report = Report {
        worker: WorkerId::known(worker),
        attempt: None,
        status,
        result_ptr: "redis://res:j".into(),
        error_code: String::new(),
        error_message: "é".repeat(ATTRIBUTE_LEN_MAX),
        execution_ms: 2,
        made: life::Made::default(),
        trace: TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-aaaaaaaaaaaaaaaa-01"),
    };
    life::finish(job, &report, &limits(), Millis(at), 0).unwrap()
}

/// One line a span: where it hangs, its name, its times, how it went.
fn lines(job: &Job) -> Vec<String> {
    let trace = JobTrace::of(&job.request, Ratio::ALL);
    let told = spans(job, &trace);
    let names: BTreeSet<SpanId> = told.iter().map(|span| span.span).collect();
    assert_eq!(names.len(), told.len(), "every span has a name of its own");
    assert!(told.iter().all(|span| span.trace == trace.id && span.from <= span.to));
    let root = told.first().map(|span| span.span);
    let line = |span: &SpanRecord| {
        let under = match span.parent {
            parent if parent == root => "  ",
            parent if parent == trace.caller => "",
            _ => "? ",
        };
        let went = match &span.outcome {
            SpanOutcome::Unset => "",
            SpanOutcome::Good => " good",
            SpanOutcome::Bad(_) => " bad",
        };
        let links = if span.links.is_empty() { "" } else { " linked" };
        format!("{under}{} {}..{}{went}{links}", span.name, span.from.0, span.to.0)
    };
    told.iter().map(line).collect()
}

#[test]
fn a_plain_job_is_told_as_it_went() {
    let queued = life::judge(&new(10), judged(Decision::Allow, 10), Millis(10)).unwrap();
    let given = assigned(&queued, "w", 30);
    assert_eq!(lines(&given), [""; 0], "it has not ended");
    let done = reported(&given, "w", Status::Succeeded, 45);
    assert!(is_told(&done));
    assert_eq!(
        lines(&done),
        ["job.echo 10..45 good", "  policy 10..10", "  queued 10..30", "  attempt 30..45 good linked",]
    );
    let trace = JobTrace::of(&done.request, Ratio::ALL);
    let attempt = &spans(&done, &trace)[3];
    assert_eq!(attempt.span, trace.attempt(1).parent.span, "what the worker was told");
    assert_eq!(attempt.moments, [SpanMoment { at: Millis(43), name: "running".to_owned() }]);
    assert_eq!(attempt.state.as_ref().unwrap().as_str(), "a=1");
}

#[test]
fn approvals_retries_and_output_checks_are_told_too() {
    let asked = life::judge(&new(1), judged(Decision::RequireApproval, 1), Millis(1)).unwrap();
    let answer =
        Answer { by: "ann".into(), key: None, comment: String::new(), job_hash: None, policy_snapshot: None };
    let job = life::approve(&asked, &answer, judged(Decision::RequireApproval, 50), Millis(50)).unwrap();
    let job = reported(&assigned(&job, "w", 60), "w", Status::Retryable, 70);
    let job = life::lose_worker(&assigned(&job, "x", 5_000), 2, &limits(), Millis(6_000)).unwrap();
    let job = reported(&assigned(&job, "y", 6_500), "y", Status::Succeeded, 7_000);
    let job = life::await_scan(&job);
    assert!(!is_told(&job), "its result is still to be looked at");
    let verdict = OutputVerdict {
        decision: OutputDecision::Quarantine,
        stage: Stage::Async,
        rule_id: "r".into(),
        reason: "a secret".into(),
        snapshot: "s".into(),
        findings: Vec::new(),
    };
    let job = life::check_output(&job, verdict, None, Millis(7_100)).unwrap();
    assert!(is_told(&job));
    assert_eq!(
        lines(&job),
        [
            "job.echo 1..7000 bad",
            "  policy 1..1",
            "  policy 50..50",
            "  approval 1..50",
            "  queued 50..60",
            "  attempt 60..70 bad",
            "  queued 70..5000",
            "  attempt 5000..6000 bad",
            "  queued 6000..6500",
            "  attempt 6500..7000 good linked",
            "  output 7000..7100",
        ]
    );
}

#[test]
fn what_nobody_ran_is_told_without_attempts() {
    let denied = life::judge(&new(1), judged(Decision::Deny, 1), Millis(1)).unwrap();
    assert_eq!(lines(&denied), ["job.echo 1..1 bad", "  policy 1..1"]);
    let cancelled = life::cancel(&new(1), "ann", "", Millis(9)).unwrap();
    assert_eq!(lines(&cancelled), ["job.echo 1..9"]);
}

#[test]
fn a_long_past_is_told_as_far_as_it_is_kept_and_attempts_keep_their_numbers() {
    let mut job = life::judge(&new(0), judged(Decision::Allow, 0), Millis(0)).unwrap();
    let mut now = 0;
    while !job.state().is_terminal() {
        now += 40_000;
        let given = assigned(&job, "w", now);
        let started = life::start(&given, given.attempts.len() as u32, None, Millis(now + 1)).unwrap();
        job = reported(&started, "w", Status::Retryable, now + 2);
    }
    assert!(job.marks.len() <= MARKS_MAX && job.attempts.len() == 50);
    let trace = JobTrace::of(&job.request, Ratio::ALL);
    let told = spans(&job, &trace);
    let last = told.iter().rfind(|span| span.name == "attempt").unwrap();
    assert_eq!(last.span, trace.attempt(50).parent.span);
    let SpanOutcome::Bad(words) = &last.outcome else { panic!("{last:?}") };
    assert!(words.len() <= ATTRIBUTE_LEN_MAX);
    assert!(told.len() <= 2 * MARKS_MAX);
    lines(&job);
}
