//! What was written to the roster, and what must be true of it at every moment: a workspace's status is
//! what its last event says, and a delegation is told rung by rung and ends once.

use crate::invariants::InvariantResult;
use crate::situations::{Situation, Situations};
use reveille_core::id::{JobId, TenantId, WorkspaceId};
use reveille_core::job::{Job, State};
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_core::presence::workspace::{Workspace, WorkspaceStatus};
use reveille_core::time::Millis;
use reveille_roster::{Change, PresenceKey, StructureEvent};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
pub struct Archive {
    last_seen: BTreeMap<PresenceKey, Millis>,
    workspaces: BTreeMap<WorkspaceId, Workspace>,
    /// The status that the last event of each workspace tells of.
    told: BTreeMap<WorkspaceId, WorkspaceStatus>,
    kept: BTreeMap<(WorkspaceId, String), u64>,
    rungs: BTreeMap<JobId, DelegationStatus>,
    rows: BTreeMap<JobId, Delegation>,
}

impl Archive {
    /// A write became durable, all of it.
    pub fn written(&mut self, changes: &[Change], situations: &Situations) -> InvariantResult {
        for change in changes {
            match change {
                Change::Presence(row) => {
                    let seen = self.last_seen.entry(row.key.clone()).or_default();
                    if row.replaces(*seen) {
                        *seen = row.last_seen;
                    }
                }
                Change::Workspace(workspace) => {
                    self.workspaces.insert(workspace.id.clone(), workspace.clone());
                }
                Change::Event(event) => self.event(event, situations)?,
                Change::Delegation(row) if row.is_job => self.row(row)?,
                _ => {}
            }
        }
        for workspace in self.workspaces.values() {
            let (id, status) = (&workspace.id, workspace.status);
            if self.told.get(id) != Some(&status) {
                return Err(format!(
                    "{id} is {} and its last event says {:?}",
                    status.as_str(),
                    self.told.get(id)
                ));
            }
        }
        Ok(())
    }

    fn event(&mut self, event: &StructureEvent, situations: &Situations) -> InvariantResult {
        *self.kept.entry((event.workspace.clone(), event.kind.clone())).or_default() += 1;
        if let Some(status) = status_told(&event.kind) {
            let before = self.told.insert(event.workspace.clone(), status);
            match (before, status) {
                (_, WorkspaceStatus::Offline) => situations.record(Situation::WorkspaceOffline),
                (Some(WorkspaceStatus::Offline), _) => situations.record(Situation::WorkspaceBack),
                _ => {}
            }
        }
        if event.kind == "DELEGATION_STATUS" {
            return self.rung(event, situations);
        }
        Ok(())
    }

    /// A rung is told: none is left out on the way up, and none follows the last.
    fn rung(&mut self, event: &StructureEvent, situations: &Situations) -> InvariantResult {
        let text = |key: &str| event.payload.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        let id = JobId::known(text("delegation_id"));
        let rung = RUNGS.into_iter().find(|rung| rung.as_str() == text("status"));
        let rung = rung.ok_or_else(|| format!("{id} got to a rung that there is not: {}", event.payload))?;
        let before = self.rungs.insert(id.clone(), rung);
        match rung {
            DelegationStatus::Completed => situations.record(Situation::DelegationCompleted),
            DelegationStatus::Failed => situations.record(Situation::DelegationFailed),
            DelegationStatus::Pending if before.is_some() => situations.record(Situation::DelegationAgain),
            _ => {}
        }
        match before {
            Some(before) if before.is_final() => {
                Err(format!("{id} had ended as {} and was told to be {}", before.as_str(), rung.as_str()))
            }
            Some(before) if !follows(before, rung) => {
                Err(format!("{id} went from {} to {}", before.as_str(), rung.as_str()))
            }
            None if rung != DelegationStatus::Pending => Err(format!("{id} began as {}", rung.as_str())),
            _ => Ok(()),
        }
    }

    fn row(&mut self, row: &Delegation) -> InvariantResult {
        let id = &row.id;
        if self.rungs.get(id) != Some(&row.status) {
            let told = self.rungs.get(id);
            return Err(format!("{id} is kept as {} and was told as {told:?}", row.status.as_str()));
        }
        if let Some(before) = self.rows.insert(id.clone(), row.clone())
            && (&before.tenant, &before.source, &before.target) != (&row.tenant, &row.source, &row.target)
        {
            return Err(format!("{id} is another delegation than it was"));
        }
        Ok(())
    }

    /// When a member was last seen, as far as a restart would know.
    pub fn last_seen(&self, key: &PresenceKey) -> Option<Millis> {
        self.last_seen.get(key).copied()
    }

    /// How many events of a kind are kept of a workspace.
    pub fn kept(&self, workspace: &WorkspaceId, kind: &str) -> u64 {
        self.kept.get(&(workspace.clone(), kind.to_owned())).copied().unwrap_or_default()
    }

    pub fn status(&self, id: &WorkspaceId) -> Option<WorkspaceStatus> {
        self.workspaces.get(id).map(|workspace| workspace.status)
    }

    /// The workspaces that a start finds online.
    pub fn online(&self) -> Vec<WorkspaceId> {
        let is_online = |workspace: &&Workspace| {
            matches!(workspace.status, WorkspaceStatus::Online | WorkspaceStatus::Degraded)
        };
        self.workspaces.values().filter(is_online).map(|workspace| workspace.id.clone()).collect()
    }

    pub fn tenant_of(&self, id: &WorkspaceId) -> Option<&TenantId> {
        self.workspaces.get(id).map(|workspace| &workspace.tenant)
    }

    pub fn row_of(&self, id: &JobId) -> Option<&Delegation> {
        self.rows.get(id)
    }

    /// Every delegation has ended as its job has.
    pub fn settled(&self, job_of: impl Fn(&JobId) -> Option<Arc<Job>>) -> InvariantResult {
        for row in self.rows.values() {
            let (id, status) = (&row.id, row.status);
            let Some(job) = job_of(id) else {
                return Err(format!("{id} is kept as a delegation and is no job"));
            };
            let ended = match job.state() {
                State::Succeeded | State::OutputQuarantined => DelegationStatus::Completed,
                _ => DelegationStatus::Failed,
            };
            // What is held back before anybody saw it counts as failed, also when it is let out later.
            let was_held_back = job.state() == State::OutputQuarantined || job.was_released();
            if status != ended && !(status == DelegationStatus::Failed && was_held_back) {
                return Err(format!(
                    "{id} ended as {} and is told to be {}",
                    ended.as_str(),
                    status.as_str()
                ));
            }
        }
        Ok(())
    }
}

const RUNGS: [DelegationStatus; 6] = [
    DelegationStatus::Pending,
    DelegationStatus::Dispatched,
    DelegationStatus::Received,
    DelegationStatus::InProgress,
    DelegationStatus::Completed,
    DelegationStatus::Failed,
];

/// One step up, or back down to wait for another try; failure may come at any time.
fn follows(before: DelegationStatus, rung: DelegationStatus) -> bool {
    match rung {
        DelegationStatus::Failed => true,
        DelegationStatus::Pending => before > DelegationStatus::Pending,
        DelegationStatus::Dispatched => {
            before == DelegationStatus::Pending || before > DelegationStatus::Dispatched
        }
        DelegationStatus::Received => before == DelegationStatus::Dispatched,
        DelegationStatus::InProgress => before == DelegationStatus::Received,
        DelegationStatus::Completed => before == DelegationStatus::InProgress,
    }
}

fn status_told(kind: &str) -> Option<WorkspaceStatus> {
    match kind {
        "WORKSPACE_PROVISIONING" => Some(WorkspaceStatus::Provisioning),
        "WORKSPACE_ONLINE" => Some(WorkspaceStatus::Online),
        "WORKSPACE_DEGRADED" => Some(WorkspaceStatus::Degraded),
        "WORKSPACE_OFFLINE" => Some(WorkspaceStatus::Offline),
        "WORKSPACE_REMOVED" => Some(WorkspaceStatus::Removed),
        _ => None,
    }
}
