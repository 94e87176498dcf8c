//! Warm start: the fleet as it was, known again before the first request is answered.
//!
//! While we run, the snapshot is written every few seconds by whoever holds the writer's lock. On a start
//! it is read once, with a time limit; a snapshot that is missing, late or unreadable means a cold start
//! and a warning, never a failed one. Whoever is restored counts as heard at our start and is marked
//! until it is heard again. Live beats always win.

use crate::Engine;
use crate::lease::Post;
use crate::snapshot::Snapshot;
use reveille_core::fleet::Seen;
use reveille_core::presence::agent::AgentStatus;
use reveille_core::presence::workspace::{Pulse, WorkspaceStatus};
use reveille_core::presence::{About, Contract};
use reveille_core::time::Millis;
use reveille_roster::{PresenceRow, RosterError};
use reveille_store::{BlobKey, Lock, PutMode, StoreError};
use rustc_hash::FxHashMap;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a start waits for the snapshot.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// The lock that keeps replicas from writing the same snapshot twice. Two of the seeds give it 30 s, the
/// third 10 s, which fails over faster.
pub(crate) const LOCK: &str = "cordum:scheduler:snapshot:writer";
const LOCK_MS: i64 = 10_000;
/// A snapshot that nobody renews goes after this long.
const KEEP_MS: i64 = 24 * 3600 * 1000;
/// A large fleet is written less often, so that writing takes at most one part in so many of the time.
const SHARE: u32 = 20;
/// Rows read at a time.
const PAGE: usize = 2_000;

/// The place of whoever writes the snapshot.
pub(crate) fn post(end: CancellationToken) -> Post {
    Post::new(LOCK, LOCK_MS, end)
}

impl Engine {
    /// Reads what is known of the fleet. Called once, before anything else runs.
    pub(crate) async fn hydrate(&self) -> Result<(), RosterError> {
        self.hydrate_workers().await;
        let rows = self.presence_rows().await?;
        let drains = self.roster.drains().await?;
        let now = self.now();
        let mut pulses = FxHashMap::default();
        let mut placement = self.placement();
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
        for workspace in self.workspaces.all() {
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
            tracing::info!(known, alive, "the fleet is known again; who is alive has one TTL to be heard");
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
        if !self.settings.warm_start {
            tracing::warn!("warm start is off; starting cold");
            return;
        }
        let key = self.store.kept_as(BlobKey::workers_snapshot());
        let found = match tokio::time::timeout(READ_WITHIN, self.store.blob(&key)).await {
            Err(_) => {
                tracing::warn!("the worker snapshot took longer than 5 s to read; starting cold");
                return;
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the worker snapshot could not be read; starting cold");
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
                tracing::warn!(%error, "the worker snapshot is not readable; starting cold");
                return;
            }
        };
        let must_be_seen = self.bus.shows_listeners();
        let (now, tenant) = (self.now(), &self.settings.default_tenant);
        let entries = snapshot.workers.into_iter();
        let mut workers = 0u64;
        for remembered in entries.filter_map(|entry| entry.remembered(tenant)) {
            // One that was heard while we read is left as it is.
            workers += u64::from(self.placement().restore(remembered, must_be_seen, now));
        }
        self.metrics.fleet.hydrated(workers);
        let age_ms = now.since(Millis(snapshot.captured_at_ms));
        tracing::info!(workers, age_ms, writer = snapshot.writer_id, "registry hydrated from snapshot");
    }

    /// Writes the snapshot again and again.
    pub(crate) async fn write_snapshots(self) {
        let every = self.settings.snapshot_every;
        let mut pause = every;
        loop {
            tokio::time::sleep(pause).await;
            let began = Instant::now();
            if let Err(error) = self.write_snapshot().await {
                tracing::warn!(%error, "the worker snapshot could not be written");
            }
            pause = every.max(began.elapsed() * SHARE);
        }
    }

    /// Writes the snapshot now, unless another replica is at it.
    pub(crate) async fn write_snapshot(&self) -> Result<(), StoreError> {
        // One of several that has just started knows less than the snapshot does.
        if self.is_one_of_many() && !self.is_recovered() {
            return Ok(());
        }
        let began = Instant::now();
        let mut post = self.snapshot_post.lock().await;
        let Some(lock) = post.hold(&self.store).await? else { return Ok(()) };
        if let Some(bytes) = self.put_snapshot(lock).await? {
            self.metrics.fleet.snapshot_written(self.now(), bytes, began.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// Says how long it was; nothing if the place was lost meanwhile.
    async fn put_snapshot(&self, lock: &Lock) -> Result<Option<usize>, StoreError> {
        let now = self.now();
        let bytes = serde_json::to_vec(&self.take_snapshot(now))
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let len = bytes.len();
        let key = self.store.kept_as(BlobKey::workers_snapshot());
        let mode = PutMode::Under(lock.clone());
        let is_written = self.store.put_blob(key, bytes.into(), now + KEEP_MS, mode).await?;
        Ok(is_written.then_some(len))
    }

    /// Everyone who is not offline. Placement is held for a few thousand workers at a time.
    pub fn take_snapshot(&self, now: Millis) -> Snapshot {
        let mut snapshot = Snapshot {
            captured_at: now.rfc3339(),
            captured_at_ms: now.0,
            writer_id: self.settings.replica.clone(),
            ..Snapshot::default()
        };
        for part in 0.. {
            let placement = self.placement();
            let fleet = placement.fleet();
            let Some(workers) = fleet.some(part) else { break };
            for worker in workers.filter(|worker| !worker.offline && !worker.expected) {
                snapshot.add(worker, fleet.profile(worker.profile));
            }
        }
        snapshot
    }

    /// How many members are restored and not heard since.
    pub(crate) fn unconfirmed(&self) -> usize {
        let placement = self.placement();
        placement.fleet().iter().filter(|(_, worker)| worker.restored).count()
    }

    /// How often a member of this contract should beat, in seconds.
    pub fn suggested_beat_seconds(&self, contract: Contract) -> i64 {
        (self.settings.ttls.beat_every_ms(contract) / 1000).max(1)
    }
}
