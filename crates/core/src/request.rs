//! What somebody asked for. A request never changes once it was accepted.

use crate::flow::NodeKey;
use crate::id::{JobId, KeyId, RunId, TenantId, Topic, WorkspaceId};
use crate::trace::TraceContext;
use crate::words::words;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const LABELS_MAX: usize = 1000;
pub const TAGS_MAX: usize = 1000;
pub const LABEL_KEY_LEN_MAX: usize = 256;
pub const LABEL_VALUE_LEN_MAX: usize = 4096;
pub const TOKENS_MAX: i64 = 10_000_000_000;
/// A deadline further away than this is a mistake, and would overflow nothing but patience.
pub const DEADLINE_MS_MAX: i64 = 365 * 24 * 3600 * 1000;

/// How urgent. The order of the variants is the order of the queue: critical goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Critical,
    #[default]
    Interactive,
    Batch,
}

impl Priority {
    pub const ALL: [Self; 3] = [Self::Critical, Self::Interactive, Self::Batch];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Interactive => "interactive",
            Self::Batch => "batch",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.as_str().eq_ignore_ascii_case(text))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub id: JobId,
    pub tenant: TenantId,
    pub topic: Topic,
    #[serde(default)]
    pub priority: Priority,
    pub trace_id: String,
    /// Where the input is, as `redis://ctx:<job>`.
    pub context_ptr: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Actor::is_empty")]
    pub actor: Actor,
    #[serde(default, skip_serializing_if = "Needs::is_empty")]
    pub needs: Needs,
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    #[serde(default, skip_serializing_if = "Hints::is_empty")]
    pub hints: Hints,
    #[serde(default, skip_serializing_if = "Place::is_empty")]
    pub place: Place,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The compensation message as it came; the saga runner reads it when the job has succeeded.
    #[serde(default, skip_serializing_if = "Bytes::is_empty")]
    pub compensation: Bytes,
    /// One workspace gave this job to another; it goes there and nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated: Option<Delegated>,
    /// The credential it came with: a key, whomever it spoke for, or a workspace with its own token. It is never taken
    /// from what was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<KeyId>,
    /// What that key was called then. The trail and approvals go by it; `actor` is only what the submitter claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitter_name: Option<String>,
    /// Where the caller stood in its own trace, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<TraceContext>>,
}

/// Who gave a job to whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Delegated {
    pub from: WorkspaceId,
    pub to: WorkspaceId,
}

/// Who asked, in the asker's own words: a claim, by which nobody is let in or kept out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Actor {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub principal_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub actor_id: String,
    /// `human`, `service` or nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub actor_type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub team: String,
}

/// What the job is about and what it needs of a worker; policy reads all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Needs {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub capability: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risk_tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pack_id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    pub max_input_tokens: i64,
    pub max_output_tokens: i64,
    pub max_total_tokens: i64,
    /// Milliseconds from acceptance; zero means none.
    pub deadline_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hints {
    pub max_input_tokens: i32,
    pub allow_summarization: bool,
    pub allow_retrieval: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Where the job stands in something larger.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub adapter_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub parent_job_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workflow_id: String,
    pub step_index: i32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub memory_id: String,
    /// The step of a run that it is. It is never taken from what was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_run: Option<Box<OfRun>>,
}

/// Which step of which run a job is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfRun {
    pub run: RunId,
    pub node: NodeKey,
    pub attempt: u32,
    pub role: Role,
}

words! {
    /// What it is for its run.
    Role {
        Step = "step",
        /// A person is asked, and that is all.
        Gate = "gate",
        /// It undoes a step that succeeded.
        Compensation = "compensation",
    }
}

macro_rules! empty_is_default {
    ($($name:ident)*) => {$(
        impl $name {
            fn is_empty(&self) -> bool {
                *self == Self::default()
            }
        }
    )*};
}
empty_is_default!(Actor Needs Budget Hints Place);

/// A field of a request that cannot be accepted, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct BadRequest {
    pub field: &'static str,
    pub problem: String,
}

impl BadRequest {
    pub fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
    }
}

impl Request {
    /// The limits that hold for every job, whichever surface it came through.
    pub fn check(&self) -> Result<(), BadRequest> {
        let count = |field, len: usize, max: usize| {
            if len > max {
                Err(BadRequest::new(field, format!("has {len} entries; at most {max} are allowed")))
            } else {
                Ok(())
            }
        };
        count("labels", self.labels.len(), LABELS_MAX)?;
        count("risk_tags", self.needs.risk_tags.len(), TAGS_MAX)?;
        count("requires", self.needs.requires.len(), TAGS_MAX)?;
        count("env", self.env.len(), LABELS_MAX)?;
        for (key, value) in &self.labels {
            if key.is_empty() || key.len() > LABEL_KEY_LEN_MAX {
                return Err(BadRequest::new(
                    "labels",
                    format!("a key must have 1 to {LABEL_KEY_LEN_MAX} bytes"),
                ));
            }
            if value.len() > LABEL_VALUE_LEN_MAX {
                let problem = format!("the value of {key:?} is longer than {LABEL_VALUE_LEN_MAX} bytes");
                return Err(BadRequest::new("labels", problem));
            }
        }
        let tokens = [
            ("max_input_tokens", self.budget.max_input_tokens),
            ("max_output_tokens", self.budget.max_output_tokens),
            ("max_total_tokens", self.budget.max_total_tokens),
        ];
        for (field, value) in tokens {
            if !(0..=TOKENS_MAX).contains(&value) {
                return Err(BadRequest::new(field, format!("must be between 0 and {TOKENS_MAX}")));
            }
        }
        if !(0..=DEADLINE_MS_MAX).contains(&self.budget.deadline_ms) {
            return Err(BadRequest::new("deadline_ms", format!("must be between 0 and {DEADLINE_MS_MAX}")));
        }
        if self.place.step_index < 0 {
            return Err(BadRequest::new("step_index", "must not be negative"));
        }
        Ok(())
    }

    /// Whether it is there only to be approved.
    pub fn is_gate(&self) -> bool {
        self.place.of_run.as_ref().is_some_and(|of| of.role == Role::Gate)
    }

    /// Whether it undoes a step of a run.
    pub fn is_compensation(&self) -> bool {
        self.place.of_run.as_ref().is_some_and(|of| of.role == Role::Compensation)
    }

    /// Takes the caller's trace for its own, if there is one; then its jobs are found under that id.
    pub fn follow(&mut self, trace: Option<TraceContext>) {
        if let Some(trace) = &trace {
            self.trace_id = trace.parent.trace.to_string();
        }
        self.trace = trace.map(Box::new);
    }

    /// A job with nothing but a topic, for tests and examples.
    pub fn plain(id: &str, topic: &str) -> Self {
        Self {
            id: JobId::known(id),
            tenant: TenantId::known("default"),
            topic: Topic::known(topic),
            priority: Priority::default(),
            trace_id: id.to_owned(),
            context_ptr: format!("redis://ctx:{id}"),
            labels: BTreeMap::new(),
            env: BTreeMap::new(),
            actor: Actor::default(),
            needs: Needs::default(),
            budget: Budget::default(),
            hints: Hints::default(),
            place: Place::default(),
            idempotency_key: None,
            compensation: Bytes::new(),
            delegated: None,
            submitted_by: None,
            submitter_name: None,
            trace: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_over_a_limit_names_the_field() {
        let check = |change: fn(&mut Request), field: &str| {
            let mut request = Request::plain("j", "job.echo");
            assert_eq!(request.check(), Ok(()));
            change(&mut request);
            assert_eq!(request.check().unwrap_err().field, field);
        };
        check(|r| r.labels = (0..=LABELS_MAX).map(|n| (n.to_string(), String::new())).collect(), "labels");
        check(|r| drop(r.labels.insert("k".into(), "v".repeat(LABEL_VALUE_LEN_MAX + 1))), "labels");
        check(|r| r.needs.requires = vec![String::new(); TAGS_MAX + 1], "requires");
        check(|r| r.budget.deadline_ms = -1, "deadline_ms");
        check(|r| r.budget.max_total_tokens = TOKENS_MAX + 1, "max_total_tokens");
        check(|r| r.place.step_index = -1, "step_index");
    }

    #[test]
    fn critical_goes_before_interactive_and_batch() {
        assert!(Priority::Critical < Priority::Interactive && Priority::Interactive < Priority::Batch);
        assert_eq!(Priority::parse("CRITICAL"), Some(Priority::Critical));
        assert_eq!(Priority::parse("soon"), None);
    }
}
