//! How the rooms are put together: the lower first, each handed what it needs, and hooks for those that call back.

use super::{Parts, Rooms, StartError};
use crate::access::{Access, EndedSessionIndex, KeyIndex};
use crate::base::Base;
use crate::cluster::{Alone, Cluster, PeerMessages, SharedCluster};
use crate::delegations::{DelegationParts, Delegations};
use crate::fleet::workspaces::{WorkspaceHook, WorkspaceIndex, WorkspaceParts, Workspaces};
use crate::fleet::{Departures, Fleet, FleetParts, SnapshotWriter};
use crate::jobs::{DelegationHook, Jobs, RunHook};
use crate::locks::SharedLocks;
use crate::observe::Observe;
use crate::observe::audit_writer::{AuditWriter, PendingWrites};
use crate::observe::checkpoints::Checkpoints;
use crate::observe::events::{Events, Unlogged};
use crate::placement::PlacementTable;
use crate::roster::{RosterTask, RosterWriter};
use crate::runtime::Runtime;
use crate::workflows::Workflows;
use reveille_bus::Bus;
use reveille_core::placement::Placement;
use reveille_roster::Generations;
use std::sync::Arc;

/// What the tasks of the rooms need and nobody else.
pub(super) struct TaskParts {
    pub roster_task: RosterTask,
    pub audit_writes: PendingWrites,
    pub workspace_index: Arc<WorkspaceIndex>,
    /// Nothing where the server is alone.
    pub joined: Option<Joined>,
}

/// One of several servers.
pub(super) struct Joined {
    pub shared: Arc<SharedCluster>,
    pub messages: PeerMessages,
    pub unlogged: Unlogged,
    pub generations: Generations,
}

pub(super) async fn wire(parts: &Parts) -> Result<(Rooms, TaskParts), StartError> {
    let Parts { store, roster, bus, a2a, .. } = parts;
    let generations = roster.generations().await?;
    let keys = Arc::new(KeyIndex::load(&**roster).await?);
    let ended = Arc::new(EndedSessionIndex::load(roster.clone()).await?);
    let index = Arc::new(WorkspaceIndex::load(&**roster).await?);
    let (base, joined) = base(parts, generations);
    let Base { runtime, observe, placement, .. } = base.clone();
    let (audit, audit_writes) = AuditWriter::new(runtime.clone(), observe.clone(), store.clone());
    let checkpoints = Checkpoints::new(runtime.clone(), store.clone(), &parts.settings.signing_seed)?;
    let (writer, roster_task) =
        RosterWriter::new(runtime.clone(), observe.clone(), placement, roster.clone());
    let access = Access::new(
        runtime,
        observe,
        roster.clone(),
        writer.clone(),
        audit.clone(),
        keys.clone(),
        parts.oidc.clone(),
        ended,
    );
    let jobs = Jobs::new(
        base.clone(),
        keys.clone(),
        audit.clone(),
        store.clone(),
        bus.clone(),
        parts.kernel.clone(),
    );
    let departures = Departures::new(base.clone(), jobs.clone());
    let workspaces = Workspaces::new(WorkspaceParts {
        base: base.clone(),
        jobs: jobs.clone(),
        audit: audit.clone(),
        departures: departures.clone(),
        locks: SharedLocks::new(store),
        roster: roster.clone(),
        writer: writer.clone(),
        a2a: a2a.clone(),
        index: index.clone(),
    });
    let fleet = Fleet::new(FleetParts {
        base: base.clone(),
        jobs: jobs.clone(),
        audit: audit.clone(),
        departures,
        workspaces: workspaces.clone(),
        snapshots: SnapshotWriter::new(base.clone(), store.clone()),
        roster: roster.clone(),
        writer: writer.clone(),
        bus: bus.clone(),
        keys,
    });
    let delegations = Arc::new(Delegations::new(DelegationParts {
        base: base.clone(),
        jobs: jobs.clone(),
        workspaces: workspaces.clone(),
        store: store.clone(),
        a2a: a2a.clone(),
        roster: roster.clone(),
        writer: writer.clone(),
    }));
    let workflows = Arc::new(Workflows::new(
        base.clone(),
        jobs.clone(),
        audit.clone(),
        parts.workflows.clone(),
        store.clone(),
        bus.clone(),
    ));
    let run_hook: Arc<dyn RunHook> = workflows.clone();
    let delegation_hook: Arc<dyn DelegationHook> = delegations.clone();
    let workspace_hook: Arc<dyn WorkspaceHook> = delegations.clone();
    jobs.set_hooks(&run_hook, &delegation_hook);
    workspaces.set_hook(&workspace_hook);
    let (store, bus) = (store.clone(), bus.clone());
    let rooms = Rooms {
        base,
        audit,
        checkpoints,
        access,
        jobs,
        workspaces,
        fleet,
        delegations,
        workflows,
        writer,
        store,
        bus,
    };
    Ok((rooms, TaskParts { roster_task, audit_writes, workspace_index: index, joined }))
}

/// Here it is decided whether the server is alone or one of several.
fn base(parts: &Parts, generations: Generations) -> (Base, Option<Joined>) {
    let runtime = Runtime::new(parts.clock.clone(), parts.rng.clone(), parts.settings.clone());
    let placement = PlacementTable::new(new_table(&runtime, &*parts.bus));
    if !parts.store.is_shared() {
        let observe = Observe::new(runtime.clone(), Events::new(runtime.random()), parts.traces.clone());
        let cluster = Arc::new(Alone::new(runtime.clone(), observe.clone()));
        return (Base { runtime, observe, cluster, placement }, None);
    }
    let (events, unlogged) = Events::shared(parts.store.name());
    let observe = Observe::new(runtime.clone(), events, parts.traces.clone());
    let (shared, messages) =
        SharedCluster::new(runtime.clone(), observe.clone(), parts.store.clone(), parts.bus.clone());
    let cluster: Arc<dyn Cluster> = shared.clone();
    (Base { runtime, observe, cluster, placement }, Some(Joined { shared, messages, unlogged, generations }))
}

fn new_table(runtime: &Runtime, bus: &dyn Bus) -> Placement {
    let mut table = Placement::new(runtime.settings().ttls);
    table.limit_members(runtime.settings().limits.members_per_tenant);
    if !bus.shows_listeners() {
        table.try_topics();
    }
    // Until the recovery has found what is at workers.
    table.begin_recount();
    table
}
