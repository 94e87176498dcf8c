//! A job from event to event, with its limits, its retries and what is kept of it.

mod saga;

use reveille_core::approval::Answer;
use reveille_core::backoff;
use reveille_core::id::WorkerId;
use reveille_core::job::{Event, Job, MARKS_MAX, Mark, Phase, Progress, Refusal, State};
use reveille_core::life::{
    Destination, Due, Limits, Made, Report, Status, approve, assign, await_scan, cancel, check_output,
    deny_unasked, discard, due, finish, judge, lose_worker, pass_time, progress, reject, release, set_back,
    settled, start, submit, unheard, unjudged,
};
use reveille_core::output::{OutputDecision, OutputVerdict, Stage};
use reveille_core::policy::{Decision, Policy, RecordedVerdict, Verdict};
use reveille_core::quota::TenantQuota;
use reveille_core::reason::Reason;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_core::trace::{JobTrace, Ratio, SpanId, TraceParent};

const NOW: Millis = Millis(1_000_000);
const LIMITS: Limits = Limits {
    dispatched_ms: 300_000,
    running_ms: 9_000_000,
    approval_ms: None,
    retries_max: 50,
    workers_lost_max: 3,
};

fn verdict(decision: Decision) -> RecordedVerdict {
    let verdict = Policy::builtin().evaluate(&Request::plain("j", "job.echo"));
    RecordedVerdict { verdict: Verdict { decision, ..verdict }, checked_at: NOW }
}

fn to(worker: &str) -> Destination {
    Destination { worker: (worker != "-").then(|| WorkerId::known(worker)), pool: None }
}

fn report(worker: &str, attempt: Option<u64>, status: Status) -> Report {
    Report {
        worker: WorkerId::known(worker),
        attempt,
        status,
        result_ptr: "redis://res:j".into(),
        error_code: String::new(),
        error_message: "it broke".into(),
        execution_ms: 5,
        trace: None,
        made: Made::default(),
    }
}

fn scheduled() -> Job {
    judge(&submit(Request::plain("j", "job.echo"), NOW), verdict(Decision::Allow), NOW).unwrap()
}

fn running(worker: &str) -> Job {
    let job = assign(&scheduled(), &to(worker), NOW).unwrap();
    start(&job, 1, None, NOW).unwrap()
}

#[test]
fn a_stored_job_has_its_verdicts_under_the_name_that_data_files_have() {
    let stored = serde_json::to_value(scheduled()).unwrap();
    assert_eq!(stored["judgements"].as_array().map(Vec::len), Some(1));
    assert_eq!(serde_json::from_value::<Job>(stored).unwrap(), scheduled());
}

#[test]
fn a_plain_job_goes_from_submit_to_succeeded_and_remembers_it() {
    let job = finish(&running("w"), &report("w", Some(1), Status::Succeeded), &LIMITS, NOW + 9, 0).unwrap();
    let past: Vec<String> = job.marks.iter().map(|mark| format!("{}→{}", mark.event, mark.state)).collect();
    assert_eq!(
        past,
        ["submit→PENDING", "allow→SCHEDULED", "assign→DISPATCHED", "start→RUNNING", "succeed→SUCCEEDED"]
    );
    let by = |mark: &Mark| mark.worker.as_ref().map(ToString::to_string).unwrap_or_default();
    assert_eq!(job.marks.iter().map(by).collect::<Vec<_>>(), ["", "", "w", "w", "w"]);
    let ending = job.ending().unwrap();
    assert_eq!(
        (ending.result_ptr.as_str(), ending.worker.as_ref().unwrap().as_str()),
        ("redis://res:j", "w")
    );
    assert!(!job.is_live());
    assert_eq!(job.dead_letter(), None);
}

#[test]
fn a_workers_own_trace_is_remembered_and_ours_handed_back_is_not() {
    let job = running("w");
    let given = JobTrace::of(&job.request, Ratio::ALL).attempt(1).parent;
    let own = TraceParent { span: SpanId::new([7; 8]).unwrap(), ..given };
    for (said, kept) in [(None, None), (Some(given), None), (Some(own), Some(own))] {
        let report = Report { trace: said, ..report("w", None, Status::Succeeded) };
        let job = finish(&job, &report, &LIMITS, NOW, 0).unwrap();
        assert_eq!(job.ending().unwrap().trace, kept);
    }
}

#[test]
fn policy_decides_where_a_new_job_goes() {
    let new = submit(Request::plain("j", "job.echo"), NOW);
    for (decision, state) in [
        (Decision::Allow, State::Scheduled),
        (Decision::AllowWithConstraints, State::Scheduled),
        (Decision::RequireApproval, State::ApprovalRequired),
        (Decision::Throttle, State::Pending),
        (Decision::Deny, State::Denied),
    ] {
        let job = judge(&new, verdict(decision), NOW).unwrap();
        assert_eq!(job.state(), state);
        assert_eq!(job.verdicts.len(), 1, "every verdict is kept");
        assert_eq!(job.dead_letter().is_some(), decision == Decision::Deny);
    }
}

#[test]
fn an_approved_job_is_judged_again_and_a_new_denial_still_denies() {
    let waiting =
        judge(&submit(Request::plain("j", "job.echo"), NOW), verdict(Decision::RequireApproval), NOW)
            .unwrap();
    let ann = Answer::by("ann");
    let approved = |decision| approve(&waiting, &ann, verdict(decision), NOW).unwrap();
    for decision in [Decision::Allow, Decision::RequireApproval] {
        assert_eq!(approved(decision).state(), State::Scheduled);
        assert_eq!(approved(decision).approved_by(), Some("ann"));
    }
    let throttled = approved(Decision::Throttle);
    assert_eq!(
        due(&throttled, &LIMITS, NOW),
        Some(NOW + backoff::THROTTLE_MS),
        "an approved job is not forgotten"
    );
    assert_eq!(judge(&throttled, verdict(Decision::RequireApproval), NOW).unwrap().state(), State::Scheduled);
    assert_eq!(judge(&throttled, verdict(Decision::Deny), NOW).unwrap().state(), State::Denied);
    assert_eq!(approved(Decision::Deny).state(), State::Denied);
    let rejected = reject(&waiting, &Answer::by("bob"), NOW).unwrap();
    assert_eq!(
        (rejected.state(), rejected.ending().unwrap().reason),
        (State::Denied, Some(Reason::ApprovalRejected))
    );
    assert!(approve(&rejected, &ann, verdict(Decision::Allow), NOW).is_err());
}

#[test]
fn only_a_worker_that_was_given_the_job_may_end_it() {
    let job = running("w");
    let try_with =
        |worker: &str, attempt| finish(&job, &report(worker, attempt, Status::Succeeded), &LIMITS, NOW, 0);
    assert!(try_with("w", None).is_ok() && try_with("w", Some(1)).is_ok());
    assert_eq!(try_with("x", None), Err(Refusal::ForeignWorker("x".into())));
    assert_eq!(try_with("x", Some(1)), Err(Refusal::ForeignWorker("x".into())));
    assert_eq!(try_with("w", Some(2)), Err(Refusal::StaleAttempt { got: 2, now: 1 }));
    assert!(try_with("w", Some(0)).is_err());
    assert!(
        finish(&scheduled(), &report("w", None, Status::Succeeded), &LIMITS, NOW, 0).is_err(),
        "it was never given out"
    );
    let group = running("-");
    assert!(finish(&group, &report("anyone", None, Status::Succeeded), &LIMITS, NOW, 0).is_ok());
}

#[test]
fn a_lost_attempts_success_counts_and_its_failure_does_not() {
    let lost = lose_worker(&running("w"), 1, &LIMITS, NOW).unwrap();
    assert_eq!(lost.state(), State::Scheduled);
    assert!(finish(&lost, &report("w", Some(1), Status::Succeeded), &LIMITS, NOW, 0).is_ok());
    assert!(finish(&lost, &report("w", Some(1), Status::Failed), &LIMITS, NOW, 0).is_err());
    let again = assign(&lost, &to("x"), NOW).unwrap();
    assert!(finish(&again, &report("w", None, Status::Failed), &LIMITS, NOW, 0).is_err());
    assert_eq!(
        finish(&again, &report("x", Some(2), Status::Failed), &LIMITS, NOW, 0).unwrap().state(),
        State::Failed
    );
}

#[test]
fn a_second_result_and_a_result_after_cancel_change_nothing() {
    let job = running("w");
    let done = finish(&job, &report("w", None, Status::Succeeded), &LIMITS, NOW, 0).unwrap();
    assert!(finish(&done, &report("w", None, Status::Failed), &LIMITS, NOW, 0).is_err());
    let cancelled = cancel(&job, "ann", "", NOW).unwrap();
    assert!(cancelled.owed.cancel && cancelled.is_live(), "workers must still be told");
    assert!(finish(&cancelled, &report("w", None, Status::Succeeded), &LIMITS, NOW, 0).is_err());
    assert!(!settled(&cancelled).is_live());
}

#[test]
fn a_retryable_failure_waits_out_its_backoff_and_ends_after_fifty() {
    let mut job = scheduled();
    let mut now = NOW;
    for tries in 1..=50 {
        assert_eq!(pass_time(&job, &LIMITS, None, now).unwrap(), Due::Place);
        job = assign(&job, &to("w"), now).unwrap();
        job = finish(&job, &report("w", Some(tries), Status::Retryable), &LIMITS, now, 250).unwrap();
        if let Phase::Scheduled { not_before, .. } = job.phase {
            assert_eq!(not_before, now + backoff::delay_ms(tries as u32 - 1, 250));
            assert_eq!(assign(&job, &to("w"), now), Err(Refusal::TooEarly));
            assert_eq!(due(&job, &LIMITS, now), Some(not_before));
            now = not_before;
        }
    }
    assert_eq!(job.ending().unwrap().reason, Some(Reason::MaxRetriesExceeded));
    assert!(job.dead_letter().is_some() && job.marks.len() <= MARKS_MAX);
}

#[test]
fn the_third_worker_that_dies_with_a_job_ends_it() {
    let mut job = scheduled();
    for number in 1..=3 {
        job = assign(&job, &to("w"), NOW).unwrap();
        assert!(lose_worker(&job, number + 1, &LIMITS, NOW).is_err(), "another attempt is meant");
        job = lose_worker(&job, number, &LIMITS, NOW).unwrap();
    }
    assert_eq!((job.state(), job.ending().unwrap().reason), (State::Failed, Some(Reason::WorkerLost)));
}

#[test]
fn a_packet_that_nobody_heard_goes_back_at_once_and_then_slower() {
    let mut job = assign(&scheduled(), &to("w"), NOW).unwrap();
    let mut delays = Vec::new();
    for number in 1..=4 {
        job = unheard(&job, number, NOW, 0).unwrap();
        let Phase::Scheduled { not_before, .. } = job.phase else { panic!("{job:?}") };
        delays.push(not_before.since(NOW));
        job = assign(&job, &to("w"), not_before).unwrap();
    }
    assert_eq!(delays, [0, 1000, 2000, 4000]);
}

#[test]
fn time_ends_what_nobody_else_does() {
    let check = |job: &Job, after: i64, words: &str| {
        assert_eq!(
            pass_time(job, &LIMITS, Some(Reason::NoWorkers), NOW + after - 1)
                .map(|due| matches!(due, Due::Change(_))),
            Ok(false)
        );
        let Due::Change(ended) = pass_time(job, &LIMITS, Some(Reason::NoWorkers), NOW + after).unwrap()
        else {
            panic!("nothing happened")
        };
        assert!(ended.ending().unwrap().words.contains(words), "{ended:?}");
        assert_eq!(due(job, &LIMITS, NOW), Some(NOW + after));
        assert!(ended.dead_letter().is_some());
        *ended
    };
    let waiting = check(&scheduled(), 1_381_000, "50 tries");
    assert_eq!(
        waiting.ending().unwrap().reason,
        Some(Reason::NoWorkers),
        "what it waited for is what it failed of"
    );
    check(&assign(&scheduled(), &to("w"), NOW).unwrap(), 300_000, "nothing more was heard");
    assert!(check(&running("w"), 9_000_000, "ran longer").owed.cancel, "the worker is told to stop");
    let mut request = Request::plain("j", "job.echo");
    request.budget.deadline_ms = 700;
    let hurried = judge(&submit(request, NOW), verdict(Decision::Allow), NOW).unwrap();
    assert_eq!(check(&hurried, 700, "deadline").state(), State::Timeout);
}

#[test]
fn progress_is_told_without_filling_the_past() {
    let mut job = running("w");
    for percent in 1..=100 {
        let told = Progress { percent, message: String::new() };
        job = progress(&job, &WorkerId::known("w"), None, told, NOW + i64::from(percent)).unwrap();
    }
    assert_eq!(job.attempt().unwrap().progress.as_ref().unwrap().percent, 100);
    assert_eq!(job.marks.len(), 5);
    assert_eq!(job.since(), NOW, "it has been running since it started");
    let told = Progress { percent: 1, message: String::new() };
    assert!(progress(&job, &WorkerId::known("x"), None, told, NOW).is_err());
}

fn said(decision: OutputDecision) -> OutputVerdict {
    OutputVerdict {
        decision,
        stage: Stage::Async,
        rule_id: "r".into(),
        reason: "a secret".into(),
        snapshot: "s".into(),
        findings: Vec::new(),
    }
}

fn done() -> Job {
    await_scan(&finish(&running("w"), &report("w", None, Status::Succeeded), &LIMITS, NOW, 0).unwrap())
}

#[test]
fn a_result_in_quarantine_is_kept_and_shown_to_nobody_until_it_is_released() {
    assert!(done().is_live() && done().state() == State::Succeeded);
    for decision in [OutputDecision::Quarantine, OutputDecision::Deny, OutputDecision::Redact] {
        let held = check_output(&done(), said(decision), None, NOW).unwrap();
        let ending = held.ending().unwrap();
        assert_eq!((held.state(), ending.result_ptr.as_str()), (State::OutputQuarantined, ""));
        assert_eq!(ending.reason, Some(Reason::OutputQuarantinedAsync));
        assert!(held.dead_letter().is_some() && held.owed.dead_letter && !held.owed.output_scan);
        assert!(check_output(&held, said(decision), None, NOW).is_err(), "once is enough");
        let out = release(&held, "ann", "it is fine", NOW).unwrap();
        assert_eq!(
            (out.state(), out.ending().unwrap().result_ptr.as_str()),
            (State::Succeeded, "redis://res:j")
        );
        assert!(out.dead_letter().is_none() && !out.is_live());
        let gone = discard(&held, "ann", "", NOW).unwrap();
        assert_eq!(
            (gone.state(), gone.output.as_ref().unwrap().original_ptr.as_str()),
            (State::OutputQuarantined, "")
        );
        for resolved in [out, gone] {
            assert!(
                release(&resolved, "bob", "", NOW).is_err() && discard(&resolved, "bob", "", NOW).is_err()
            );
        }
    }
}

#[test]
fn a_redacted_copy_takes_the_results_place() {
    let after =
        check_output(&done(), said(OutputDecision::Redact), Some("redis://res:j:r".into()), NOW).unwrap();
    assert_eq!(
        (after.state(), after.ending().unwrap().result_ptr.as_str()),
        (State::Succeeded, "redis://res:j:r")
    );
    assert_eq!(after.output.as_ref().unwrap().original_ptr, "redis://res:j");
    assert!(!after.is_live());
    let fine = check_output(&done(), said(OutputDecision::Allow), None, NOW).unwrap();
    assert_eq!((fine.marks.len(), fine.is_live()), (done().marks.len(), false), "no news is no mark");
    assert!(check_output(&running("w"), said(OutputDecision::Allow), None, NOW).is_err());
}

#[test]
fn a_clock_that_is_set_back_makes_nothing_late() {
    let back = NOW - 3_600_000;
    assert_eq!(set_back(&scheduled(), NOW), None, "its past is in the past");
    let ran = set_back(&running("w"), back).unwrap();
    assert_eq!(due(&ran, &LIMITS, back), Some(back + LIMITS.running_ms));
    let given = set_back(&assign(&scheduled(), &to("w"), NOW).unwrap(), back).unwrap();
    assert_eq!(due(&given, &LIMITS, back), Some(back + LIMITS.dispatched_ms));
    let failed = report("w", Some(1), Status::Retryable);
    let waits = finish(&running("w"), &failed, &LIMITS, NOW, 0).unwrap();
    let delay_ms = due(&waits, &LIMITS, NOW).unwrap().since(NOW);
    assert!(delay_ms > 0);
    let waits = set_back(&waits, back).unwrap();
    assert_eq!(due(&waits, &LIMITS, back), Some(back + delay_ms));
    assert!(waits.marks.iter().all(|mark| mark.at == back) && waits.created_at == back);
}

#[test]
fn a_job_that_nobody_can_judge_waits_longer_each_time_and_keeps_one_mark() {
    let mut job = submit(Request::plain("j", "job.echo"), Millis(0));
    let mut now = Millis(0);
    for (tries, delay_ms) in [5_000, 10_000, 20_000, 30_000, 30_000].into_iter().enumerate() {
        job = unjudged(&job, "it hangs", now, 0).unwrap();
        let Phase::Pending { judge_at, unanswered, .. } = job.phase else { panic!("{:?}", job.phase) };
        assert_eq!((judge_at.since(now), unanswered as usize), (delay_ms, tries + 1));
        assert!(job.verdicts.is_empty());
        now = judge_at;
    }
    assert_eq!(job.marks.iter().filter(|mark| mark.event == Event::Unjudged).count(), 1);
    let judged = judge(&job, verdict(Decision::Allow), now).unwrap();
    assert_eq!(judged.state(), State::Scheduled);
    assert!(unjudged(&judged, "too late", now, 0).is_err());
}

#[test]
fn a_throttled_job_is_judged_ever_later_leaves_one_mark_and_ends_after_fifty_tries() {
    let mut job = submit(Request::plain("j", "job.echo"), Millis(0));
    let (mut now, mut delays) = (Millis(0), Vec::new());
    while let Phase::Pending { .. } = job.phase {
        job = judge(&job, verdict(Decision::Throttle), now).unwrap();
        if let Phase::Pending { judge_at, .. } = job.phase {
            delays.push(judge_at.since(now));
            now = judge_at;
        }
    }
    assert_eq!(delays[..5], [5_000, 10_000, 20_000, 30_000, 30_000]);
    assert_eq!(delays.len() as u32, backoff::TRIES_MAX - 1);
    let ending = job.ending().unwrap();
    assert_eq!((ending.state, ending.reason), (State::Failed, Some(Reason::MaxSchedulingRetries)));
    assert_eq!(ending.words, "policy throttled it 50 times");
    let events: Vec<Event> = job.marks.iter().map(|mark| mark.event).collect();
    assert_eq!(events, [Event::Submit, Event::Throttle, Event::GiveUp]);
    assert_eq!((job.marks[1].at, job.verdicts.len()), (Millis(0), 1));
    assert!(job.dead_letter().is_some() && job.owed.dead_letter);
}

#[test]
fn a_kernel_that_is_away_between_two_throttles_does_not_start_the_count_again() {
    let throttled = |job: &Job| judge(job, verdict(Decision::Throttle), NOW).unwrap();
    let twice = throttled(&throttled(&submit(Request::plain("j", "job.echo"), NOW)));
    let again = throttled(&unjudged(&twice, "away", NOW, 0).unwrap());
    assert!(matches!(again.phase, Phase::Pending { throttled: 3, unanswered: 0, .. }), "{:?}", again.phase);
    let allowed = judge(&again, verdict(Decision::Allow), NOW).unwrap();
    assert_eq!(allowed.state(), State::Scheduled);
}

#[test]
fn a_job_that_nobody_more_can_be_asked_about_is_denied_with_a_verdict_that_says_so() {
    let asked = judge(&submit(Request::plain("j", "job.echo"), NOW), verdict(Decision::RequireApproval), NOW);
    let over = TenantQuota::Approvals.check(10, 10).unwrap_err();
    let denied = deny_unasked(&asked.unwrap(), &over, NOW).unwrap();
    let ending = denied.ending().unwrap();
    assert_eq!((ending.state, ending.reason), (State::Denied, Some(Reason::ApprovalQuota)));
    assert!(ending.words.contains("quota of approvals, which is 10"), "{}", ending.words);
    let said: Vec<Decision> = denied.verdicts.iter().map(|recorded| recorded.verdict.decision).collect();
    assert_eq!(said, [Decision::RequireApproval, Decision::Deny]);
    assert!(denied.dead_letter().is_some());
    let drafts = reveille_core::audit::of_step(None, &denied);
    let told: Vec<_> = drafts.iter().map(|draft| draft.decision).collect();
    assert_eq!(told, [Some(Decision::RequireApproval), Some(Decision::Deny)]);
    assert!(deny_unasked(&denied, &over, NOW).is_err());
}

fn bounded(budgets: reveille_core::policy::Budgets) -> Job {
    let mut recorded = verdict(Decision::AllowWithConstraints);
    let constraints = reveille_core::policy::Constraints { budgets, ..Default::default() };
    recorded.verdict.constraints = Some(Box::new(constraints));
    let job = judge(&submit(Request::plain("j", "job.echo"), NOW), recorded, NOW).unwrap();
    start(&assign(&job, &to("w"), NOW).unwrap(), 1, None, NOW).unwrap()
}

#[test]
fn policy_bounds_how_often_a_job_is_tried() {
    use reveille_core::policy::Budgets;
    for (by_policy, by_topic, attempts) in [(0, 50, 50), (1, 50, 2), (3, 50, 4), (9, 3, 3), (u32::MAX, 5, 5)]
    {
        let limits = Limits { retries_max: by_topic, ..LIMITS };
        let mut job = bounded(Budgets { max_retries: by_policy, ..Budgets::default() });
        let mut now = NOW;
        while job.state() == State::Running {
            job = finish(&job, &report("w", None, Status::Retryable), &limits, now, 0).unwrap();
            if let Phase::Scheduled { not_before, .. } = job.phase {
                now = not_before;
                job = assign(&job, &to("w"), now).unwrap();
                job = start(&job, job.attempts.len() as u32, None, now).unwrap();
            }
        }
        assert_eq!(job.attempts.len(), attempts, "{by_policy} and {by_topic}");
        assert_eq!(job.ending().unwrap().reason, Some(Reason::MaxRetriesExceeded));
    }
}

#[test]
fn policy_bounds_how_long_a_job_runs() {
    use reveille_core::policy::Budgets;
    for (by_policy, allowed) in [(0, LIMITS.running_ms), (700, 700), (i64::MAX, LIMITS.running_ms)] {
        let job = bounded(Budgets { max_runtime_ms: by_policy, ..Budgets::default() });
        assert_eq!(due(&job, &LIMITS, NOW), Some(NOW + allowed));
        assert_eq!(pass_time(&job, &LIMITS, None, NOW + allowed - 1), Ok(Due::Nothing));
        let Ok(Due::Change(job)) = pass_time(&job, &LIMITS, None, NOW + allowed) else {
            panic!("still running")
        };
        assert_eq!((job.state(), job.owed.cancel), (State::Timeout, true));
    }
}

#[test]
fn policy_bounds_how_large_a_result_is() {
    use reveille_core::policy::Budgets;
    let check = |allowed: i64, made: u64, state: State| {
        let job = bounded(Budgets { max_artifact_bytes: allowed, ..Budgets::default() });
        let mut told = report("w", Some(1), Status::Succeeded);
        told.made.largest_bytes = made;
        let job = finish(&job, &told, &LIMITS, NOW, 0).unwrap();
        assert_eq!(job.state(), state, "{made} of {allowed}");
        job
    };
    for (allowed, made) in [(0, u64::MAX), (100, 0), (100, 100), (-1, 5)] {
        let job = check(allowed, made, State::Succeeded);
        assert_eq!(job.ending().unwrap().result_ptr, "redis://res:j");
    }
    for (allowed, made) in [(100, 101), (1, u64::MAX)] {
        let job = check(allowed, made, State::Failed);
        let ending = job.ending().unwrap();
        assert_eq!((ending.reason, ending.result_ptr.as_str()), (Some(Reason::ArtifactTooLarge), ""));
        assert!(ending.words.contains(&format!("{made} bytes")), "{}", ending.words);
        assert!(job.owed.dead_letter && job.dead_letter().is_some());
    }
}

#[test]
fn a_lost_attempts_oversized_result_says_nothing_about_its_successor() {
    let budgets = reveille_core::policy::Budgets { max_artifact_bytes: 10, ..Default::default() };
    let job = lose_worker(&bounded(budgets), 1, &LIMITS, NOW).unwrap();
    let job = assign(&job, &to("w2"), NOW).unwrap();
    let mut told = report("w", Some(1), Status::Succeeded);
    told.made.largest_bytes = 11;
    assert!(matches!(finish(&job, &told, &LIMITS, NOW, 0), Err(Refusal::StaleAttempt { .. })));
}
