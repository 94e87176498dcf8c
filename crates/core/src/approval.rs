//! Approvals: what a person is asked about a job, and what binds the answer to the question.
//!
//! A job asks while it is `APPROVAL_REQUIRED`. An answer may say which request ([`job_hash`]) and which
//! policy its giver looked at; if either is another one, it answers a question that nobody asked. What an
//! approval has come to is read off the job, never kept beside it. The steps themselves are in `life`.

mod hash;

pub use hash::job_hash;

use crate::id::KeyId;
use crate::job::{Job, Refusal, State};
use crate::policy::{Decision, RecordedVerdict};
use crate::reason::Reason;
use crate::request::Request;
use crate::time::Millis;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    Approve,
    Reject,
}

impl Choice {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    pub choice: Choice,
    pub by: String,
    /// The credential the answer came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyId>,
    pub at: Millis,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
}

/// What a person says, and what they looked at when they said it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    pub by: String,
    /// The credential it came with.
    pub key: Option<KeyId>,
    pub comment: String,
    pub job_hash: Option<String>,
    pub policy_snapshot: Option<String>,
}

/// Why an answer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error("nobody approves what they asked for themselves; somebody else has to")]
    OwnJob,
    #[error("somebody has decided otherwise already")]
    AlreadyResolved,
    #[error("policy is not what it was when the approval was asked for; look again")]
    StaleSnapshot,
    #[error("the answer is about another request")]
    StaleRequest,
    #[error("the job waits for no decision")]
    NotActionable,
}

impl Conflict {
    pub fn code(self) -> &'static str {
        match self {
            Self::OwnJob => "self_approval_denied",
            Self::AlreadyResolved => "approval_already_resolved",
            Self::StaleSnapshot => "approval_stale_snapshot",
            Self::StaleRequest => "approval_stale_request",
            Self::NotActionable => "approval_not_actionable",
        }
    }
}

/// What an approval has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Pending,
    Approved,
    Rejected,
    /// Nobody decided in time.
    Expired,
    /// The question went away: policy changed, or the job was cancelled.
    Invalidated,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Invalidated => "invalidated",
        }
    }
}

/// Nothing for a job that nobody was ever asked about.
pub fn status(job: &Job) -> Option<Status> {
    if job.state() == State::ApprovalRequired {
        return Some(Status::Pending);
    }
    if let Some(decided) = &job.decided {
        return Some(match decided.choice {
            Choice::Approve => Status::Approved,
            Choice::Reject => Status::Rejected,
        });
    }
    question(job)?;
    let ran_out = job.ending().is_some_and(|ending| {
        let is_late = matches!(ending.reason, Some(Reason::ApprovalExpired | Reason::Timeout));
        is_late && ending.from == State::ApprovalRequired
    });
    Some(if ran_out { Status::Expired } else { Status::Invalidated })
}

/// The verdict that asks for a person, or did last. A step of a workflow that is there to ask does so whenever policy
/// lets it.
pub fn question(job: &Job) -> Option<&RecordedVerdict> {
    let asks = |recorded: &&RecordedVerdict| {
        let decision = recorded.verdict.decision;
        decision == Decision::RequireApproval || (job.request.is_gate() && decision.lets_run())
    };
    job.verdicts.iter().rev().find(asks)
}

/// Why a person is asked, in words.
pub fn why(job: &Job) -> String {
    let of_run = job.request.place.of_run.as_ref().filter(|_| job.request.is_gate());
    match (question(job), of_run) {
        (Some(recorded), Some(of)) if recorded.verdict.decision != Decision::RequireApproval => {
            format!("step {} of run {} asks", of.node, of.run)
        }
        (Some(recorded), _) => recorded.verdict.reason.clone(),
        (None, _) => String::new(),
    }
}

impl Answer {
    /// An answer to whatever is asked now.
    pub fn by(name: &str) -> Self {
        Self { by: name.to_owned(), ..Self::default() }
    }

    /// Whether whoever answers is, or may be, who asked: the same credential, the same name, or nobody in particular.
    /// Whoever has a key can put it away, so an answer without one may be anybody's.
    pub fn is_from_submitter(&self, request: &Request) -> bool {
        let same_name = request.submitter_name.as_ref().is_some_and(|name| self.has_name(request, name));
        let is_anybodys = self.key.as_ref().is_some_and(KeyId::is_anonymous);
        is_anybodys || same_name || (self.key.is_some() && self.key == request.submitted_by)
    }

    /// Whether whoever answers goes by a name of who asked. Names are given to keys by whoever makes them. People are
    /// called alike and are two all the same, so between people it says nothing.
    pub fn has_name(&self, request: &Request, name: &str) -> bool {
        let is_person = |key: &Option<KeyId>| key.as_ref().is_some_and(KeyId::is_person);
        self.by == name && !(is_person(&self.key) && is_person(&request.submitted_by))
    }

    /// Whether this answers what the job asks.
    pub fn meets(&self, job: &Job) -> Result<(), Refusal> {
        if self.job_hash.as_ref().is_some_and(|hash| *hash != job_hash(&job.request)) {
            return Err(Conflict::StaleRequest.into());
        }
        match status(job) {
            Some(Status::Pending) => {}
            Some(Status::Approved | Status::Rejected) => return Err(Conflict::AlreadyResolved.into()),
            Some(Status::Invalidated) if is_denied_by_policy(job) => {
                return Err(Conflict::StaleSnapshot.into());
            }
            _ => return Err(Conflict::NotActionable.into()),
        }
        let asked_under = job.last_verdict().map_or("", |recorded| recorded.verdict.snapshot.as_str());
        if self.policy_snapshot.as_ref().is_some_and(|snapshot| snapshot != asked_under) {
            return Err(Conflict::StaleSnapshot.into());
        }
        Ok(())
    }

    pub(crate) fn decided(&self, choice: Choice, at: Millis) -> Decided {
        let (by, key, comment) = (self.by.clone(), self.key.clone(), self.comment.clone());
        Decided { choice, by, key, at, comment }
    }

    /// Who said it, and what they added.
    pub(crate) fn words(&self) -> String {
        if self.comment.is_empty() {
            format!("by {}", self.by)
        } else {
            format!("by {}: {}", self.by, self.comment)
        }
    }
}

/// Policy changed its mind before anybody decided.
fn is_denied_by_policy(job: &Job) -> bool {
    job.ending().is_some_and(|ending| ending.reason == Some(Reason::SafetyDenied))
}
