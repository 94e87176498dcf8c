//! Takes out what nobody may read any more: ended jobs past their time, expired blobs, and the end of the
//! audit trail that is old enough.

use crate::Engine;
use crate::chorus::Sight;
use crate::events::WorkerChange;
use reveille_core::placement::Member;
use reveille_core::presence::Contract;
use std::time::Duration;

const EVERY: Duration = Duration::from_mins(1);
/// Rows of each kind per commit, so that a large clean-up never holds up a submit.
const ROWS: usize = 500;

impl Engine {
    pub(crate) async fn clean_up(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let now = self.now();
            self.note_key_use().await;
            self.forget_the_long_gone().await;
            self.cut_the_trail().await;
            if let Err(error) = self.flows.prune(now - self.settings.keep_ended_ms, ROWS).await {
                tracing::warn!(%error, "pruning runs failed");
            }
            loop {
                match self.store.prune(now - self.settings.keep_ended_ms, now, ROWS).await {
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
        let before = self.now() - self.settings.keep_audit_ms;
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
        let now = self.now();
        let (seen_before, told_before) =
            (now - self.settings.keep_offline_ms, now - self.settings.keep_ended_ms);
        if let Err(error) = self.roster.prune(seen_before, told_before, ROWS).await {
            tracing::warn!(%error, "pruning the roster failed");
        }
        let gone: Vec<Member> = {
            let placement = self.placement();
            let workers = placement.fleet().iter().map(|(_, worker)| worker);
            let long_gone = workers.filter(|worker| {
                worker.offline
                    && worker.contract() == Contract::VoiceGateway
                    && worker.last_seen < seen_before
            });
            long_gone.take(ROWS).map(Member::of).collect()
        };
        for member in gone {
            self.placement().forget(member.who());
            self.tell_member(member, WorkerChange::Left, Sight::Common);
        }
    }
}
