//! A lane: the workers that fit one selector, ordered by load, and the jobs that wait for them.

use super::Selector;
use super::waiting::Waiting;
use crate::fleet::Slot;
use std::collections::BTreeSet;

/// Lanes that new jobs may make. Idle ones are dropped first.
pub const LANES_MAX: usize = 10_000;
/// Lanes in which the new jobs of one tenant may wait: no tenant can use them up.
pub const LANES_PER_TENANT_MAX: u32 = 1_000;

pub struct Lane {
    pub selector: Selector,
    /// Workers that can take a job now, least loaded first; among equals the one that waited longest.
    pub ready: BTreeSet<Rank>,
    /// Workers that fit, ready or not.
    pub members: u32,
    pub waiting: Waiting,
}

/// A worker's place in the order of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub score: u32,
    pub stamp: u64,
    pub slot: Slot,
}

impl Lane {
    pub fn new(selector: Selector) -> Self {
        Self { selector, ready: BTreeSet::new(), members: 0, waiting: Waiting::default() }
    }
}
