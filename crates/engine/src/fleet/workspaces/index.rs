//! Every workspace, in memory, by id and by the hash of its token; and the locks under which one changes.

use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::presence::workspace::Workspace;
use reveille_roster::{Roster, RosterError};
use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::{Mutex, MutexGuard};

/// Workspaces change one step at a time; so many of them may change at once.
const LOCKS: usize = 64;
const PAGE: usize = 1_000;
/// What the twelve bits after the time of an id can count to.
const COUNT_MAX: u16 = 0xfff;

#[derive(Default)]
pub struct WorkspaceIndex {
    records: RwLock<Records>,
    locks: Vec<Mutex<()>>,
    /// Who is whose parent, and who takes whose place, changes for one at a time: two changes that are
    /// each fine could close a circle together. Taken before the lock of one.
    structure: Mutex<()>,
    /// The moment of the latest event, and how many there were at it before.
    latest: std::sync::Mutex<(u64, u16)>,
}

#[derive(Default)]
struct Records {
    by_id: FxHashMap<WorkspaceId, Arc<Workspace>>,
    by_token: FxHashMap<[u8; 32], WorkspaceId>,
    /// How many each tenant has.
    of_tenant: FxHashMap<TenantId, usize>,
    /// How often one was changed here.
    changes: u64,
}

impl Records {
    /// This record is not there any more.
    fn uncount(&mut self, gone: &Workspace) {
        if let Some(hash) = gone.token_hash {
            self.by_token.remove(&hash);
        }
        if let Some(count) = self.of_tenant.get_mut(&gone.tenant) {
            *count -= 1;
            if *count == 0 {
                self.of_tenant.remove(&gone.tenant);
            }
        }
    }
}

impl WorkspaceIndex {
    pub async fn load(roster: &dyn Roster) -> Result<Self, RosterError> {
        let workspaces = Self { locks: (0..LOCKS).map(|_| Mutex::default()).collect(), ..Self::default() };
        let mut after = None;
        loop {
            let page = roster.workspaces(after.clone(), PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|workspace| workspace.id.clone());
            for workspace in page {
                workspaces.put(workspace);
            }
            if is_last {
                return Ok(workspaces);
            }
        }
    }

    pub fn find(&self, id: &WorkspaceId) -> Option<Arc<Workspace>> {
        self.read().by_id.get(id).cloned()
    }

    pub fn by_token(&self, hash: &[u8; 32]) -> Option<Arc<Workspace>> {
        let records = self.read();
        records.by_id.get(records.by_token.get(hash)?).cloned()
    }

    pub fn all(&self) -> Vec<Arc<Workspace>> {
        self.read().by_id.values().cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.read().by_id.len()
    }

    /// How many of them are a tenant's.
    pub fn len_of(&self, tenant: &TenantId) -> usize {
        self.read().of_tenant.get(tenant).copied().unwrap_or_default()
    }

    fn read(&self) -> RwLockReadGuard<'_, Records> {
        self.records.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often a workspace was changed here, for whoever is about to read them anew.
    pub fn changes(&self) -> u64 {
        self.read().changes
    }

    /// What was read anew takes the place of what was known, unless something was changed here after `changes`:
    /// then what was read may be older, and this says no.
    pub fn replace(&self, read: Self, changes: u64) -> bool {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        if records.changes != changes {
            return false;
        }
        let read = read.records.into_inner().unwrap_or_else(PoisonError::into_inner);
        *records = Records { changes, ..read };
        true
    }

    pub fn put(&self, workspace: Workspace) {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        records.changes += 1;
        let before = records.by_id.insert(workspace.id.clone(), Arc::new(workspace.clone()));
        if let Some(before) = before {
            records.uncount(&before);
        }
        *records.of_tenant.entry(workspace.tenant).or_default() += 1;
        if let Some(hash) = workspace.token_hash {
            records.by_token.insert(hash, workspace.id);
        }
    }

    pub fn remove(&self, id: &WorkspaceId) {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        records.changes += 1;
        if let Some(gone) = records.by_id.remove(id) {
            records.uncount(&gone);
        }
    }

    /// Nobody else changes this workspace meanwhile.
    pub async fn lock(&self, id: &WorkspaceId) -> MutexGuard<'_, ()> {
        let ix = id.as_str().bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        self.locks[ix % LOCKS].lock().await
    }

    /// Nobody else changes who is whose parent, or who takes whose place, meanwhile.
    pub async fn lock_structure(&self) -> MutexGuard<'_, ()> {
        self.structure.lock().await
    }

    /// The moment and the number of the next event: after all that were given before, also within the same
    /// millisecond.
    pub fn next_event(&self, now: u64) -> (u64, u16) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = match *latest {
            (ms, _) if ms < now => (now, 0),
            (ms, COUNT_MAX) => (ms + 1, 0),
            (ms, count) => (ms, count + 1),
        };
        *latest
    }
}
