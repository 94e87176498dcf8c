//! Takes out what nobody may read any more: ended jobs past their time, expired blobs, and the end of the
//! audit trail that is old enough.

use crate::access::Access;
use crate::fleet::Fleet;
use crate::runtime::Runtime;
use reveille_roster::Roster;
use reveille_store::Store;
use reveille_store::workflows::WorkflowStore;
use std::sync::Arc;
use std::time::Duration;

const EVERY: Duration = Duration::from_mins(1);
/// Rows of each kind per commit, so that a large clean-up never holds up a submit.
const ROWS: usize = 500;

pub struct Janitor {
    pub runtime: Runtime,
    pub access: Access,
    pub fleet: Fleet,
    pub store: Arc<dyn Store>,
    pub workflows: Arc<dyn WorkflowStore>,
    pub roster: Arc<dyn Roster>,
}

impl Janitor {
    pub async fn run(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let now = self.runtime.now();
            self.access.note_key_use().await;
            self.forget_the_long_gone().await;
            self.cut_the_trail().await;
            if let Err(error) = self.workflows.prune(now - self.runtime.settings().keep_ended_ms, ROWS).await
            {
                tracing::warn!(%error, "pruning runs failed");
            }
            loop {
                match self.store.prune(now - self.runtime.settings().keep_ended_ms, now, ROWS).await {
                    Ok(0) => break,
                    Ok(rows) => tracing::debug!(rows, "pruned"),
                    Err(error) => {
                        tracing::warn!(%error, "pruning failed");
                        break;
                    }
                }
            }
        }
    }

    /// The chains go on from where they are cut.
    async fn cut_the_trail(&self) {
        let before = self.runtime.now() - self.runtime.settings().keep_audit_ms;
        loop {
            match self.store.prune_audit(before, ROWS).await {
                Ok(0) => break,
                Ok(rows) => tracing::debug!(rows, "pruned from the audit trail"),
                Err(error) => {
                    tracing::warn!(%error, "pruning the audit trail failed");
                    break;
                }
            }
        }
    }

    /// Agents that have been offline for longer than anybody asks, and what was told long ago.
    async fn forget_the_long_gone(&self) {
        let now = self.runtime.now();
        let (seen_before, told_before) =
            (now - self.runtime.settings().keep_offline_ms, now - self.runtime.settings().keep_ended_ms);
        if let Err(error) = self.roster.prune(seen_before, told_before, ROWS).await {
            tracing::warn!(%error, "pruning the roster failed");
        }
        self.fleet.forget_long_gone(seen_before, ROWS);
    }
}
