//! What one commit may make of a job, by the job before it and the one after.

use super::InvariantResult;
use reveille_core::job::{Event, Job, Mark, State, next};

/// Revisions count by one, and states follow the table; an ended job stays ended.
pub fn succession(before: Option<&Job>, job: &Job) -> InvariantResult {
    let id = job.id();
    let expected = before.map_or(1, |before| before.revision + 1);
    if job.revision != expected {
        return Err(format!("{id} went to revision {}, not {expected}", job.revision));
    }
    let Some(before) = before else { return Ok(()) };
    let (from, to) = (before.state(), job.state());
    if before.request != job.request {
        return Err(format!("the request of {id} changed"));
    }
    // What becomes of its output is told by the table.
    let is_output = |state: State| matches!(state, State::Succeeded | State::OutputQuarantined);
    if from.is_terminal() && from != to && !(is_output(from) && is_output(to)) {
        return Err(format!("{id} had ended as {from} and became {to}"));
    }
    let mut state = from;
    for mark in new_marks(Some(before), job) {
        let followed = next(state, mark.event).map_err(|refusal| format!("{id}: {refusal}"))?;
        if followed != mark.state {
            return Err(format!("{id}: {state} became {} by {}", mark.state, mark.event));
        }
        state = followed;
    }
    if state == to { Ok(()) } else { Err(format!("{id} is {to}, but its past ends with {state}")) }
}

/// The lines that a commit added to a job's past. Progress, and a kernel that does not answer, overwrite their
/// own last line.
pub fn new_marks<'a>(before: Option<&Job>, job: &'a Job) -> &'a [Mark] {
    let Some(last) = before.and_then(|before| before.marks.last()) else { return &job.marks };
    if last.at > job.updated_at {
        // The clock was set back: old and new marks are of the same moment and may look alike.
        return job.marks_since(before);
    }
    let newest = &job.marks[job.marks.len() - 1..];
    let overwrites = matches!(last.event, Event::Progress | Event::Unjudged);
    if overwrites && newest[0].event == last.event && newest[0].at != last.at {
        return newest;
    }
    match job.marks.iter().rposition(|mark| mark == last) {
        Some(at) => &job.marks[at + 1..],
        None => newest,
    }
}

/// Whether it is in the audit trail.
pub fn is_decision(event: Event) -> bool {
    use Event::{
        Allow, Approve, Cancel, Deny, Discard, Pass, Quarantine, Redact, Reject, Release, RequireApproval,
        Throttle,
    };
    matches!(
        event,
        Allow
            | Approve
            | Cancel
            | Deny
            | Discard
            | Pass
            | Quarantine
            | Redact
            | Reject
            | Release
            | RequireApproval
            | Throttle
    )
}
