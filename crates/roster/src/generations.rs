//! Counts by which servers notice that another one has changed what they hold copies of.

use crate::Change;

/// One count for each thing that servers hold copies of.
///
/// **What they guarantee.** They are as durable as the roster. A count grows by one in the same transaction as every
/// write that may have changed what it is named after: whoever has seen a number and then reads, reads at least what it
/// counts, and no change is without its count. They only grow, and keep no history and no order between one another: a
/// reader that finds a count other than at its last look knows that something has changed, not what or how often, and
/// reads all of it again. So there is no gap to fall into: however long a reader was away, one look and one reading bring
/// it up to date. Nobody is told; a reader learns of a change when it next looks. Where that is too late, the store's
/// event log (`EventLog`) says earlier that it is time to look. The numbers mean nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Generations {
    pub keys: u64,
    pub sessions: u64,
    pub workspaces: u64,
    pub drains: u64,
}

impl Generations {
    /// The one with this name, as it is stored.
    pub(crate) fn named(&mut self, name: &str) -> Option<&mut u64> {
        match name {
            KEYS => Some(&mut self.keys),
            SESSIONS => Some(&mut self.sessions),
            WORKSPACES => Some(&mut self.workspaces),
            DRAINS => Some(&mut self.drains),
            _ => None,
        }
    }
}

const KEYS: &str = "keys";
const SESSIONS: &str = "sessions";
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
        Change::Key(_) | Change::RevokeKey { .. } | Change::ReplaceKey { .. } => Some(KEYS),
        Change::EndSessions(_) => Some(SESSIONS),
        Change::Workspace(_) | Change::PurgeWorkspace(_) => Some(WORKSPACES),
        Change::Drain(_) | Change::Undrain(_) => Some(DRAINS),
        // A session that is over is over for those too who have not forgotten it.
        Change::ForgetSessions { .. }
        | Change::KeyUsed { .. }
        | Change::Tenant(_)
        | Change::Presence(_)
        | Change::Event(_)
        | Change::Delegation(_) => None,
    }
}
