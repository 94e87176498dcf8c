//! Who is meant: each contract has names of its own, so that nobody can pass for a member of another
//! contract, or an agent of one tenant for another tenant's.

use super::Slot;
use crate::id::{TenantId, WorkerId};
use crate::presence::Contract;
use rustc_hash::FxHashMap;

/// Names one member of the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who<'a> {
    /// A CAP worker. Its name is a subject on the bus, and so there is one of it.
    Worker(&'a str),
    Workspace(&'a str),
    Agent(&'a TenantId, &'a str),
}

impl<'a> Who<'a> {
    pub fn of(contract: Contract, tenant: &'a TenantId, id: &'a str) -> Self {
        match contract {
            Contract::Cap => Self::Worker(id),
            Contract::VoiceGateway => Self::Agent(tenant, id),
            Contract::Molecule => Self::Workspace(id),
        }
    }

    pub fn name(&self) -> &'a str {
        match self {
            Self::Worker(name) | Self::Workspace(name) | Self::Agent(_, name) => name,
        }
    }
}

#[derive(Default)]
pub struct MemberNames {
    workers: FxHashMap<WorkerId, Slot>,
    workspaces: FxHashMap<WorkerId, Slot>,
    agents: FxHashMap<TenantId, FxHashMap<WorkerId, Slot>>,
    /// How many CAP workers each tenant has.
    workers_of: FxHashMap<TenantId, usize>,
    len: usize,
}

impl MemberNames {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn find(&self, who: Who<'_>) -> Option<Slot> {
        match who {
            Who::Worker(name) => self.workers.get(name),
            Who::Workspace(name) => self.workspaces.get(name),
            Who::Agent(tenant, name) => self.agents.get(tenant)?.get(name),
        }
        .copied()
    }

    pub fn insert(&mut self, who: Who<'_>, tenant: &TenantId, name: WorkerId, slot: Slot) {
        let before = match who {
            Who::Worker(_) => {
                let before = self.workers.insert(name, slot);
                if before.is_none() {
                    *self.workers_of.entry(tenant.clone()).or_default() += 1;
                }
                before
            }
            Who::Workspace(_) => self.workspaces.insert(name, slot),
            Who::Agent(tenant, _) => self.agents.entry(tenant.clone()).or_default().insert(name, slot),
        };
        self.len += usize::from(before.is_none());
    }

    /// `tenant` is the one that it was inserted with.
    pub fn remove(&mut self, who: Who<'_>, tenant: &TenantId) {
        let gone = match who {
            Who::Worker(name) => {
                let gone = self.workers.remove(name);
                if gone.is_some() {
                    self.uncount_worker(tenant);
                }
                gone
            }
            Who::Workspace(name) => self.workspaces.remove(name),
            Who::Agent(tenant, name) => {
                let Some(names) = self.agents.get_mut(tenant) else { return };
                let gone = names.remove(name);
                if names.is_empty() {
                    self.agents.remove(tenant);
                }
                gone
            }
        };
        self.len -= usize::from(gone.is_some());
    }

    fn uncount_worker(&mut self, tenant: &TenantId) {
        if let Some(workers) = self.workers_of.get_mut(tenant) {
            *workers -= 1;
            if *workers == 0 {
                self.workers_of.remove(tenant);
            }
        }
    }

    /// How many agents and CAP workers a tenant has.
    pub fn members_of(&self, tenant: &TenantId) -> usize {
        let agents = self.agents.get(tenant).map_or(0, FxHashMap::len);
        agents + self.workers_of.get(tenant).copied().unwrap_or_default()
    }

    /// The agents of one tenant.
    pub fn agents_of(&self, tenant: &TenantId) -> impl Iterator<Item = Slot> {
        self.agents.get(tenant).into_iter().flat_map(|names| names.values().copied())
    }
}
