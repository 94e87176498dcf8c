//! What time alone does to a job. One question, [`due`], gives the next moment to look at it; one
//! answer, [`pass_time`], says what that moment means. Timers hold no knowledge of their own.

use super::{ended, fail, step};
use crate::backoff;
use crate::job::{Event, Job, Phase, Refusal, State};
use crate::reason::Reason;
use crate::time::Millis;

/// How long a job may stay where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub dispatched_ms: i64,
    pub running_ms: i64,
    /// How long a person may take to decide; for ever unless told.
    pub approval_ms: Option<i64>,
    /// Dispatches of one job that may end in `FAILED_RETRYABLE`.
    pub retries_max: u32,
    pub workers_lost_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            dispatched_ms: 300_000,
            running_ms: 9_000_000,
            approval_ms: None,
            retries_max: backoff::TRIES_MAX,
            workers_lost_max: super::WORKERS_LOST_MAX,
        }
    }
}

/// What a passed moment asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Due {
    /// Nothing yet; look again at [`due`].
    Nothing,
    /// Ask policy (again).
    Judge,
    /// The delay is over: it may be placed.
    Place,
    /// Commit this.
    Change(Box<Job>),
}

/// The next moment, seen from `now`, at which time alone changes something; nothing for an ended job.
pub fn due(job: &Job, limits: &Limits, now: Millis) -> Option<Millis> {
    let own = match &job.phase {
        Phase::Pending { judge_at, .. } => Some(*judge_at),
        Phase::ApprovalRequired => limits.approval_ms.map(|ms| job.since() + ms),
        Phase::Scheduled { waiting_since, not_before } => {
            Some(if *not_before > now { *not_before } else { backoff::exhausted_at(*waiting_since) })
        }
        Phase::Dispatched(attempt) => Some(attempt.dispatched_at + limits.dispatched_ms),
        Phase::Running(_) => Some(job.since() + running_ms(job, limits)),
        Phase::Ended(_) => return None,
    };
    match (own, job.deadline()) {
        (Some(own), Some(deadline)) => Some(own.min(deadline)),
        (own, deadline) => own.or(deadline),
    }
}

/// What `now` means for a job. `waits_for` is why it has no worker, if it waits for one: that is what it
/// fails of when its tries are used up.
pub fn pass_time(job: &Job, limits: &Limits, waits_for: Option<Reason>, now: Millis) -> Result<Due, Refusal> {
    if job.state().is_terminal() {
        return Ok(Due::Nothing);
    }
    if job.deadline().is_some_and(|deadline| deadline <= now) {
        return expire(job, "the deadline has passed", now);
    }
    match &job.phase {
        Phase::Pending { judge_at, .. } if *judge_at <= now => Ok(Due::Judge),
        Phase::ApprovalRequired if limits.approval_ms.is_some_and(|ms| job.since() + ms <= now) => {
            let words = "nobody decided in time";
            let phase = ended(job, State::Denied, Some(Reason::ApprovalExpired), words.to_owned());
            Ok(Due::Change(Box::new(step(job, Event::Deny, phase, now, words.to_owned())?)))
        }
        Phase::Scheduled { waiting_since, .. } if backoff::exhausted_at(*waiting_since) <= now => {
            let words = format!("no worker took it in {} tries", backoff::TRIES_MAX);
            let reason = waits_for.unwrap_or(Reason::MaxSchedulingRetries);
            Ok(Due::Change(Box::new(fail(job, reason, &words, now)?)))
        }
        Phase::Scheduled { not_before, .. } if *not_before <= now => Ok(Due::Place),
        Phase::Dispatched(attempt) if attempt.dispatched_at + limits.dispatched_ms <= now => {
            expire(job, "it was dispatched, and nothing more was heard", now)
        }
        Phase::Running(_) if job.since() + running_ms(job, limits) <= now => {
            expire(job, "it ran longer than allowed", now)
        }
        _ => Ok(Due::Nothing),
    }
}

/// A job that was last changed later than now comes from a clock that has been set back since. Nothing in
/// it happened later than now, and what it waits for is as far away as it was: otherwise every limit of
/// the job would come late by as much as the clock went back. Nothing if its past is in the past.
pub fn set_back(job: &Job, now: Millis) -> Option<Job> {
    if job.updated_at <= now {
        return None;
    }
    let still_to_come = |moment: Millis| now + moment.since(job.updated_at);
    let mut after = job.clone();
    after.created_at = job.created_at.min(now);
    after.updated_at = now;
    for mark in &mut after.marks {
        mark.at = mark.at.min(now);
    }
    match &mut after.phase {
        Phase::Pending { judge_at, .. } => *judge_at = still_to_come(*judge_at),
        Phase::Scheduled { waiting_since, not_before } => {
            *waiting_since = (*waiting_since).min(now);
            *not_before = still_to_come(*not_before);
        }
        Phase::Dispatched(attempt) | Phase::Running(attempt) => {
            attempt.dispatched_at = attempt.dispatched_at.min(now);
        }
        Phase::ApprovalRequired | Phase::Ended(_) => {}
    }
    Some(after)
}

/// The time allowed to run: the topic's, or less if policy said so.
fn running_ms(job: &Job, limits: &Limits) -> i64 {
    match job.budgets().map_or(0, |budgets| budgets.max_runtime_ms) {
        0 => limits.running_ms,
        allowed => allowed.min(limits.running_ms),
    }
}

fn expire(job: &Job, words: &str, now: Millis) -> Result<Due, Refusal> {
    let phase = ended(job, State::Timeout, Some(Reason::Timeout), words.to_owned());
    let mut after = step(job, Event::Expire, phase, now, words.to_owned())?;
    after.owed.cancel = job.attempt().is_some();
    Ok(Due::Change(Box::new(after)))
}
