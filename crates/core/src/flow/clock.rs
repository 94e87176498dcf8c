//! A run whose moments come from a clock that has been set back since.
//!
//! What it waits for is as far away as it was: otherwise a delay of half a minute would last an hour, if the clock
//! went back by that much. A date that somebody named is left where it is.

use super::definition::Flow;
use super::node::{Node, NodeDue, NodeKey};
use super::run::{Run, RunHead};
use super::steps::Delay;
use crate::time::Millis;
use std::collections::BTreeMap;

/// Servers that share runs may be this far apart. Where two of them change a run by turns, setting it back each time
/// would bring its moments nearer and nearer.
const AHEAD_MS: i64 = 10_000;

impl RunHead {
    /// Whether it was last changed later than now can be.
    pub fn is_ahead(&self, now: Millis) -> bool {
        self.updated_at > now + AHEAD_MS
    }
}

/// The head of a run that is ahead, and its steps that wait for a time, as our clock can meet them.
pub(super) fn set_back(run: &Run, flow: &Flow, now: Millis) -> (RunHead, BTreeMap<NodeKey, Node>) {
    let was = run.head.updated_at;
    let still_to_come = |moment: Millis| now + moment.since(was);
    let mut head = run.head.clone();
    head.created_at = head.created_at.min(now);
    head.ended_at = head.ended_at.map(|at| at.min(now));
    head.deadline = head.deadline.map(still_to_come);
    let waiting = run.dues().iter().filter_map(|(_, key)| run.nodes.get_key_value(key));
    let nodes = waiting.map(|(key, node)| {
        let due = node.due.map(|due| match due {
            NodeDue::Begin(at) if is_date(flow, key) => NodeDue::Begin(at),
            NodeDue::Begin(at) => NodeDue::Begin(still_to_come(at)),
            NodeDue::Retry(at) => NodeDue::Retry(still_to_come(at)),
            NodeDue::TimeOut(at) => NodeDue::TimeOut(still_to_come(at)),
        });
        let started_at = node.started_at.map(|at| at.min(now));
        (key.clone(), Node { due, started_at, since: node.since.min(now), ..node.clone() })
    });
    (head, nodes.collect())
}

fn is_date(flow: &Flow, key: &NodeKey) -> bool {
    matches!(flow.step(&key.step).delay, Some(Delay::Until(_)))
}
