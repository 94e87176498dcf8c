//! What the memory roster holds, and what each change does to it.

use crate::generations::moved;
use crate::{
    Change, EndedSessions, Generations, KeyRecord, PresenceKey, PresenceRow, RosterError, StructureEvent,
};
use reveille_core::id::{JobId, KeyId, SessionId, TenantId, WorkspaceId};
use reveille_core::presence::delegation::Delegation;
use reveille_core::presence::workspace::Workspace;
use reveille_core::presence::{Contract, Drain, Drained};
use reveille_core::time::Millis;
use std::collections::BTreeMap;

#[derive(Default, Clone)]
pub(super) struct RosterState {
    pub keys: BTreeMap<KeyId, KeyRecord>,
    /// With the end that each would have had.
    pub ended_sessions: BTreeMap<(KeyId, Option<SessionId>), Millis>,
    /// With the time from which each is known.
    pub tenants: BTreeMap<TenantId, Millis>,
    pub presence: BTreeMap<PresenceKey, PresenceRow>,
    pub workspaces: BTreeMap<WorkspaceId, Workspace>,
    pub events: BTreeMap<String, StructureEvent>,
    pub delegations: BTreeMap<JobId, Delegation>,
    pub drains: BTreeMap<Drained, Drain>,
    pub generations: Generations,
}

impl RosterState {
    pub fn write(&mut self, changes: Vec<Change>) -> Result<(), RosterError> {
        // Only a key can be refused, and keys are rarely written: for others there is no way back to keep.
        let has_key = changes.iter().any(|change| matches!(change, Change::Key(_)));
        let before = has_key.then(|| self.clone());
        let moved = moved(&changes);
        for change in changes {
            if let Err(refusal) = self.apply(change) {
                if let Some(before) = before {
                    *self = before;
                }
                return Err(refusal);
            }
        }
        for name in moved {
            if let Some(generation) = self.generations.named(name) {
                *generation += 1;
            }
        }
        Ok(())
    }

    fn apply(&mut self, change: Change) -> Result<(), RosterError> {
        match change {
            Change::Key(key) => self.put_key(key)?,
            Change::RevokeKey { id, at, by } => {
                if let Some(key) = self.keys.get_mut(&id).filter(|key| key.revoked_at.is_none()) {
                    (key.revoked_at, key.revoked_by) = (Some(at), by);
                }
            }
            Change::KeyUsed { id, at } => {
                if let Some(key) = self.keys.get_mut(&id) {
                    key.last_used_at = key.last_used_at.max(Some(at));
                }
            }
            Change::ReplaceKey { id, by, expires_at } => {
                if let Some(key) = self.keys.get_mut(&id).filter(|key| key.replaced_by.is_none()) {
                    key.expires_at = Some(key.expires_at.map_or(expires_at, |end| end.min(expires_at)));
                    key.replaced_by = Some(by);
                }
            }
            Change::EndSessions(ended) => self.end_sessions(ended),
            Change::ForgetSessions { over_by } => self.ended_sessions.retain(|_, until| *until > over_by),
            Change::Tenant(tenant) => self.know_tenant(&tenant.id, tenant.created_at),
            Change::Presence(row) => self.see(row),
            Change::Workspace(workspace) => {
                self.know_tenant(&workspace.tenant, workspace.created_at);
                self.workspaces.insert(workspace.id.clone(), workspace);
            }
            Change::PurgeWorkspace(id) => self.purge(&id),
            Change::Event(event) => {
                self.events.entry(event.id.clone()).or_insert(event);
            }
            Change::Delegation(given) => {
                let held = self.delegations.get(&given.id);
                if held.is_none_or(|held| held.tenant == given.tenant) {
                    self.delegations.insert(given.id.clone(), given);
                }
            }
            Change::Drain(drain) => {
                self.drains.insert(drain.what.clone(), drain);
            }
            Change::Undrain(what) => {
                self.drains.remove(&what);
            }
        }
        Ok(())
    }

    fn put_key(&mut self, key: KeyRecord) -> Result<(), RosterError> {
        if self.keys.values().any(|other| other.hash == key.hash && other.id != key.id) {
            return Err(RosterError::Refused(format!("key {} has the secret of another key", key.id)));
        }
        self.know_tenant(&key.tenant, key.created_at);
        self.keys.insert(key.id.clone(), key);
        Ok(())
    }

    fn end_sessions(&mut self, ended: EndedSessions) {
        let EndedSessions { key, session, until } = ended;
        if session.is_none() {
            self.ended_sessions.retain(|(whose, one), end| *whose != key || one.is_none() || *end > until);
        }
        let kept = self.ended_sessions.entry((key, session)).or_insert(until);
        *kept = until.max(*kept);
    }

    fn know_tenant(&mut self, id: &TenantId, created_at: Millis) {
        self.tenants.entry(id.clone()).or_insert(created_at);
    }

    fn see(&mut self, row: PresenceRow) {
        if self.presence.get(&row.key).is_none_or(|kept| row.replaces(kept.last_seen)) {
            self.presence.insert(row.key.clone(), row);
        }
    }

    fn purge(&mut self, id: &WorkspaceId) {
        if let Some(workspace) = self.workspaces.remove(id) {
            let (contract, id) = (Contract::Molecule, id.as_str().to_owned());
            self.presence.remove(&PresenceKey { contract, tenant: workspace.tenant, id });
        }
        self.events.retain(|_, event| event.workspace != *id);
    }

    pub fn prune(&mut self, seen_before: Millis, events_before: Millis, limit: usize) -> u64 {
        let workspaces = &self.workspaces;
        let is_unseen = |row: &PresenceRow| {
            let has_workspace =
                row.key.contract == Contract::Molecule && workspaces.contains_key(row.key.id.as_str());
            row.last_seen < seen_before && !has_workspace
        };
        let mut gone = remove(&mut self.presence, limit, is_unseen, |row| row.last_seen);
        gone += remove(
            &mut self.events,
            limit,
            |event| event.created_at < events_before,
            |event| event.created_at,
        );
        let is_over = |given: &Delegation| !crate::is_open(given) && given.updated_at < events_before;
        gone + remove(&mut self.delegations, limit, is_over, |given| given.updated_at)
    }
}

/// Removes what may go, the oldest first, at most `limit`.
fn remove<K: Ord + Clone, V>(
    map: &mut BTreeMap<K, V>,
    limit: usize,
    may_go: impl Fn(&V) -> bool,
    age: impl Fn(&V) -> Millis,
) -> u64 {
    let candidates = map.iter().filter(|(_, value)| may_go(value));
    let mut candidates: Vec<_> = candidates.map(|(key, value)| (age(value), key.clone())).collect();
    candidates.sort_unstable();
    candidates.truncate(limit);
    for (_, key) in &candidates {
        map.remove(key);
    }
    candidates.len() as u64
}
