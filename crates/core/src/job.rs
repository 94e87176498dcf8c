//! A job, the states it can be in, and the one table of how it may change.
//!
//! [`next`] is the only place where a state follows from another. `life` is written with it;
//! nothing else changes a state.

mod table;

pub use table::{Event, Refusal, State, next};

use crate::approval::{Choice, Decided};
use crate::id::{JobId, PoolId, TenantId, Topic, WorkerId};
use crate::identity::Identity;
use crate::output::{OutputCheck, Resolution};
use crate::policy::{Budgets, RecordedVerdict};
use crate::reason::Reason;
use crate::request::Request;
use crate::time::Millis;
use crate::trace::TraceParent;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Marks kept of one job's past; a job that needs more loses the oldest after the first.
pub const MARKS_MAX: usize = 200;
/// Verdicts kept of one job.
pub const VERDICTS_MAX: usize = 50;

/// A job as it stands. Data that exists only in one state lives in that state's [`Phase`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub request: Arc<Request>,
    /// Counts commits; the store compares and swaps on it.
    pub revision: u64,
    pub phase: Phase,
    pub created_at: Millis,
    pub updated_at: Millis,
    /// Every dispatch so far: whom it went to, or nobody in particular (the topic's queue group).
    #[serde(default)]
    pub attempts: Vec<Option<WorkerId>>,
    /// How many of them ended because the worker died.
    #[serde(default)]
    pub workers_lost: u32,
    /// What a person decided about it, once one has. After an approval no verdict asks again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
    /// Oldest first. Stored under the name that data files of earlier builds have.
    #[serde(default, rename = "judgements")]
    pub verdicts: Vec<RecordedVerdict>,
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Marks ever made, also of those that are not kept any more.
    #[serde(default)]
    pub marks_made: u64,
    #[serde(default, skip_serializing_if = "Owed::is_nothing")]
    pub owed: Owed,
    /// What output policy said of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<OutputCheck>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// Not judged yet, or throttled until `judge_at`.
    Pending {
        judge_at: Millis,
        /// How often in a row policy could not be asked.
        #[serde(default)]
        unanswered: u32,
        /// How often in a row it has throttled the job.
        #[serde(default)]
        throttled: u32,
    },
    /// A person has to decide.
    ApprovalRequired,
    /// Allowed; waits for a worker, and not before `not_before`.
    Scheduled {
        waiting_since: Millis,
        not_before: Millis,
    },
    /// Committed to a worker; the packet is owed until somebody has heard it.
    Dispatched(Attempt),
    Running(Attempt),
    Ended(Ending),
}

/// One dispatch of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Counts from one.
    pub number: u32,
    /// Nobody in particular when the packet went to the topic's queue group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolId>,
    pub dispatched_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub percent: u8,
    pub message: String,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    pub state: State,
    /// The state it was in before.
    pub from: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error_code: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result_ptr: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    #[serde(default)]
    pub execution_ms: i64,
    /// The worker said that another try is of no use, and that what was done before must be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fatal: bool,
    /// Where the worker stood in its own trace when it reported, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// Who cancelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<Box<Identity>>,
}

/// One line of a job's past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub at: Millis,
    pub event: Event,
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Messages that an ended job still owes. Until they are sent the job counts as live, so that a
/// restart finds them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a debt of its own, paid by itself")]
pub struct Owed {
    /// Tell workers to stop (`sys.job.cancel`).
    pub cancel: bool,
    /// Tell whoever watches the dead letters (`sys.job.dlq`).
    pub dead_letter: bool,
    /// Look at the content of the result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub output_scan: bool,
    /// Take note of it in the saga of its workflow: what undoes it is to be kept, or what came before undone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub saga: bool,
}

impl Owed {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Whether somebody is to be told something.
    pub fn has_notices(&self) -> bool {
        self.cancel || self.dead_letter
    }
}

/// What the dead-letter list says of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    pub job_id: JobId,
    pub tenant: TenantId,
    pub topic: Topic,
    pub status: State,
    pub reason: String,
    pub reason_code: Option<Reason>,
    pub last_state: State,
    pub attempts: u32,
    pub created_at: Millis,
}

impl Job {
    pub fn id(&self) -> &JobId {
        &self.request.id
    }

    pub fn state(&self) -> State {
        match &self.phase {
            Phase::Pending { .. } => State::Pending,
            Phase::ApprovalRequired => State::ApprovalRequired,
            Phase::Scheduled { .. } => State::Scheduled,
            Phase::Dispatched(_) => State::Dispatched,
            Phase::Running(_) => State::Running,
            Phase::Ended(ending) => ending.state,
        }
    }

    /// Whether this job still owes something: a live job always does.
    pub fn is_live(&self) -> bool {
        !self.state().is_terminal() || !self.owed.is_nothing()
    }

    pub fn attempt(&self) -> Option<&Attempt> {
        match &self.phase {
            Phase::Dispatched(attempt) | Phase::Running(attempt) => Some(attempt),
            _ => None,
        }
    }

    pub fn ending(&self) -> Option<&Ending> {
        match &self.phase {
            Phase::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    /// The worker that has the job, or that ended it.
    pub fn worker(&self) -> Option<&WorkerId> {
        match &self.phase {
            Phase::Dispatched(attempt) | Phase::Running(attempt) => attempt.worker.as_ref(),
            Phase::Ended(ending) => ending.worker.as_ref(),
            _ => None,
        }
    }

    /// The marks that were made after `before`, as far as they are kept. They are counted: at
    /// [`MARKS_MAX`] the list does not grow any more, and a mark may look like the one before it.
    pub fn marks_since(&self, before: Option<&Self>) -> &[Mark] {
        let made = self.marks_made.saturating_sub(before.map_or(0, |before| before.marks_made));
        let known = self.marks.len().saturating_sub(usize::try_from(made).unwrap_or(usize::MAX));
        &self.marks[known..]
    }

    /// The state that it was in before this one, as far as its past is kept.
    pub fn state_before(&self) -> Option<State> {
        self.marks.iter().rev().map(|mark| mark.state).find(|state| *state != self.state())
    }

    /// When the state it is in began.
    pub fn since(&self) -> Millis {
        let state = self.state();
        let run = self.marks.iter().rev().take_while(|mark| mark.state == state);
        run.last().map_or(self.created_at, |mark| mark.at)
    }

    /// When the whole job must be over, if it said so, or policy did.
    pub fn deadline(&self) -> Option<Millis> {
        let asked = self.request.budget.deadline_ms;
        (asked > 0).then(|| self.created_at + asked)
    }

    /// The person who allowed it, once one has.
    pub fn approved_by(&self) -> Option<&str> {
        let approval = self.decided.as_ref().filter(|decided| decided.choice == Choice::Approve);
        approval.map(|decided| decided.by.as_str())
    }

    /// The latest thing policy said.
    pub fn last_verdict(&self) -> Option<&RecordedVerdict> {
        self.verdicts.last()
    }

    /// What it may use up, if the latest verdict says so.
    pub fn budgets(&self) -> Option<&Budgets> {
        let constraints = self.last_verdict()?.verdict.constraints.as_ref()?;
        Some(&constraints.budgets)
    }

    /// How many jobs of its tenant may be at workers at once so that it may go too, if policy says so.
    pub fn jobs_max(&self) -> Option<u32> {
        self.budgets().map(|budgets| budgets.max_concurrent_jobs).filter(|max| *max > 0)
    }

    /// How large its result, or anything else it makes, may be, if policy says so.
    pub fn artifact_bytes_max(&self) -> Option<u64> {
        let max = self.budgets()?.max_artifact_bytes;
        u64::try_from(max).ok().filter(|max| *max > 0)
    }

    /// Whether its result was let out of quarantine: it is no dead letter any more.
    pub fn was_released(&self) -> bool {
        let resolved = self.output.as_ref().and_then(|check| check.resolved.as_ref());
        self.state() == State::Succeeded
            && resolved.is_some_and(|resolved| resolved.how == Resolution::Released)
    }

    /// The entry this job has among the dead letters, if it ended in a way that somebody must look at.
    pub fn dead_letter(&self) -> Option<DeadLetter> {
        let ending = self.ending()?;
        ending.state.is_dead_letter().then(|| DeadLetter {
            job_id: self.id().clone(),
            tenant: self.request.tenant.clone(),
            topic: self.request.topic.clone(),
            status: ending.state,
            reason: ending.words.clone(),
            reason_code: ending.reason,
            last_state: ending.from,
            attempts: self.attempts.len() as u32,
            created_at: self.updated_at,
        })
    }
}
