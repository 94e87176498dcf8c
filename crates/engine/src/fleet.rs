//! The fleet: workers, agents and workspaces as they beat, fall silent and come back; drains; and how all of it is
//! known again after a restart.

mod agents;
mod census;
mod drains;
mod expiry;
mod snapshot;
mod snapshot_writer;
mod speakers;
mod views;
mod warm_start;
mod workers;
pub mod workspaces;

pub use agents::BeatError;
pub use census::{Census, Count, in_hand, is_away, is_degraded, says_busy};
pub use drains::{DRAIN_SECONDS, DRAIN_SECONDS_MAX};
pub use expiry::Departures;
pub use snapshot::Snapshot;
pub use snapshot_writer::{LOCK as SNAPSHOT_LOCK, SnapshotWriter};
pub use views::WorkerView;

use crate::access::KeyIndex;
use crate::base::Base;
use crate::cluster::Cluster;
use crate::jobs::Jobs;
use crate::observe::Observe;
use crate::observe::audit_writer::AuditWriter;
use crate::placement::PlacementTable;
use crate::roster::RosterWriter;
use crate::runtime::Runtime;
use reveille_bus::Bus;
use reveille_roster::Roster;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use workers::Listening;
use workspaces::Workspaces;

/// A handle; clones are the same room.
#[derive(Clone)]
pub struct Fleet(Arc<Inner>);

pub struct Inner {
    runtime: Runtime,
    observe: Observe,
    cluster: Arc<dyn Cluster>,
    placement: PlacementTable,
    jobs: Jobs,
    audit: AuditWriter,
    departures: Departures,
    workspaces: Workspaces,
    snapshots: SnapshotWriter,
    roster: Arc<dyn Roster>,
    writer: RosterWriter,
    bus: Arc<dyn Bus>,
    keys: Arc<KeyIndex>,
    listening: Mutex<Listening>,
    /// Whether any worker ever came with a credential of its own.
    any_credential: AtomicBool,
    /// How often something was drained here, or put back into service.
    drain_changes: AtomicU64,
}

/// What a fleet is made of.
pub struct FleetParts {
    pub base: Base,
    pub jobs: Jobs,
    pub audit: AuditWriter,
    pub departures: Departures,
    pub workspaces: Workspaces,
    pub snapshots: SnapshotWriter,
    pub roster: Arc<dyn Roster>,
    pub writer: RosterWriter,
    pub bus: Arc<dyn Bus>,
    pub keys: Arc<KeyIndex>,
}

impl Deref for Fleet {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Fleet {
    pub fn new(parts: FleetParts) -> Self {
        let FleetParts { base, jobs, audit, departures, workspaces, snapshots, roster, writer, bus, keys } =
            parts;
        let Base { runtime, observe, cluster, placement } = base;
        Self(Arc::new(Inner {
            runtime,
            observe,
            cluster,
            placement,
            jobs,
            audit,
            departures,
            workspaces,
            snapshots,
            roster,
            writer,
            bus,
            keys,
            listening: Mutex::default(),
            any_credential: AtomicBool::new(false),
            drain_changes: AtomicU64::new(0),
        }))
    }

    pub(crate) fn snapshots(&self) -> &SnapshotWriter {
        &self.snapshots
    }
}
