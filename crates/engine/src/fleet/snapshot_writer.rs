//! Writes the worker snapshot: every few seconds, by the one server that holds the writer's lease.

use super::snapshot::Snapshot;
use crate::base::Base;
use crate::cluster::{Cluster, LeaderLease};
use crate::observe::Observe;
use crate::placement::PlacementTable;
use crate::runtime::Runtime;
use bytes::Bytes;
use reveille_core::time::Millis;
use reveille_store::{BlobKey, Lock, PutMode, Store, StoreError};
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The lock that keeps servers from writing the same snapshot twice. Two of the seeds give it 30 s, the
/// third 10 s, which fails over faster.
pub const LOCK: &str = "cordum:scheduler:snapshot:writer";
const LOCK_MS: i64 = 10_000;
/// A snapshot that nobody renews goes after this long.
const KEEP_MS: i64 = 24 * 3600 * 1000;
/// A large fleet is written less often, so that writing takes at most one part in so many of the time.
const SHARE: u32 = 20;

/// A handle; clones are the same writer.
#[derive(Clone)]
pub struct SnapshotWriter(Arc<Inner>);

pub struct Inner {
    runtime: Runtime,
    observe: Observe,
    cluster: Arc<dyn Cluster>,
    placement: PlacementTable,
    store: Arc<dyn Store>,
    /// Taken for a whole write: two of ours must not overlap either.
    lease: Mutex<LeaderLease>,
}

impl Deref for SnapshotWriter {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl SnapshotWriter {
    pub fn new(base: Base, store: Arc<dyn Store>) -> Self {
        let Base { runtime, observe, cluster, placement } = base;
        let lease = Mutex::new(LeaderLease::new(LOCK, LOCK_MS, runtime.end()));
        Self(Arc::new(Inner { runtime, observe, cluster, placement, store, lease }))
    }

    /// The snapshot as it was last written, if it is there.
    pub(super) async fn read(&self) -> Result<Option<Bytes>, StoreError> {
        self.store.blob(&self.store.colocated_key(BlobKey::workers_snapshot())).await
    }

    /// Leaves the writing to another server.
    pub async fn leave(&self) {
        self.lease.lock().await.leave().await;
    }

    /// Writes the snapshot again and again.
    pub async fn run(self) {
        let every = self.runtime.settings().snapshot_every;
        let mut pause = every;
        loop {
            tokio::time::sleep(pause).await;
            let began = Instant::now();
            if let Err(error) = self.write().await {
                tracing::warn!(%error, "worker snapshot not written");
            }
            pause = every.max(began.elapsed() * SHARE);
        }
    }

    /// Writes the snapshot now, unless another server is at it.
    pub async fn write(&self) -> Result<(), StoreError> {
        // One of several that has just started knows less than the snapshot does.
        if self.cluster.others_may_act() && !self.runtime.is_recovered() {
            return Ok(());
        }
        let began = Instant::now();
        let mut lease = self.lease.lock().await;
        let Some(lock) = lease.hold(&self.store).await? else { return Ok(()) };
        if let Some(bytes) = self.put_snapshot(lock).await? {
            self.observe.metrics().fleet().snapshot_written(
                self.runtime.now(),
                bytes,
                began.elapsed().as_secs_f64(),
            );
        }
        Ok(())
    }

    /// Says how long it was; nothing if the place was lost meanwhile.
    async fn put_snapshot(&self, lock: &Lock) -> Result<Option<usize>, StoreError> {
        let now = self.runtime.now();
        let bytes = serde_json::to_vec(&self.take_snapshot(now))
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let len = bytes.len();
        let key = self.store.colocated_key(BlobKey::workers_snapshot());
        let mode = PutMode::Under(lock.clone());
        let is_written = self.store.put_blob(key, bytes.into(), now + KEEP_MS, mode).await?;
        Ok(is_written.then_some(len))
    }

    /// Everyone who is not offline. Placement is held for a few thousand workers at a time.
    pub fn take_snapshot(&self, now: Millis) -> Snapshot {
        let mut snapshot = Snapshot {
            captured_at: now.rfc3339(),
            captured_at_ms: now.0,
            writer_id: self.runtime.settings().replica.clone(),
            ..Snapshot::default()
        };
        for part in 0.. {
            let placement = self.placement.lock();
            let fleet = placement.fleet();
            let Some(workers) = fleet.part(part) else { break };
            for worker in workers.filter(|worker| !worker.offline && !worker.expected) {
                snapshot.add(worker, fleet.profile(worker.profile));
            }
        }
        snapshot
    }
}
