//! Molecule workspaces: registered, beating, moved, retired, and found again by whoever asks.
//!
//! The records are held in memory and written through the roster writer; one workspace changes one
//! step at a time. What anybody may do with a workspace of another tenant is nothing: it does not exist.

mod beats;
mod changes;
mod credentials;
mod index;
mod kinship;
mod registry;
mod retire;
mod talk;

pub(crate) use beats::LOCK as SILENCE_LOCK;
pub use changes::Patch;
pub use credentials::{WorkspaceAct, WorkspaceClaim};
pub use index::WorkspaceIndex;
pub use registry::{NewWorkspace, RegisteredWorkspace, WorkspaceRegistration};
pub use retire::{Whereabouts, WorkspaceRemoval};

use super::expiry::Departures;
use crate::base::Base;
use crate::cluster::Cluster;
use crate::hook::Hook;
use crate::jobs::Jobs;
use crate::locks::SharedLocks;
use crate::observe::Observe;
use crate::observe::audit_writer::AuditWriter;
use crate::observe::events::What;
use crate::placement::PlacementTable;
use crate::roster::{RosterBatch, RosterCopy, RosterWriter};
use crate::runtime::Runtime;
use reveille_a2a::{A2aClient, A2aError};
use reveille_core::audit::Action;
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::identity::Identity;
use reveille_core::presence::workspace::{Pulse, Workspace};
use reveille_core::quota::OverQuota;
use reveille_roster::{Change, Roster, RosterError, StructureEvent, StructureEventQuery};
use serde_json::Value;
use std::ops::Deref;
use std::sync::Arc;

pub const WORKSPACES_MAX: usize = 100_000;

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
    OverQuota(#[from] OverQuota),
    #[error(transparent)]
    Roster(#[from] RosterError),
}

impl WorkspaceError {
    pub(crate) fn bad(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Bad { field, problem: problem.into() }
    }
}

/// A handle; clones are the same component.
#[derive(Clone)]
pub struct Workspaces(Arc<Inner>);

pub struct Inner {
    runtime: Runtime,
    observe: Observe,
    cluster: Arc<dyn Cluster>,
    placement: PlacementTable,
    jobs: Jobs,
    audit: AuditWriter,
    departures: Departures,
    locks: SharedLocks,
    roster: Arc<dyn Roster>,
    writer: RosterWriter,
    a2a: Arc<dyn A2aClient>,
    index: Arc<WorkspaceIndex>,
    delegations: Hook<dyn WorkspaceHook>,
}

/// What workspaces are made of.
pub struct WorkspaceParts {
    pub base: Base,
    pub jobs: Jobs,
    pub audit: AuditWriter,
    pub departures: Departures,
    pub locks: SharedLocks,
    pub roster: Arc<dyn Roster>,
    pub writer: RosterWriter,
    pub a2a: Arc<dyn A2aClient>,
    pub index: Arc<WorkspaceIndex>,
}

/// What workspaces call back: the room of delegations, above them.
pub trait WorkspaceHook: Send + Sync {
    /// It is heard again, and should have what it was given.
    fn returned(&self, workspace: &WorkspaceId);

    /// It has started anew, and knows of nothing that it was sent.
    fn restarted(&self, workspace: &WorkspaceId);

    /// It is retired: what was given to it can go nowhere else.
    fn retired(&self, workspace: &WorkspaceId);
}

impl Deref for Workspaces {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
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

impl Workspaces {
    pub fn new(parts: WorkspaceParts) -> Self {
        let WorkspaceParts { base, jobs, audit, departures, locks, roster, writer, a2a, index } = parts;
        let Base { runtime, observe, cluster, placement } = base;
        let delegations = Hook::default();
        Self(Arc::new(Inner {
            runtime,
            observe,
            cluster,
            placement,
            jobs,
            audit,
            departures,
            locks,
            roster,
            writer,
            a2a,
            index,
            delegations,
        }))
    }

    /// Who is called back about delegations. Set before anything runs.
    pub fn set_hook(&self, delegations: &Arc<dyn WorkspaceHook>) {
        self.delegations.set(delegations);
    }

    pub(crate) fn index(&self) -> &WorkspaceIndex {
        &self.index
    }

    /// A workspace of this tenant, retired or not.
    pub fn workspace(&self, tenant: &TenantId, id: &WorkspaceId) -> Option<Arc<Workspace>> {
        self.index.find(id).filter(|workspace| workspace.tenant == *tenant)
    }

    /// A workspace, whoever's it is: for those who look at the credential next.
    pub fn any_workspace(&self, id: &WorkspaceId) -> Option<Arc<Workspace>> {
        self.index.find(id)
    }

    /// A tenant's workspaces that are not retired, by id.
    pub fn workspaces_of(&self, tenant: &TenantId) -> Vec<WorkspaceView> {
        let mut found = self.index.all();
        found.retain(|workspace| workspace.tenant == *tenant && !workspace.is_removed());
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.into_iter().map(|workspace| self.view_of(workspace)).collect()
    }

    pub fn view_of(&self, workspace: Arc<Workspace>) -> WorkspaceView {
        use reveille_core::fleet::Who;
        use reveille_core::presence::About;
        let placement = self.placement.lock();
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
        self.index.peers(workspace).into_iter().map(|peer| self.view_of(peer)).collect()
    }

    pub fn children_of(&self, workspace: &Workspace) -> Vec<Arc<Workspace>> {
        self.index.children(&workspace.id)
    }

    pub fn may_talk(&self, one: &Workspace, other: &Workspace) -> bool {
        self.index.may_talk(one, other)
    }

    pub async fn structure_events(
        &self,
        query: &StructureEventQuery,
    ) -> Result<Vec<StructureEvent>, RosterError> {
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
            created_at: self.runtime.now(),
        };
        let what =
            What::Workspace { id: workspace.id.clone(), name: name.into(), payload: Arc::new(payload) };
        (Change::Event(event), (workspace.tenant.clone(), what))
    }

    /// A time-ordered id, after all that were given before, also within the same millisecond: whoever asks
    /// for the last event gets the last.
    fn new_event_id(&self) -> String {
        let now = self.runtime.now().0.max(0) as u64;
        let (ms, count) = self.index.next_event(now);
        let mut bytes = [0; 10];
        bytes[..2].copy_from_slice(&count.to_be_bytes());
        bytes[2..].copy_from_slice(&self.runtime.random().to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid().to_string()
    }

    /// Records what somebody did to a workspace.
    async fn record_act(&self, workspace: &Workspace, action: Action, by: &Identity) {
        let entry = self.audit.act(&workspace.tenant, action, by).about("workspace", workspace.id.as_str());
        self.audit.record(entry.about("name", &workspace.name)).await;
    }

    /// Keeps a changed workspace with the event that goes with it: event and record on the disk, the
    /// record here, and then the word to the world. Whoever hears it and asks finds what it heard.
    pub(crate) async fn keep_workspace(
        &self,
        workspace: Workspace,
        event: Option<(&'static str, Value)>,
    ) -> Result<(), RosterError> {
        let (mut changes, mut published) = (Vec::new(), None);
        if let Some((name, payload)) = event {
            let (change, what) = self.structure_event(&workspace, name, workspace.parent_id.clone(), payload);
            changes.push(change);
            published = Some(what);
        }
        changes.push(Change::Workspace(workspace.clone()));
        self.writer.write(RosterBatch { changes, events: Vec::new() }).await?;
        self.index.put(workspace);
        if let Some((tenant, what)) = published {
            self.observe.events().publish(self.runtime.now(), &tenant, what);
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl RosterCopy for Workspaces {
    async fn reload(&self) -> Result<bool, RosterError> {
        let changes = self.index.changes();
        Ok(self.index.replace(WorkspaceIndex::load(&*self.roster).await?, changes))
    }
}
