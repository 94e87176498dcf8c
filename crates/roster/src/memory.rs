//! The roster without a disk, for tests and for the simulation.
//!
//! It is deterministic: everything is kept in order. A simulated crash drops whoever used the roster and
//! keeps a handle; what was written is still there.

mod state;

use crate::{
    Change, EndedSessions, Generations, KeyRecord, PresenceKey, PresenceRow, Roster, RosterError,
    StructureEvent, StructureEventQuery, Tenant,
};
use reveille_core::id::{JobId, KeyId, SessionId, WorkspaceId};
use reveille_core::presence::Drain;
use reveille_core::presence::delegation::Delegation;
use reveille_core::presence::workspace::Workspace;
use reveille_core::time::Millis;
use state::RosterState;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle; clones share one roster.
#[derive(Clone, Default)]
pub struct MemoryRoster {
    state: Arc<Mutex<RosterState>>,
}

impl MemoryRoster {
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, RosterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything that comes after a key, or everything there is.
fn after<K>(key: Option<K>) -> (Bound<K>, Bound<K>) {
    (key.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

#[async_trait::async_trait]
impl Roster for MemoryRoster {
    async fn write(&self, changes: Vec<Change>) -> Result<(), RosterError> {
        self.state().write(changes)
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, RosterError> {
        Ok(self.state().keys.values().cloned().collect())
    }

    async fn ended_sessions(&self) -> Result<Vec<EndedSessions>, RosterError> {
        let state = self.state();
        let ended = |((key, session), until): (&(KeyId, Option<SessionId>), &Millis)| EndedSessions {
            key: key.clone(),
            session: session.clone(),
            until: *until,
        };
        Ok(state.ended_sessions.iter().map(ended).collect())
    }

    async fn tenants(&self) -> Result<Vec<Tenant>, RosterError> {
        let state = self.state();
        let tenants = state.tenants.iter();
        Ok(tenants.map(|(id, created_at)| Tenant { id: id.clone(), created_at: *created_at }).collect())
    }

    async fn presence(
        &self,
        last: Option<PresenceKey>,
        limit: usize,
    ) -> Result<Vec<PresenceRow>, RosterError> {
        Ok(self.state().presence.range(after(last)).take(limit).map(|(_, row)| row.clone()).collect())
    }

    async fn workspaces(
        &self,
        last: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<Workspace>, RosterError> {
        let state = self.state();
        Ok(state.workspaces.range(after(last)).take(limit).map(|(_, workspace)| workspace.clone()).collect())
    }

    async fn events(&self, query: &StructureEventQuery) -> Result<Vec<StructureEvent>, RosterError> {
        let state = self.state();
        let is_asked_for = |event: &&StructureEvent| {
            event.tenant == query.tenant
                && query.workspace.as_ref().is_none_or(|workspace| *workspace == event.workspace)
        };
        let mut events: Vec<_> = state.events.values().filter(is_asked_for).collect();
        events.sort_unstable_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
        Ok(events.into_iter().take(query.limit).cloned().collect())
    }

    async fn delegation(&self, id: &JobId) -> Result<Option<Delegation>, RosterError> {
        Ok(self.state().delegations.get(id).cloned())
    }

    async fn delegations_of(
        &self,
        source: &WorkspaceId,
        limit: usize,
    ) -> Result<Vec<Delegation>, RosterError> {
        let state = self.state();
        let mut given: Vec<_> = state.delegations.values().filter(|given| given.source == *source).collect();
        given.sort_unstable_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
        Ok(given.into_iter().take(limit).cloned().collect())
    }

    async fn open_delegations(
        &self,
        last: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<Delegation>, RosterError> {
        let state = self.state();
        let open = state.delegations.range(after(last)).filter(|(_, given)| crate::is_open(given));
        Ok(open.take(limit).map(|(_, given)| given.clone()).collect())
    }

    async fn drains(&self) -> Result<Vec<Drain>, RosterError> {
        Ok(self.state().drains.values().cloned().collect())
    }

    async fn generations(&self) -> Result<Generations, RosterError> {
        Ok(self.state().generations)
    }

    async fn prune(
        &self,
        seen_before: Millis,
        events_before: Millis,
        limit: usize,
    ) -> Result<u64, RosterError> {
        Ok(self.state().prune(seen_before, events_before, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;

    #[tokio::test]
    async fn the_memory_roster_keeps_the_promises_of_the_port() {
        let roster: Arc<dyn Roster> = Arc::new(MemoryRoster::new());
        suite::run(&roster).await;
    }
}
