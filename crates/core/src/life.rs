//! A job's life, step by step. Each function takes a job as it stands and returns it as it would be,
//! or a refusal; it changes nothing. The shell commits the answer and sends what the job then owes.
//!
//! Not here: which worker takes a job (`placement`), what policy says (`policy`).

mod clock;
mod output;
mod report;
mod saga;

pub use clock::{Due, Limits, due, pass_time, set_back};
pub use output::{await_scan, check_output, discard, release};
pub use report::{Made, Report, Status, finish};
pub use saga::{saga_settled, stillborn};

use crate::approval::{Answer, Choice, Conflict};
use crate::backoff;
use crate::id::{PoolId, WorkerId};
use crate::identity::Identity;
use crate::job::{
    Attempt, Ending, Event, Job, MARKS_MAX, Mark, Owed, Phase, Progress, Refusal, State, VERDICTS_MAX, next,
};
use crate::policy::{Decision, RecordedVerdict, Verdict};
use crate::quota::OverQuota;
use crate::reason::Reason;
use crate::request::Request;
use crate::time::Millis;
use std::sync::Arc;

/// Workers that may die with a job before the job itself is taken for the cause.
pub const WORKERS_LOST_MAX: u32 = 3;

/// Where a job goes: to one worker, or to whoever of the topic's queue group takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub worker: Option<WorkerId>,
    pub pool: Option<PoolId>,
}

/// 1. A client submits it. Policy has not been asked yet.
pub fn submit(request: Request, now: Millis) -> Job {
    let mut job = Job {
        request: Arc::new(request),
        revision: 0,
        phase: pending(now),
        created_at: now,
        updated_at: now,
        attempts: Vec::new(),
        workers_lost: 0,
        decided: None,
        verdicts: Vec::new(),
        marks: Vec::new(),
        marks_made: 0,
        owed: Owed::default(),
        output: None,
    };
    mark(&mut job, Event::Submit, now, String::new());
    job
}

/// 2. Policy gives its verdict. No job leaves PENDING any other way, and the verdict stays with it.
///
/// It may give another while a person is asked: policy has changed, and so may the question.
pub fn judge(job: &Job, recorded: RecordedVerdict, now: Millis) -> Result<Job, Refusal> {
    let verdict = &recorded.verdict;
    let note = format!("{}: {}", verdict.rule_id, verdict.reason);
    let (event, phase) = match verdict.decision {
        // A gate is there to be asked about: nobody passes it because policy has nothing against it.
        Decision::Allow | Decision::AllowWithConstraints if job.request.is_gate() => {
            (Event::RequireApproval, Phase::ApprovalRequired)
        }
        Decision::Allow | Decision::AllowWithConstraints => (Event::Allow, waiting(now, now)),
        Decision::RequireApproval if job.approved_by().is_some() => (Event::Allow, waiting(now, now)),
        Decision::RequireApproval => (Event::RequireApproval, Phase::ApprovalRequired),
        Decision::Throttle => (Event::Throttle, throttled(job, now)),
        Decision::Deny => {
            (Event::Deny, ended(job, State::Denied, Some(Reason::SafetyDenied), verdict.reason.clone()))
        }
    };
    let mut judged = step(job, event, phase, now, note)?;
    // A question that is asked anew overwrites its last mark: the first says since when it is asked.
    if let [.., first, middle, last] = judged.marks.as_slice()
        && [first, middle, last].iter().all(|mark| mark.event == Event::RequireApproval)
    {
        judged.marks.remove(judged.marks.len() - 2);
    }
    if is_throttled_again(job, &recorded) {
        // The first mark says since when. Nothing new was decided, so nothing is added to the audit trail.
        judged.marks.pop();
        judged.marks_made -= 1;
        judged.verdicts.pop();
    }
    if judged.verdicts.len() >= VERDICTS_MAX {
        judged.verdicts.remove(0);
    }
    judged.verdicts.push(recorded);
    match judged.phase {
        Phase::Pending { throttled, .. } if throttled >= backoff::TRIES_MAX => {
            let words = format!("policy throttled it {throttled} times");
            fail(&judged, Reason::MaxSchedulingRetries, &words, now)
        }
        _ => Ok(judged),
    }
}

/// Whether policy says what it said the last time: later.
fn is_throttled_again(job: &Job, recorded: &RecordedVerdict) -> bool {
    let is_last = job.marks.last().is_some_and(|mark| mark.event == Event::Throttle);
    let (is, was) = (&recorded.verdict, job.last_verdict().map(|last| &last.verdict));
    is_last
        && is.decision == Decision::Throttle
        && was.is_some_and(|was| was.rule_id == is.rule_id && was.snapshot == is.snapshot)
}

/// Or policy cannot be asked. No verdict, no dispatch: it is asked again, with backoff.
pub fn unjudged(job: &Job, words: &str, now: Millis, random: u64) -> Result<Job, Refusal> {
    let (unanswered, throttled) = match job.phase {
        Phase::Pending { unanswered, throttled, .. } => (unanswered, throttled),
        _ => (0, 0),
    };
    let judge_at = now + backoff::unjudged_ms(unanswered, random);
    let phase = Phase::Pending { judge_at, unanswered: unanswered.saturating_add(1), throttled };
    let mut after = step(job, Event::Unjudged, phase, now, words.to_owned())?;
    overwrite_last(&mut after, Event::Unjudged);
    Ok(after)
}

/// 3. A person allows it. Policy is asked again in the same step, so that a rule that now denies still
///    denies; then nobody has approved anything.
pub fn approve(job: &Job, answer: &Answer, recorded: RecordedVerdict, now: Millis) -> Result<Job, Refusal> {
    if answer.is_from_submitter(&job.request) {
        return Err(Conflict::OwnJob.into());
    }
    answer.meets(job)?;
    if recorded.verdict.decision == Decision::Deny {
        return judge(job, recorded, now);
    }
    let decided = Some(answer.decided(Choice::Approve, now));
    if job.request.is_gate() {
        let passed = ended(job, State::Succeeded, None, answer.words());
        let passed = step(job, Event::Pass, passed, now, answer.words())?;
        return Ok(Job { decided, ..passed });
    }
    let approved = step(job, Event::Approve, pending(now), now, answer.words())?;
    judge(&Job { decided, ..approved }, recorded, now)
}

/// 4. Or does not.
pub fn reject(job: &Job, answer: &Answer, now: Millis) -> Result<Job, Refusal> {
    answer.meets(job)?;
    let words = format!("rejected {}", answer.words());
    let phase = ended(job, State::Denied, Some(Reason::ApprovalRejected), words.clone());
    let rejected = step(job, Event::Reject, phase, now, words)?;
    Ok(Job { decided: Some(answer.decided(Choice::Reject, now)), ..rejected })
}

/// Or nobody can be asked about it: as many jobs of its tenant wait for a person as may. Whoever waits for an answer is
/// told so before the job is kept; one that came over the bus, or is a step of a run, ends.
pub fn deny_unasked(job: &Job, over: &OverQuota, now: Millis) -> Result<Job, Refusal> {
    let words = format!("it needs an approval, and {over}");
    let phase = ended(job, State::Denied, Some(Reason::ApprovalQuota), words.clone());
    let asked = job.last_verdict().ok_or(Refusal::TooEarly)?;
    let verdict = Verdict {
        decision: Decision::Deny,
        reason: words.clone(),
        constraints: None,
        remediations: Vec::new(),
        ..asked.verdict.clone()
    };
    let mut denied = step(job, Event::Deny, phase, now, words)?;
    denied.verdicts.push(RecordedVerdict { verdict, checked_at: now });
    Ok(denied)
}

/// 5. A worker is found. From here the dispatch packet is owed.
pub fn assign(job: &Job, to: &Destination, now: Millis) -> Result<Job, Refusal> {
    if let Phase::Scheduled { not_before, .. } = job.phase
        && now < not_before
    {
        return Err(Refusal::TooEarly);
    }
    let attempt = Attempt {
        number: job.attempts.len() as u32 + 1,
        worker: to.worker.clone(),
        pool: to.pool.clone(),
        dispatched_at: now,
        progress: None,
    };
    let mut assigned = step(job, Event::Assign, Phase::Dispatched(attempt), now, String::new())?;
    assigned.attempts.push(to.worker.clone());
    Ok(assigned)
}

/// 6. The worker does not listen on its own subject: whoever of the topic's queue group hears may answer.
pub fn open(job: &Job, number: u32, now: Millis) -> Result<Job, Refusal> {
    let attempt = current(job, number, Event::Open)?;
    let phase = Phase::Dispatched(Attempt { worker: None, ..attempt.clone() });
    let mut opened = step(job, Event::Open, phase, now, "to the topic's queue group".to_owned())?;
    opened.attempts[number as usize - 1] = None;
    Ok(opened)
}

/// 7. Somebody heard the packet. `heard_by` is the worker's name where the transport knows it.
pub fn start(job: &Job, number: u32, heard_by: Option<WorkerId>, now: Millis) -> Result<Job, Refusal> {
    let attempt = current(job, number, Event::Start)?;
    let worker = attempt.worker.clone().or(heard_by);
    step(job, Event::Start, Phase::Running(Attempt { worker, ..attempt.clone() }), now, String::new())
}

/// 8. The worker reports progress. `known` is its name if it beats; one that does not cannot be lost.
pub fn progress(
    job: &Job,
    from: &WorkerId,
    known: Option<WorkerId>,
    reported: Progress,
    now: Millis,
) -> Result<Job, Refusal> {
    let refusal = Refusal::NotNow { state: job.state(), event: Event::Progress };
    let attempt = job.attempt().ok_or(refusal)?;
    if attempt.worker.as_ref().is_some_and(|worker| worker != from) {
        return Err(Refusal::ForeignWorker(from.to_string()));
    }
    let worker = attempt.worker.clone().or(known);
    let attempt = Attempt { worker, progress: Some(reported), ..attempt.clone() };
    let mut job = step(job, Event::Progress, Phase::Running(attempt), now, String::new())?;
    overwrite_last(&mut job, Event::Progress);
    Ok(job)
}

/// 9. Nobody heard the packet: back to the queue, at once the first time, then with backoff.
pub fn unheard(job: &Job, number: u32, now: Millis, random: u64) -> Result<Job, Refusal> {
    current(job, number, Event::Unheard)?;
    let words = "no worker was listening";
    if job.attempts.len() as u32 >= backoff::TRIES_MAX {
        return fail(job, Reason::DispatchFailed, words, now);
    }
    let missed = job.marks.iter().rev().filter(|mark| mark.event != Event::Assign);
    let missed = missed.take_while(|mark| mark.event == Event::Unheard).count() as u32;
    let delay = if missed == 0 { 0 } else { backoff::delay_ms(missed - 1, random) };
    step(job, Event::Unheard, waiting(now, now + delay), now, words.to_owned())
}

/// 10. The worker died, or its drain is over. Another one gets the job, a few times.
pub fn lose_worker(job: &Job, number: u32, limits: &Limits, now: Millis) -> Result<Job, Refusal> {
    let attempt = current(job, number, Event::LoseWorker)?;
    let name = attempt.worker.as_ref().map_or("its worker", |worker| worker.as_str());
    let words = format!("{name} was lost");
    let lost = job.workers_lost + 1;
    let mut after = if lost >= limits.workers_lost_max || job.attempts.len() as u32 >= backoff::TRIES_MAX {
        fail(job, Reason::WorkerLost, &words, now)?
    } else {
        step(job, Event::LoseWorker, waiting(now, now), now, words)?
    };
    after.workers_lost = lost;
    Ok(after)
}

/// 11. A client cancels it. That is final: a result that comes later does not revive the job.
pub fn cancel(job: &Job, by: impl Into<Identity>, reason: &str, now: Millis) -> Result<Job, Refusal> {
    let by = by.into();
    let mut words = format!("cancelled by {}", by.shown());
    if !reason.is_empty() {
        words = format!("{words}: {reason}");
    }
    let mut phase = ended(job, State::Cancelled, None, words.clone());
    if let Phase::Ended(ending) = &mut phase {
        ending.cancelled_by = Some(Box::new(by));
    }
    let mut after = step(job, Event::Cancel, phase, now, words)?;
    after.owed.cancel = job.attempt().is_some();
    Ok(after)
}

/// 16. What the ended job owed to others has been sent.
pub fn settled(job: &Job) -> Job {
    Job { owed: Owed { cancel: false, dead_letter: false, ..job.owed }, ..job.clone() }
}

/// Asks the table, writes the mark, and leaves the rest as it was.
fn step(job: &Job, event: Event, phase: Phase, now: Millis, note: String) -> Result<Job, Refusal> {
    let to = next(job.state(), event)?;
    let mut after = set_back(job, now).unwrap_or_else(|| job.clone());
    (after.phase, after.updated_at) = (phase, now);
    assert_eq!(after.state(), to, "the story and the table agree");
    after.owed.dead_letter = to.is_dead_letter();
    mark(&mut after, event, now, note);
    Ok(after)
}

fn fail(job: &Job, reason: Reason, words: &str, now: Millis) -> Result<Job, Refusal> {
    let event = if job.attempt().is_some() { Event::Fail } else { Event::GiveUp };
    step(job, event, ended(job, State::Failed, Some(reason), words.to_owned()), now, words.to_owned())
}

fn pending(judge_at: Millis) -> Phase {
    Phase::Pending { judge_at, unanswered: 0, throttled: 0 }
}

/// Each throttle is a try: the next one comes later, and the last one fails the job.
fn throttled(job: &Job, now: Millis) -> Phase {
    let before = if let Phase::Pending { throttled, .. } = job.phase { throttled } else { 0 };
    Phase::Pending {
        judge_at: now + backoff::throttled_ms(before),
        unanswered: 0,
        throttled: before.saturating_add(1),
    }
}

fn waiting(since: Millis, not_before: Millis) -> Phase {
    Phase::Scheduled { waiting_since: since, not_before }
}

fn ended(job: &Job, state: State, reason: Option<Reason>, words: String) -> Phase {
    Phase::Ended(Ending {
        state,
        from: job.state(),
        reason,
        words,
        error_code: String::new(),
        result_ptr: String::new(),
        worker: job.worker().cloned(),
        execution_ms: 0,
        is_fatal: false,
        trace: None,
        cancelled_by: None,
    })
}

/// The attempt under way, if it is the one that is meant.
fn current(job: &Job, number: u32, event: Event) -> Result<&Attempt, Refusal> {
    let attempt = job.attempt().ok_or(Refusal::NotNow { state: job.state(), event })?;
    if attempt.number != number {
        return Err(Refusal::StaleAttempt { got: u64::from(number), now: attempt.number });
    }
    Ok(attempt)
}

/// A mark that follows another of its kind takes its place: a chatty worker does not push the past out.
fn overwrite_last(job: &mut Job, event: Event) {
    if let [.., before, last] = job.marks.as_slice()
        && before.event == event
        && last.event == event
    {
        job.marks.remove(job.marks.len() - 2);
        job.marks_made -= 1;
    }
}

fn mark(job: &mut Job, event: Event, at: Millis, note: String) {
    if job.marks.len() >= MARKS_MAX {
        job.marks.remove(1);
    }
    let worker = job.worker().cloned();
    job.marks_made += 1;
    job.marks.push(Mark { at, event, state: job.state(), worker, note });
}
