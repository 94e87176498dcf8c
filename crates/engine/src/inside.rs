//! What a server is at, for operators: who holds which lock and what for, and what it waits for.

use crate::delegate::DELEGATION_LOCK;
use crate::timers::Ahead;
use crate::workspaces::SILENCE_LOCK;
use crate::{Engine, clerk, run_lock, warm};
use reveille_core::reconcile::{RECONCILER_LOCK, REPLAYER_LOCK};
use reveille_store::{HeldLock, StoreError};

/// Locks that are named; of more, the ones that lapse first.
const LOCKS_MAX: usize = 100;

/// What each lock is for, by how its name begins.
const PURPOSES: [(&str, &str); 7] = [
    (warm::LOCK, "writes the snapshot of the workers"),
    (RECONCILER_LOCK, "looks for jobs that are late"),
    (REPLAYER_LOCK, "looks for jobs that stand still"),
    (clerk::LOCK, "writes an entry of the audit trail"),
    (run_lock::LOCK, "decides about a run"),
    (DELEGATION_LOCK, "decides about a delegation"),
    (SILENCE_LOCK, "has told that a workspace is silent"),
];

impl Engine {
    /// Locks that servers hold now, by name, and whether there are more.
    pub async fn locks_held(&self) -> Result<(Vec<HeldLock>, bool), StoreError> {
        let mut held = self.store.locks_held(LOCKS_MAX + 1).await?;
        let is_cut = held.len() > LOCKS_MAX;
        held.truncate(LOCKS_MAX);
        held.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((held, is_cut))
    }

    /// What the holder of a lock does; nothing for one that we do not know.
    pub fn lock_purpose(name: &str) -> &'static str {
        PURPOSES.iter().find(|(begins, _)| name.starts_with(begins)).map_or("", |(_, purpose)| purpose)
    }

    /// The moments of jobs that this server waits for.
    pub fn job_timers(&self) -> Ahead {
        self.timers.ahead()
    }

    /// The moments of runs that this server waits for.
    pub fn run_timers(&self) -> Ahead {
        self.runs.ahead()
    }

    /// Decisions about jobs that are under way here.
    pub fn decisions(&self) -> usize {
        self.turns.busy()
    }
}
