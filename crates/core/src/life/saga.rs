//! What a job's end means for the saga of its workflow: one that a client drives itself, job by job, with what
//! undoes each of them. Runs of our own workflows look after themselves.

use super::{Status, ended, step, submit};
use crate::job::{Event, Job, Owed, State};
use crate::reason::Reason;
use crate::request::Request;
use crate::time::Millis;

/// Whether the end of such a job is to be noted in its saga: it has done something that can be undone, or it
/// says that what was done before must be.
///
/// What the worker says counts, not what becomes of its output: a result that is held back, or is larger than
/// policy allows, has been worked for, and that work may have to be undone.
pub(super) fn concerns(request: &Request, status: Status) -> bool {
    let place = &request.place;
    let is_part = !place.workflow_id.is_empty() && place.of_run.is_none();
    is_part && (status == Status::Fatal || status == Status::Succeeded && !request.compensation.is_empty())
}

/// 17. It has been noted.
pub fn saga_settled(job: &Job) -> Job {
    Job { owed: Owed { saga: false, ..job.owed }, ..job.clone() }
}

/// A compensation that nobody could keep, as a dead letter: somebody has to see it, and may ask for it anew.
pub fn stillborn(request: Request, reason: Reason, words: &str, now: Millis) -> Job {
    let job = submit(request, now);
    let phase = ended(&job, State::Failed, Some(reason), words.to_owned());
    match step(&job, Event::GiveUp, phase, now, words.to_owned()) {
        Ok(job) => job,
        Err(refusal) => unreachable!("a new job can be given up: {refusal}"),
    }
}
