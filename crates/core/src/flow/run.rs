//! A run: its head, its steps, its context, and what would undo it. Loaded whole, changed in parts.

use super::RunChange;
use super::node::{Node, NodeKey};
use super::saga::{ClientUndo, Stack};
use super::table::{RunState, StepState};
use crate::id::{JobId, KeyId, RunId, StepId, TenantId, WorkflowId};
use crate::request::Actor;
use crate::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// What is written with every change of a run, so it is kept small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    pub id: RunId,
    pub tenant: TenantId,
    pub workflow: WorkflowId,
    /// The version of the workflow it began with, and keeps.
    pub version: u32,
    /// Counts commits; the store compares and swaps on it.
    pub revision: u64,
    pub state: RunState,
    pub created_at: Millis,
    pub updated_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Millis>,
    /// When to look at it again, if nothing happens before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Millis>,
    /// Steps that are not settled.
    pub open: u32,
    /// Of those under way: how many work, and how many wait.
    pub running: u32,
    pub waiting: u32,
    /// What was sent off and has to be called back.
    #[serde(default)]
    pub cancels: u32,
    /// What was done is to be undone by a run that has yet to be made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owes_rollback: bool,
    /// How many compensations were recorded.
    #[serde(default)]
    pub compensations: u32,
    /// Of a run that keeps what undoes a client's jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<Box<Stack>>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    pub origin: RunOrigin,
    /// The credential it was started with: its jobs are submitted in that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<KeyId>,
    #[serde(default)]
    pub actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub memory_id: String,
    /// Lines of the timeline so far.
    #[serde(default)]
    pub lines: u64,
}

/// Why there is such a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunOrigin {
    Started,
    /// A step of another run; `depth` counts from one.
    Step {
        run: RunId,
        node: NodeKey,
        attempt: u32,
        depth: u32,
    },
    Rerun {
        of: RunId,
        from: StepId,
    },
    /// It undoes what another did.
    Rollback {
        of: RunId,
    },
    /// It keeps what undoes the jobs of a workflow that a client drives itself.
    Client,
}

impl RunOrigin {
    /// Whether the run goes by a workflow that somebody saved, and needs that version of it until it is gone.
    pub fn goes_by_a_version(&self) -> bool {
        !matches!(self, Self::Rollback { .. } | Self::Client)
    }
}

/// Why a run is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WaitsFor {
    #[error("the run is not over; cancel it first")]
    End,
    #[error("the run is over, but {0} jobs or runs of it have yet to be told to stop; try again soon")]
    Cancels(u32),
    #[error("the run is over, but what undoes it has yet to begin; try again soon")]
    Rollback,
}

/// What undoes one step that succeeded. The last one recorded goes first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compensation {
    pub node: NodeKey,
    /// The job that it undoes, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    pub input: Json,
    /// Why its input could not be worked out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
    /// The job it undoes is a client's, and no step of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Box<ClientUndo>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub head: RunHead,
    pub input: Arc<Json>,
    pub nodes: BTreeMap<NodeKey, Node>,
    pub context: BTreeMap<String, Arc<Json>>,
    /// What a `for_each` goes through.
    pub items: BTreeMap<StepId, Arc<Vec<Json>>>,
    pub compensations: Vec<Arc<Compensation>>,
    pub output: Option<Arc<Json>>,
    /// Steps by the time that moves them on; follows from `nodes`.
    dues: BTreeSet<(Millis, NodeKey)>,
    /// Steps that are not settled, or owe a cancel; follows from `nodes`.
    live: BTreeSet<NodeKey>,
}

impl Run {
    pub fn new(head: RunHead, input: Arc<Json>) -> Self {
        Self {
            head,
            input,
            nodes: BTreeMap::new(),
            context: BTreeMap::new(),
            items: BTreeMap::new(),
            compensations: Vec::new(),
            output: None,
            dues: BTreeSet::new(),
            live: BTreeSet::new(),
        }
    }

    /// Whether something is still owed: a live run always owes something.
    pub fn is_live(&self) -> bool {
        self.head.is_live()
    }

    /// Steps that are under way, or whose cancel is.
    pub fn live(&self) -> impl Iterator<Item = (&NodeKey, &Node)> {
        self.live.iter().filter_map(|key| self.nodes.get_key_value(key))
    }

    pub(super) fn live_in(&self, range: RangeInclusive<NodeKey>) -> impl Iterator<Item = &NodeKey> {
        self.live.range(range)
    }

    pub(super) fn dues(&self) -> &BTreeSet<(Millis, NodeKey)> {
        &self.dues
    }

    /// Puts one step where it belongs, as it is now.
    pub fn put(&mut self, key: NodeKey, node: Node) {
        if let Some(due) = self.nodes.get(&key).and_then(|before| before.due) {
            self.dues.remove(&(due.at(), key.clone()));
        }
        if let Some(due) = node.due {
            self.dues.insert((due.at(), key.clone()));
        }
        if !node.state.is_settled() || node.owes_cancel {
            self.live.insert(key.clone());
        } else {
            self.live.remove(&key);
        }
        self.nodes.insert(key, node);
    }

    /// What was committed has happened.
    pub fn apply(&mut self, change: RunChange) {
        self.head = change.head;
        for (key, node) in change.nodes {
            self.put(key, node);
        }
        for (name, value) in change.context {
            match value {
                Some(value) => self.context.insert(name, value),
                None => self.context.remove(&name),
            };
        }
        self.items.extend(change.items);
        self.compensations.extend(change.compensations);
        if change.output.is_some() {
            self.output = change.output;
        }
    }

    pub fn state_of(&self, step: &StepId) -> StepState {
        self.nodes.get(&NodeKey::of(step)).map_or(StepState::Pending, |node| node.state)
    }
}

impl RunHead {
    /// A run that has not begun.
    pub fn new(id: RunId, tenant: TenantId, workflow: WorkflowId, version: u32, now: Millis) -> Self {
        Self {
            id,
            tenant,
            workflow,
            version,
            revision: 0,
            state: RunState::Pending,
            created_at: now,
            updated_at: now,
            ended_at: None,
            deadline: None,
            due: None,
            open: 0,
            running: 0,
            waiting: 0,
            cancels: 0,
            owes_rollback: false,
            compensations: 0,
            stack: None,
            error: String::new(),
            origin: RunOrigin::Started,
            started_by: None,
            actor: Actor::default(),
            idempotency_key: None,
            memory_id: String::new(),
            lines: 0,
        }
    }

    pub fn is_live(&self) -> bool {
        self.waits_for().is_some()
    }

    /// What has to happen before nothing is owed any more; nothing if that is so.
    pub fn waits_for(&self) -> Option<WaitsFor> {
        if !self.state.is_terminal() {
            return Some(WaitsFor::End);
        }
        match self.cancels {
            0 => self.owes_rollback.then_some(WaitsFor::Rollback),
            count => Some(WaitsFor::Cancels(count)),
        }
    }
}
