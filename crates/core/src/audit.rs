//! The audit trail: what was decided, by whom and why, in an order that cannot be changed unseen.
//!
//! Every tenant has a chain of its own. An [`Entry`] holds the hash of the one before it, so whoever
//! alters, drops or reorders entries has to write every later one anew, and the head with them.
//! [`of_step`] says what a commit adds to the trail and [`Verifier`] checks a chain, page by page.
//!
//! Not here: keeping it. The store writes an entry in the same commit as what it records. Nor is there a
//! secret in the hashes: who can rewrite the whole file can rewrite the chain, unless a [`Checkpoint`] of it
//! is kept elsewhere.

mod act;
mod checkpoint;
mod hash;
mod of_step;
mod verify;

pub use act::{Action, BY_KEY, CLAIMED};
pub use checkpoint::{BadCheckpoint, Checkpoint};
pub use hash::Hash;
pub use of_step::of_step;
pub use verify::{Fault, GAPS_MAX, Gap, Status, Verification, Verifier};

use crate::id::{JobId, TenantId};
use crate::policy::Decision;
use crate::time::Millis;
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

words! {
    /// What kind of thing an entry tells.
    EventType {
        /// Policy judged a job.
        Decision = "safety.decision",
        /// A person allowed a job, or did not.
        Approval = "safety.approval",
        /// Another policy is in force.
        PolicyChange = "safety.policy_change",
        /// Output was held back.
        Violation = "safety.violation",
        /// A key was made or revoked, or somebody signed in with one.
        Auth = "system.auth",
        /// Somebody changed something: a job was cancelled, workers were drained, a workflow was saved.
        Act = "system.act",
        /// Somebody read what is held back.
        Read = "system.read",
    }
}

words! {
    /// How much it matters to whoever reads the trail.
    Severity {
        Info = "INFO",
        Low = "LOW",
        Medium = "MEDIUM",
        High = "HIGH",
        Critical = "CRITICAL",
    }
}

/// What is to be recorded. It has no place in a chain yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    pub tenant: TenantId,
    pub at: Millis,
    pub event_type: EventType,
    pub severity: Severity,
    /// What was done, in a word.
    pub action: String,
    /// Who did it, or on whose behalf; nothing if nobody in particular.
    pub identity: String,
    pub job_id: Option<JobId>,
    pub decision: Option<Decision>,
    pub matched_rule: String,
    pub reason: String,
    /// The policy that was in force, by its snapshot.
    pub policy_version: String,
    pub extra: BTreeMap<String, String>,
}

impl Draft {
    /// A draft that says only what was done; the rest is for the caller to fill in.
    pub fn new(tenant: TenantId, at: Millis, event_type: EventType, action: &str) -> Self {
        Self {
            tenant,
            at,
            event_type,
            severity: Severity::Info,
            action: action.to_owned(),
            identity: String::new(),
            job_id: None,
            decision: None,
            matched_rule: String::new(),
            reason: String::new(),
            policy_version: String::new(),
            extra: BTreeMap::new(),
        }
    }
}

/// A place in a chain: the entry with this number had this hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// Counts from one; nothing has come yet at zero.
    pub seq: u64,
    pub hash: Hash,
}

impl Link {
    /// The place that `draft` gets after this one.
    pub fn next(&self, draft: &Draft) -> Self {
        let seq = self.seq + 1;
        Self { seq, hash: Hash::of(&self.hash, seq, draft) }
    }
}

/// Where a chain begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// The last entry that went when its time was over; at zero none has.
    pub boundary: Link,
    /// The newest entry.
    pub head: Link,
}

/// One line of a tenant's trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub seq: u64,
    pub draft: Draft,
    pub prev_hash: Hash,
    pub event_hash: Hash,
}

impl Entry {
    /// The entry that `draft` becomes after `head`.
    pub fn follow(draft: Draft, head: &Link) -> Self {
        let Link { seq, hash } = head.next(&draft);
        Self { seq, draft, prev_hash: head.hash, event_hash: hash }
    }

    pub fn link(&self) -> Link {
        Link { seq: self.seq, hash: self.event_hash }
    }

    /// Whether it says what it said when it was written, as far as its own hash can tell.
    pub fn is_sound(&self) -> bool {
        self.event_hash == Hash::of(&self.prev_hash, self.seq, &self.draft)
    }
}
