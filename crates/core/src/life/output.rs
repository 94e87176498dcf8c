//! The end of a job's life where output policy is asked: once before the result can be read, once when its
//! content has been looked at, and once more when a person decides.

use super::{ended, step};
use crate::identity::Identity;
use crate::job::{Event, Job, Phase, Refusal, State};
use crate::output::{OutputCheck, OutputDecision, OutputVerdict, Resolution, Resolved, Stage};
use crate::reason::Reason;
use crate::time::Millis;

/// 12. Output policy speaks of a result.
///
/// Quarantine and denial hold it back, before or after it was visible. A redacted copy takes its place;
/// without one the result is held back too.
pub fn check_output(
    job: &Job,
    verdict: OutputVerdict,
    redacted_ptr: Option<String>,
    now: Millis,
) -> Result<Job, Refusal> {
    let refusal = || Refusal::NotNow { state: job.state(), event: Event::Quarantine };
    let ending = job.ending().filter(|ending| ending.state == State::Succeeded).ok_or_else(refusal)?;
    let mut check = OutputCheck { verdict, checked_at: now, original_ptr: String::new(), resolved: None };
    let mut after = match (check.verdict.decision, redacted_ptr) {
        (OutputDecision::Allow, _) => Job { updated_at: now, ..job.clone() },
        (OutputDecision::Redact, Some(copy)) => {
            check.original_ptr.clone_from(&ending.result_ptr);
            let mut ending = ending.clone();
            ending.result_ptr = copy;
            step(job, Event::Redact, Phase::Ended(ending), now, check.verdict.reason.clone())?
        }
        (OutputDecision::Redact, None) => hold(job, &mut check, "there is no redacted copy", now)?,
        (OutputDecision::Quarantine | OutputDecision::Deny, _) => hold(job, &mut check, "", now)?,
    };
    after.output = Some(Box::new(check));
    after.owed.output_scan = false;
    Ok(after)
}

/// 13. What is known allows it; the content is still to be looked at.
pub fn await_scan(job: &Job) -> Job {
    let mut after = job.clone();
    after.owed.output_scan = true;
    after
}

fn hold(job: &Job, check: &mut OutputCheck, more: &str, now: Millis) -> Result<Job, Refusal> {
    let reason = match check.verdict.stage {
        Stage::Sync => Reason::OutputQuarantined,
        Stage::Async => Reason::OutputQuarantinedAsync,
    };
    let words = match more {
        "" => check.verdict.reason.clone(),
        more => format!("{}; {more}", check.verdict.reason),
    };
    let mut phase = ended(job, State::OutputQuarantined, Some(reason), words.clone());
    if let (Phase::Ended(ending), Some(before)) = (&mut phase, job.ending()) {
        check.original_ptr.clone_from(&before.result_ptr);
        (ending.execution_ms, ending.trace) = (before.execution_ms, before.trace);
    }
    step(job, Event::Quarantine, phase, now, words)
}

/// 14. A person lets a result out of quarantine. The job is not run again: it has succeeded.
pub fn release(job: &Job, by: impl Into<Identity>, note: &str, now: Millis) -> Result<Job, Refusal> {
    let (mut check, from) = in_quarantine(job, Event::Release)?;
    let mut phase = ended(job, State::Succeeded, None, String::new());
    if let (Phase::Ended(ending), Some(before)) = (&mut phase, job.ending()) {
        ending.result_ptr = std::mem::take(&mut check.original_ptr);
        (ending.execution_ms, ending.trace) = (before.execution_ms, before.trace);
        ending.from = from;
    }
    resolve(job, check, (Event::Release, Resolution::Released), phase, (by.into(), note), now)
}

/// 15. Or throws it away. The job stays as it ended, and the result is gone.
pub fn discard(job: &Job, by: impl Into<Identity>, note: &str, now: Millis) -> Result<Job, Refusal> {
    let (mut check, _) = in_quarantine(job, Event::Discard)?;
    check.original_ptr.clear();
    resolve(job, check, (Event::Discard, Resolution::Discarded), job.phase.clone(), (by.into(), note), now)
}

fn in_quarantine(job: &Job, event: Event) -> Result<(OutputCheck, State), Refusal> {
    let refusal = Refusal::NotNow { state: job.state(), event };
    match (&job.output, job.ending()) {
        (Some(check), Some(ending))
            if ending.state == State::OutputQuarantined && check.resolved.is_none() =>
        {
            Ok(((**check).clone(), ending.from))
        }
        _ => Err(refusal),
    }
}

fn resolve(
    job: &Job,
    check: OutputCheck,
    (event, how): (Event, Resolution),
    phase: Phase,
    (by, note): (Identity, &str),
    now: Millis,
) -> Result<Job, Refusal> {
    let mut after = step(job, event, phase, now, format!("by {}", by.name))?;
    // Those who watch the dead letters hear of it once, when it is held back.
    after.owed.dead_letter = job.owed.dead_letter && after.state().is_dead_letter();
    let resolved = Resolved { by: by.name, key: by.key, how, at: now, note: note.to_owned() };
    after.output = Some(Box::new(OutputCheck { resolved: Some(resolved), ..check }));
    Ok(after)
}
