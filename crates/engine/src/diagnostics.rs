//! What a server is at, for operators: its metrics, who holds which lock and what for, and what it waits for.

use crate::delegations::DELEGATION_LOCK;
use crate::engine::Engine;
use crate::fleet::SNAPSHOT_LOCK;
use crate::fleet::workspaces::SILENCE_LOCK;
use crate::observe::audit_writer;
use crate::observe::metrics::{Circuit, CurrentCounts, Figures};
use crate::workflows::RUN_LOCK;
use reveille_core::reconcile::{RECONCILER_LOCK, REPLAYER_LOCK};
use reveille_store::{HeldLock, StoreError};

/// Locks that are named; of more, the ones that lapse first.
const LOCKS_MAX: usize = 100;

/// What each lock is for, by how its name begins.
const PURPOSES: [(&str, &str); 7] = [
    (SNAPSHOT_LOCK, "writes the snapshot of the workers"),
    (RECONCILER_LOCK, "looks for jobs that are late"),
    (REPLAYER_LOCK, "looks for jobs that stand still"),
    (audit_writer::LOCK, "writes an entry of the audit trail"),
    (RUN_LOCK, "decides about a run"),
    (DELEGATION_LOCK, "decides about a delegation"),
    (SILENCE_LOCK, "has told that a workspace is silent"),
];

impl Engine {
    /// Locks that servers hold now, by name, and whether there are more.
    pub async fn locks_held(&self) -> Result<(Vec<HeldLock>, bool), StoreError> {
        let mut held = self.store().locks_held(LOCKS_MAX + 1).await?;
        let is_cut = held.len() > LOCKS_MAX;
        held.truncate(LOCKS_MAX);
        held.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((held, is_cut))
    }

    /// What the holder of a lock does; nothing for one that we do not know.
    pub fn lock_purpose(name: &str) -> &'static str {
        PURPOSES.iter().find(|(begins, _)| name.starts_with(begins)).map_or("", |(_, purpose)| purpose)
    }

    /// The figures of this server.
    pub fn figures(&self) -> Figures {
        self.metrics().figures(self.now(), self.placement().timers().len())
    }

    /// The metrics page.
    pub fn metrics_page(&self) -> String {
        let (now, timers) = (self.now(), self.placement().timers());
        for circuit in Circuit::ALL {
            let breaker = self.jobs().policy().kernel().circuit(circuit);
            self.metrics().safety().stands(circuit.name(), breaker);
        }
        self.metrics().page(&CurrentCounts {
            now,
            unconfirmed: self.fleet().unconfirmed(),
            workers: self.placement().lock().fleet().alive(),
            live_jobs: timers.len(),
            messages_lost: self.bus().lost(),
            tasks: self.runtime().tasks_len(),
            stale_jobs: timers.overdue(now),
            traces: self.observe().trace_counts(),
        })
    }
}
