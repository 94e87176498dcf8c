//! Warm start: the fleet as it was, known again before the first request is answered.
//!
//! While we run, the snapshot is written every few seconds by whoever holds the writer's lock. On a start
//! it is read once, with a time limit; a snapshot that is missing, late or unreadable means a cold start
//! and a warning, never a failed one. Whoever is restored counts as heard at our start and is marked
//! until it is heard again. Live beats always win.

use super::Fleet;
use super::snapshot::Snapshot;
use reveille_core::fleet::Seen;
use reveille_core::id::KeyId;
use reveille_core::presence::agent::AgentStatus;
use reveille_core::presence::workspace::{Pulse, WorkspaceStatus};
use reveille_core::presence::{About, Contract};
use reveille_core::time::Millis;
use reveille_roster::{PresenceRow, RosterError};
use rustc_hash::FxHashMap;
use std::time::Duration;

/// How long a start waits for the snapshot.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// Rows read at a time.
const PAGE: usize = 2_000;

impl Fleet {
    /// Reads what is known of the fleet. Called once, before anything else runs.
    pub(crate) async fn hydrate(&self) -> Result<(), RosterError> {
        self.hydrate_workers().await;
        let rows = self.presence_rows().await?;
        let drains = self.roster.drains().await?;
        let now = self.runtime.now();
        let mut pulses = FxHashMap::default();
        let mut placement = self.placement.lock();
        for drain in drains {
            placement.drain(drain.set_back(now));
        }
        for row in rows {
            match row.about {
                About::Agent(agent) => {
                    // One that was offline when we went down is not brought back by our start.
                    let seen = match agent.status {
                        AgentStatus::Offline => Seen::LongAgo(row.last_seen),
                        AgentStatus::Idle | AgentStatus::Busy => Seen::JustNow(now),
                    };
                    placement.restore_agent(&row.key.tenant, &row.key.id, *agent, seen);
                }
                About::Workspace(pulse) => drop(pulses.insert(row.key.id, (*pulse, row.last_seen))),
                About::Cap => {}
            }
        }
        for workspace in self.workspaces.index().all() {
            let (pulse, last_seen) =
                pulses.remove(workspace.id.as_str()).unwrap_or((Pulse::default(), workspace.updated_at));
            let seen = match workspace.status {
                WorkspaceStatus::Removed | WorkspaceStatus::Provisioning => continue,
                WorkspaceStatus::Offline => Seen::LongAgo(last_seen),
                // It has one TTL from here, as everybody has, and is then declared offline in full order.
                WorkspaceStatus::Online | WorkspaceStatus::Degraded => Seen::JustNow(now),
            };
            placement.restore_workspace(
                &workspace.id,
                &workspace.tenant,
                pulse,
                workspace.at_once(),
                seen,
                now,
            );
        }
        let (known, alive) = (placement.fleet().len(), placement.fleet().alive());
        drop(placement);
        if known > 0 {
            tracing::info!(known, alive, "fleet restored; members have one TTL to send a heartbeat");
        }
        Ok(())
    }

    async fn presence_rows(&self) -> Result<Vec<PresenceRow>, RosterError> {
        let mut rows: Vec<PresenceRow> = Vec::new();
        loop {
            let after = rows.last().map(|row| row.key.clone());
            let page = self.roster.presence(after, PAGE).await?;
            let is_last = page.len() < PAGE;
            rows.extend(page);
            if is_last {
                return Ok(rows);
            }
        }
    }

    async fn hydrate_workers(&self) {
        if !self.runtime.settings().warm_start {
            tracing::warn!("warm start is off; starting cold");
            return;
        }
        let found = match tokio::time::timeout(READ_WITHIN, self.snapshots.read()).await {
            Err(_) => {
                tracing::warn!("worker snapshot not read within 5 s; starting cold");
                return;
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "worker snapshot not read; starting cold");
                return;
            }
            Ok(Ok(None)) => {
                tracing::info!("no snapshot found, starting cold");
                return;
            }
            Ok(Ok(Some(found))) => found,
        };
        let snapshot: Snapshot = match serde_json::from_slice(&found) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                tracing::warn!(%error, "worker snapshot unreadable; starting cold");
                return;
            }
        };
        let must_be_seen = self.bus.shows_listeners();
        let (now, tenant) = (self.runtime.now(), &self.runtime.settings().default_tenant);
        let entries = snapshot.workers.into_iter();
        let mut workers = 0u64;
        let grant_of = |key: &KeyId| self.keys.worker_credential(key, now);
        for remembered in entries.filter_map(|entry| entry.remembered(tenant, grant_of)) {
            self.has_credentials(remembered.profile.credential.is_some());
            // One that was heard while we read is left as it is.
            workers += u64::from(self.placement.lock().restore(remembered, must_be_seen, now));
        }
        self.observe.metrics().fleet().hydrated(workers);
        let age_ms = now.since(Millis(snapshot.captured_at_ms));
        tracing::info!(workers, age_ms, writer = snapshot.writer_id, "registry hydrated from snapshot");
    }

    /// How many members are restored and not heard since.
    pub(crate) fn unconfirmed(&self) -> usize {
        let placement = self.placement.lock();
        placement.fleet().iter().filter(|(_, worker)| worker.restored).count()
    }

    /// How often a member of this contract should beat, in seconds.
    pub fn suggested_beat_seconds(&self, contract: Contract) -> i64 {
        (self.runtime.settings().ttls.beat_every_ms(contract) / 1000).max(1)
    }
}
