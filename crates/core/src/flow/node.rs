//! One step of one run, as it stands; each round of a `for_each` or a loop is one of its own.

use super::table::StepState;
use crate::id::{JobId, RunId, StepId};
use crate::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::fmt;
use std::sync::Arc;

/// Which one: `fetch`, or `fetch[3]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct NodeKey {
    pub step: StepId,
    pub round: Option<u32>,
}

impl NodeKey {
    pub fn of(step: &StepId) -> Self {
        Self { step: step.clone(), round: None }
    }

    pub fn round(step: &StepId, round: u32) -> Self {
        Self { step: step.clone(), round: Some(round) }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (step, round) = match text.split_once('[') {
            Some((step, rest)) => (step, Some(rest.strip_suffix(']')?.parse().ok()?)),
            None => (text, None),
        };
        Some(Self { step: StepId::parse(step).ok()?, round })
    }
}

impl fmt::Display for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.round {
            None => self.step.fmt(f),
            Some(round) => write!(f, "{}[{round}]", self.step),
        }
    }
}

impl From<NodeKey> for String {
    fn from(key: NodeKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for NodeKey {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} names no step"))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub state: StepState,
    /// How often it was sent off.
    #[serde(default)]
    pub attempt: u32,
    pub since: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Millis>,
    /// When time alone moves it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<NodeDue>,
    /// What it has sent off, and what is to be called back if the step is not wanted any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SubmittedWork>,
    /// What it sent off has to be told to stop; until that is over the run is not done with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owes_cancel: bool,
    /// What it was given, until it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Arc<Json>>,
    /// The rounds of a `for_each` or a loop, or the branches of a parallel step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan: Option<Fan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<Json>>,
    /// Why it is where it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// What happens when the time comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeDue {
    /// Its delay is over: it begins.
    Begin(Millis),
    /// It is tried again.
    Retry(Millis),
    /// It has taken too long.
    TimeOut(Millis),
}

impl NodeDue {
    pub fn at(self) -> Millis {
        match self {
            Self::Begin(at) | Self::Retry(at) | Self::TimeOut(at) => at,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubmittedWork {
    Job(JobId),
    Run(RunId),
    /// An alert, which is said until somebody has taken it.
    Notice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fan {
    pub count: u32,
    /// Rounds that were begun.
    pub begun: u32,
    pub live: u32,
    pub succeeded: u32,
    pub failed: u32,
}

impl Node {
    pub fn new(state: StepState, now: Millis) -> Self {
        Self {
            state,
            attempt: 0,
            since: now,
            started_at: None,
            due: None,
            sent: None,
            owes_cancel: false,
            input: None,
            fan: None,
            output: None,
            words: String::new(),
        }
    }

    pub fn job(&self) -> Option<&JobId> {
        match &self.sent {
            Some(SubmittedWork::Job(job)) => Some(job),
            _ => None,
        }
    }
}
