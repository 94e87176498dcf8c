//! Counts by which replicas notice that another one has changed what they hold copies of.

use crate::Change;

/// Each grows by one with every write that may have changed what it is named after, in the same transaction:
/// whoever has seen a number and then reads, reads at least what it counts. Compare them with those of
/// the last look; they mean nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Generations {
    pub keys: u64,
    pub workspaces: u64,
    pub drains: u64,
}

impl Generations {
    /// The one with this name, as it is stored.
    pub(crate) fn named(&mut self, name: &str) -> Option<&mut u64> {
        match name {
            KEYS => Some(&mut self.keys),
            WORKSPACES => Some(&mut self.workspaces),
            DRAINS => Some(&mut self.drains),
            _ => None,
        }
    }
}

const KEYS: &str = "keys";
const WORKSPACES: &str = "workspaces";
const DRAINS: &str = "drains";

/// The names of what a batch moves, each once, in one order for all writers.
pub(crate) fn moved<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Vec<&'static str> {
    let mut names: Vec<_> = changes.into_iter().filter_map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn name(change: &Change) -> Option<&'static str> {
    match change {
        Change::Key(_) | Change::RevokeKey { .. } => Some(KEYS),
        Change::Workspace(_) | Change::PurgeWorkspace(_) => Some(WORKSPACES),
        Change::Drain(_) | Change::Undrain(_) => Some(DRAINS),
        Change::KeyUsed { .. }
        | Change::Tenant(_)
        | Change::Presence(_)
        | Change::Event(_)
        | Change::Delegation(_) => None,
    }
}
