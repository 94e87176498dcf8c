//! Molecule workspaces: registered, beating, moved, retired, and found again by whoever asks.
//!
//! The records are held in memory and written through the scribe; one workspace changes one step at a
//! time. What anybody may do with a workspace of another tenant is nothing: it does not exist.

mod beats;
mod changes;
mod credentials;
mod kinship;
mod registry;
mod retire;
mod talk;

pub(crate) use beats::LOCK as SILENCE_LOCK;
pub use changes::Patch;
pub use registry::{NewWorkspace, Registered, Registration};
pub use retire::{Removed, Whereabouts};

use crate::Engine;
use crate::events::What;
use crate::scribe::Note;
use reveille_a2a::A2aError;
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::presence::workspace::{Pulse, Workspace};
use reveille_roster::{Change, EventQuery, Roster, RosterError, StructureEvent};
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Mutex, MutexGuard};

pub const WORKSPACES_MAX: usize = 100_000;
/// Workspaces change one step at a time; so many of them may change at once.
const TURNS: usize = 64;
const PAGE: usize = 1_000;
/// What the twelve bits after the time of an id can count to.
const COUNT_MAX: u16 = 0xfff;

/// Why a workspace could not be changed, or found.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WorkspaceError {
    #[error("workspace not found")]
    NotFound,
    /// It was retired.
    #[error("workspace was removed")]
    Removed,
    #[error("missing workspace auth token")]
    TokenMissing,
    #[error("invalid workspace auth token")]
    TokenWrong,
    #[error("not authorized to reach this workspace")]
    NotKin,
    #[error("{field}: {problem}")]
    Bad { field: &'static str, problem: String },
    #[error("url: {0}")]
    BadUrl(A2aError),
    #[error("there are {WORKSPACES_MAX} workspaces already")]
    TooMany,
    #[error(transparent)]
    Roster(#[from] RosterError),
}

impl WorkspaceError {
    pub(crate) fn bad(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Bad { field, problem: problem.into() }
    }
}

#[derive(Default)]
pub struct Workspaces {
    records: RwLock<Records>,
    turns: Vec<Mutex<()>>,
    /// Who is whose parent, and who takes whose place, changes for one at a time: two changes that are
    /// each fine could close a circle together. Taken before a turn.
    structure: Mutex<()>,
    /// The moment of the latest event, and how many there were at it before.
    latest: std::sync::Mutex<(u64, u16)>,
}

#[derive(Default)]
struct Records {
    by_id: FxHashMap<WorkspaceId, Arc<Workspace>>,
    by_token: FxHashMap<[u8; 32], WorkspaceId>,
    /// How often one was changed here.
    changes: u64,
}

impl Workspaces {
    pub async fn load(roster: &dyn Roster) -> Result<Self, RosterError> {
        let workspaces = Self { turns: (0..TURNS).map(|_| Mutex::default()).collect(), ..Self::default() };
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

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Records> {
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

    fn put(&self, workspace: Workspace) {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        records.changes += 1;
        let before = records.by_id.insert(workspace.id.clone(), Arc::new(workspace.clone()));
        if let Some(hash) = before.and_then(|before| before.token_hash) {
            records.by_token.remove(&hash);
        }
        if let Some(hash) = workspace.token_hash {
            records.by_token.insert(hash, workspace.id);
        }
    }

    fn take(&self, id: &WorkspaceId) {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        records.changes += 1;
        if let Some(hash) = records.by_id.remove(id).and_then(|gone| gone.token_hash) {
            records.by_token.remove(&hash);
        }
    }

    /// Nobody else changes this workspace meanwhile.
    async fn turn(&self, id: &WorkspaceId) -> MutexGuard<'_, ()> {
        let ix = id.as_str().bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        self.turns[ix % TURNS].lock().await
    }
}

/// A workspace with its latest beat.
#[derive(Debug, Clone)]
pub struct WorkspaceView {
    pub workspace: Arc<Workspace>,
    pub pulse: Pulse,
    /// Restored after our restart and not heard since.
    pub restored: bool,
    pub last_seen: Option<reveille_core::time::Millis>,
}

impl Engine {
    /// A workspace of this tenant, retired or not.
    pub fn workspace(&self, tenant: &TenantId, id: &WorkspaceId) -> Option<Arc<Workspace>> {
        self.workspaces.find(id).filter(|workspace| workspace.tenant == *tenant)
    }

    /// A workspace, whoever's it is: for those who look at the credential next.
    pub fn any_workspace(&self, id: &WorkspaceId) -> Option<Arc<Workspace>> {
        self.workspaces.find(id)
    }

    /// A tenant's workspaces that are not retired, by id.
    pub fn workspaces_of(&self, tenant: &TenantId) -> Vec<WorkspaceView> {
        let mut found = self.workspaces.all();
        found.retain(|workspace| workspace.tenant == *tenant && !workspace.is_removed());
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.into_iter().map(|workspace| self.view_of(workspace)).collect()
    }

    pub fn view_of(&self, workspace: Arc<Workspace>) -> WorkspaceView {
        use reveille_core::fleet::Who;
        use reveille_core::presence::About;
        let placement = self.placement();
        let worker = placement.fleet().lookup(Who::Workspace(workspace.id.as_str()));
        let pulse = worker.and_then(|worker| match &worker.about {
            About::Workspace(pulse) => Some((**pulse).clone()),
            _ => None,
        });
        WorkspaceView {
            pulse: pulse.unwrap_or_default(),
            restored: worker.is_some_and(|worker| worker.restored),
            last_seen: worker.map(|worker| worker.last_seen),
            workspace,
        }
    }

    /// Siblings, children and the parent.
    pub fn peers_of(&self, workspace: &Workspace) -> Vec<WorkspaceView> {
        self.workspaces.peers(workspace).into_iter().map(|peer| self.view_of(peer)).collect()
    }

    pub fn children_of(&self, workspace: &Workspace) -> Vec<Arc<Workspace>> {
        self.workspaces.children(&workspace.id)
    }

    pub fn may_talk(&self, one: &Workspace, other: &Workspace) -> bool {
        self.workspaces.may_talk(one, other)
    }

    pub async fn structure_events(&self, query: &EventQuery) -> Result<Vec<StructureEvent>, RosterError> {
        self.roster.events(query).await
    }

    /// An event that is kept, and what is told once it is.
    pub(crate) fn structure_event(
        &self,
        workspace: &Workspace,
        name: &'static str,
        target: Option<WorkspaceId>,
        payload: Value,
    ) -> (Change, (TenantId, What)) {
        let event = StructureEvent {
            id: self.new_event_id(),
            tenant: workspace.tenant.clone(),
            kind: name.to_owned(),
            workspace: workspace.id.clone(),
            target,
            payload: payload.clone(),
            created_at: self.now(),
        };
        let what =
            What::Workspace { id: workspace.id.clone(), name: name.into(), payload: Arc::new(payload) };
        (Change::Event(event), (workspace.tenant.clone(), what))
    }

    /// A time-ordered id, after all that were given before, also within the same millisecond: whoever asks
    /// for the last event gets the last.
    fn new_event_id(&self) -> String {
        let now = self.now().0.max(0) as u64;
        let (ms, count) = {
            let mut latest = self.workspaces.latest.lock().unwrap_or_else(PoisonError::into_inner);
            *latest = match *latest {
                (ms, _) if ms < now => (now, 0),
                (ms, COUNT_MAX) => (ms + 1, 0),
                (ms, count) => (ms, count + 1),
            };
            *latest
        };
        let mut bytes = [0; 10];
        bytes[..2].copy_from_slice(&count.to_be_bytes());
        bytes[2..].copy_from_slice(&self.rng.next_u64().to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid().to_string()
    }

    /// Keeps a changed workspace with the event that goes with it: event and record on the disk, the
    /// record here, and then the word to the world. Whoever hears it and asks finds what it heard.
    pub(crate) async fn keep_workspace(
        &self,
        workspace: Workspace,
        event: Option<(&'static str, Value)>,
    ) -> Result<(), RosterError> {
        let (mut changes, mut told) = (Vec::new(), None);
        if let Some((name, payload)) = event {
            let (change, what) = self.structure_event(&workspace, name, workspace.parent_id.clone(), payload);
            changes.push(change);
            told = Some(what);
        }
        changes.push(Change::Workspace(workspace.clone()));
        self.write_down(Note { changes, told: Vec::new() }).await?;
        self.workspaces.put(workspace);
        if let Some((tenant, what)) = told {
            self.events.tell(self.now(), &tenant, what);
        }
        Ok(())
    }
}
