//! The roster as one life of the server sees it: slow, failing, full, and sometimes the last thing it
//! sees. What it holds outlives the server, and what was written is looked at before it counts.

use crate::archive::Archive;
use crate::backend::BackendPort;
use crate::breakage::Breakage;
use crate::outages::Backend;
use crate::server::Life;
use crate::world::World;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::presence::Drain;
use reveille_core::presence::delegation::Delegation;
use reveille_core::presence::workspace::Workspace;
use reveille_core::time::Millis;
use reveille_roster::{
    Change, EndedSessions, Generations, KeyRecord, PresenceKey, PresenceRow, Roster, RosterError,
    StructureEvent, StructureEventQuery, Tenant,
};
use std::sync::Arc;

pub struct SimRoster {
    world: Arc<World>,
    port: BackendPort,
}

impl SimRoster {
    pub fn new(world: Arc<World>, life: Life) -> Self {
        let port = BackendPort::new(world.clone(), life, Backend::Roster);
        Self { world, port }
    }

    /// Writes for good, under the eyes of the archive.
    async fn apply(&self, mut changes: Vec<Change>) -> Result<(), RosterError> {
        let world = &self.world;
        changes.retain(|change| !self.swallows(change));
        world.roster.write(changes.clone()).await?;
        for change in &changes {
            if let Change::Event(event) = change {
                world.trace.say(format_args!("roster: {} {} {}", event.kind, event.workspace, event.payload));
            }
        }
        world.archive(|archive| archive.written(&changes, &world.situations));
        Ok(())
    }

    /// What a broken roster does not write.
    fn swallows(&self, change: &Change) -> bool {
        match (self.world.breakage, change) {
            (Some(Breakage::SkipRung), Change::Event(event)) => {
                event.payload.get("status").is_some_and(|status| status == "received")
            }
            (Some(Breakage::ForgetDrains), Change::Drain(_))
            | (Some(Breakage::ForgetNewKeys), Change::Key(_))
            | (Some(Breakage::ForgetSignOuts), Change::EndSessions(_))
            | (Some(Breakage::ForgetRevocations), Change::RevokeKey { .. }) => true,
            (Some(Breakage::KeepTheFuture), Change::Presence(row)) => {
                let kept = self.world.look_up(|archive| archive.last_seen(&row.key));
                kept.is_some_and(|kept| row.last_seen < kept)
            }
            _ => false,
        }
    }
}

#[async_trait::async_trait]
impl Roster for SimRoster {
    async fn write(&self, changes: Vec<Change>) -> Result<(), RosterError> {
        self.port.write("roster write", self.apply(changes)).await
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, RosterError> {
        let mut keys = self.port.read("keys", self.world.roster.keys()).await?;
        if self.world.breakage == Some(Breakage::KeepExpired) {
            for key in &mut keys {
                key.expires_at = None;
            }
        }
        Ok(keys)
    }

    async fn ended_sessions(&self) -> Result<Vec<EndedSessions>, RosterError> {
        self.port.read("ended sessions", self.world.roster.ended_sessions()).await
    }

    async fn tenants(&self) -> Result<Vec<Tenant>, RosterError> {
        self.port.read("tenants", self.world.roster.tenants()).await
    }

    async fn presence(
        &self,
        after: Option<PresenceKey>,
        limit: usize,
    ) -> Result<Vec<PresenceRow>, RosterError> {
        let rows = self.port.read("presence", self.world.roster.presence(after, limit)).await?;
        let now = self.world.now();
        self.world.agents_watched.restored(&rows, now);
        self.world.workspaces_watched.restored(self.world.look_up(Archive::online), now);
        Ok(rows)
    }

    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<Workspace>, RosterError> {
        self.port.read("workspaces", self.world.roster.workspaces(after, limit)).await
    }

    async fn events(&self, query: &StructureEventQuery) -> Result<Vec<StructureEvent>, RosterError> {
        self.port.read("events", self.world.roster.events(query)).await
    }

    async fn delegation(&self, id: &JobId) -> Result<Option<Delegation>, RosterError> {
        self.port.read("delegation", self.world.roster.delegation(id)).await
    }

    async fn delegations_of(
        &self,
        source: &WorkspaceId,
        limit: usize,
    ) -> Result<Vec<Delegation>, RosterError> {
        self.port.read("delegations", self.world.roster.delegations_of(source, limit)).await
    }

    async fn open_delegations(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<Delegation>, RosterError> {
        self.port.read("open delegations", self.world.roster.open_delegations(after, limit)).await
    }

    async fn drains(&self) -> Result<Vec<Drain>, RosterError> {
        self.port.read("drains", self.world.roster.drains()).await
    }

    async fn generations(&self) -> Result<Generations, RosterError> {
        self.port.read("generations", self.world.roster.generations()).await
    }

    async fn prune(
        &self,
        seen_before: Millis,
        events_before: Millis,
        limit: usize,
    ) -> Result<u64, RosterError> {
        self.port.write("prune roster", self.world.roster.prune(seen_before, events_before, limit)).await
    }
}
