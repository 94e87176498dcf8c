//! A worker says how a job went. Who may say so, and what it means, is decided here.

use super::{ended, fail, step, waiting};
use crate::backoff;
use crate::id::WorkerId;
use crate::job::{Event, Job, Phase, Refusal, State};
use crate::life::Limits;
use crate::reason::Reason;
use crate::request::Request;
use crate::time::Millis;
use crate::trace::{JobTrace, Ratio, TraceParent};

/// What a worker reports at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub worker: WorkerId,
    /// The attempt it echoes, if it does; then it is held to it.
    pub attempt: Option<u64>,
    pub status: Status,
    pub result_ptr: String,
    pub error_code: String,
    pub error_message: String,
    pub execution_ms: i64,
    /// Where the worker stood in its own trace, if it said so.
    pub trace: Option<TraceParent>,
    pub made: Made,
}

/// What it made, beside what the result says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Made {
    /// Where its artifacts are.
    pub artifact_ptrs: Vec<String>,
    /// The size of the largest thing, the result included, as far as somebody told or measured it.
    pub largest_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Succeeded,
    Failed,
    /// Worth another try.
    Retryable,
    /// Not worth another try, and what was done before must be undone.
    Fatal,
    Cancelled,
    Timeout,
    Denied,
}

/// The report ends the job, or sends it back to the queue.
///
/// Success counts whichever attempt it comes from, as long as the job is live. Anything else counts
/// only from the attempt under way: the failure of a lost attempt says nothing about its successor.
/// Success with something that is larger than policy allows is no success.
pub fn finish(job: &Job, report: &Report, limits: &Limits, now: Millis, random: u64) -> Result<Job, Refusal> {
    holds(job, report)?;
    let job = &started(job, report, now);
    let words = &report.error_message;
    let too_large = too_large(job, report);
    if report.status == Status::Succeeded && too_large.is_none() {
        return Ok(detailed(
            step(job, Event::Succeed, ended(job, State::Succeeded, None, String::new()), now, String::new())?,
            report,
        ));
    }
    let attempt = job.attempt().ok_or(Refusal::NotNow { state: job.state(), event: Event::Fail })?;
    let foreign = attempt.worker.as_ref().is_some_and(|worker| *worker != report.worker);
    if foreign || report.attempt.is_some_and(|number| number != u64::from(attempt.number)) {
        return Err(Refusal::StaleAttempt { got: report.attempt.unwrap_or_default(), now: attempt.number });
    }
    if let Some(words) = too_large {
        let unreadable = Report { result_ptr: String::new(), ..report.clone() };
        return Ok(detailed(fail(job, Reason::ArtifactTooLarge, &words, now)?, &unreadable));
    }
    let after = match report.status {
        Status::Retryable => {
            let used = job.attempts.len() as u32;
            if used >= retries_max(job, limits).min(backoff::TRIES_MAX) {
                fail(job, Reason::MaxRetriesExceeded, words, now)?
            } else {
                let not_before = now + backoff::delay_ms(used - 1, random);
                return step(job, Event::Retry, waiting(now, not_before), now, words.clone());
            }
        }
        Status::Cancelled => {
            step(job, Event::Cancel, ended(job, State::Cancelled, None, words.clone()), now, words.clone())?
        }
        Status::Timeout => {
            let phase = ended(job, State::Timeout, Some(Reason::Timeout), words.clone());
            step(job, Event::Expire, phase, now, words.clone())?
        }
        Status::Succeeded | Status::Failed | Status::Fatal | Status::Denied => {
            fail(job, Reason::JobFailed, words, now)?
        }
    };
    Ok(detailed(after, report))
}

/// A short job ends before anyone marked it as running; it ran all the same, for as long as it says.
fn started(job: &Job, report: &Report, now: Millis) -> Job {
    let Phase::Dispatched(attempt) = &job.phase else { return job.clone() };
    let mine = report.attempt.is_none_or(|number| number == u64::from(attempt.number));
    if !mine || attempt.worker.as_ref().is_some_and(|worker| *worker != report.worker) {
        return job.clone();
    }
    let began = (now - report.execution_ms.max(0)).max(attempt.dispatched_at);
    super::start(job, attempt.number, Some(report.worker.clone()), began).unwrap_or_else(|_| job.clone())
}

/// Whether this worker was ever given the job. An attempt that went to the topic's queue group may be
/// answered by anyone.
fn holds(job: &Job, report: &Report) -> Result<(), Refusal> {
    if job.state().is_terminal() {
        return Err(Refusal::NotNow { state: job.state(), event: Event::Succeed });
    }
    let now = job.attempts.len() as u32;
    let mine = |given: &Option<WorkerId>| given.as_ref().is_none_or(|worker| *worker == report.worker);
    match report.attempt {
        None if job.attempts.iter().any(mine) => Ok(()),
        None => Err(Refusal::ForeignWorker(report.worker.to_string())),
        Some(number) => match job.attempts.get((number as usize).wrapping_sub(1)) {
            Some(given) if mine(given) => Ok(()),
            Some(_) => Err(Refusal::ForeignWorker(report.worker.to_string())),
            None => Err(Refusal::StaleAttempt { got: number, now }),
        },
    }
}

fn retries_max(job: &Job, limits: &Limits) -> u32 {
    match job.budgets().map_or(0, |budgets| budgets.max_retries) {
        0 => limits.retries_max,
        allowed => allowed.saturating_add(1).min(limits.retries_max),
    }
}

/// A worker that only hands back what it was given says nothing new.
fn own_trace(request: &Request, attempts: usize, report: &Report) -> Option<TraceParent> {
    let number = report.attempt.unwrap_or(attempts as u64) as u32;
    let said = report.trace?;
    let given = JobTrace::of(request, Ratio::ALL).attempt(number).parent;
    (said.span != given.span).then_some(said)
}

/// Why a success does not count, if something it made is larger than policy allows.
fn too_large(job: &Job, report: &Report) -> Option<String> {
    let allowed = job.artifact_bytes_max()?;
    let made = report.made.largest_bytes;
    (report.status == Status::Succeeded && made > allowed)
        .then(|| format!("it made something of {made} bytes; policy allows {allowed}"))
}

fn detailed(mut job: Job, report: &Report) -> Job {
    if let Phase::Ended(ending) = &mut job.phase {
        ending.worker = Some(report.worker.clone());
        ending.result_ptr.clone_from(&report.result_ptr);
        ending.error_code.clone_from(&report.error_code);
        ending.execution_ms = report.execution_ms;
        ending.is_fatal = report.status == Status::Fatal;
        ending.trace = own_trace(&job.request, job.attempts.len(), report);
    }
    if let Some(mark) = job.marks.last_mut() {
        mark.worker = Some(report.worker.clone());
    }
    job.owed.saga = super::saga::concerns(&job.request, report.status);
    job
}
