//! A workspace is retired, and those who still ask for it are told where to go.

use super::{WorkspaceError, Workspaces};
use crate::roster::RosterBatch;
use reveille_core::audit::Action;
use reveille_core::fleet::Who;
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::identity::Identity;
use reveille_core::presence::workspace::{FORWARD_HOPS_MAX, Workspace, WorkspaceStatus};
use reveille_roster::{Change, RosterError, StructureEvent, StructureEventQuery};
use serde_json::json;
use std::sync::Arc;

/// What somebody who asks for a workspace gets.
pub enum Whereabouts {
    Here(Arc<Workspace>),
    /// It was retired and this one took its place.
    Moved {
        to: Arc<Workspace>,
    },
    /// It was retired; this was the last that was heard of it.
    Gone {
        last: Option<StructureEvent>,
    },
}

pub struct WorkspaceRemoval {
    pub cascade: usize,
}

impl Workspaces {
    /// Where a workspace is now. Forwarding is followed, a few hops far.
    pub async fn whereabouts(
        &self,
        tenant: &TenantId,
        id: &WorkspaceId,
    ) -> Result<Whereabouts, WorkspaceError> {
        let asked = self.workspace(tenant, id).ok_or(WorkspaceError::NotFound)?;
        if !asked.is_removed() {
            return Ok(Whereabouts::Here(asked));
        }
        if let Some(to) = self.successor(&asked) {
            return Ok(Whereabouts::Moved { to });
        }
        Ok(Whereabouts::Gone { last: self.last_event(&asked).await? })
    }

    /// The living workspace that a retired one was replaced by, if there is one.
    pub fn successor(&self, retired: &Workspace) -> Option<Arc<Workspace>> {
        let mut next = retired.forwarded_to.clone()?;
        for _ in 0..FORWARD_HOPS_MAX {
            let found = self.workspace(&retired.tenant, &next)?;
            if !found.is_removed() {
                return Some(found);
            }
            next = found.forwarded_to.clone()?;
        }
        None
    }

    async fn last_event(&self, workspace: &Workspace) -> Result<Option<StructureEvent>, RosterError> {
        let query = StructureEventQuery {
            tenant: workspace.tenant.clone(),
            workspace: Some(workspace.id.clone()),
            limit: 1,
        };
        Ok(self.roster.events(&query).await?.pop())
    }

    /// Retires a workspace and everything under it. `forwarded_to` takes its place.
    pub async fn remove_workspace(
        &self,
        tenant: &TenantId,
        id: &WorkspaceId,
        forwarded_to: Option<WorkspaceId>,
        by: impl Into<Identity>,
    ) -> Result<WorkspaceRemoval, WorkspaceError> {
        let (workspaces, tenant, id, by) = (self.clone(), tenant.clone(), id.clone(), by.into());
        self.runtime
            .run_detached(async move { workspaces.retire_family(&tenant, &id, forwarded_to, &by).await })
            .await
    }

    async fn retire_family(
        &self,
        tenant: &TenantId,
        id: &WorkspaceId,
        forwarded_to: Option<WorkspaceId>,
        by: &Identity,
    ) -> Result<WorkspaceRemoval, WorkspaceError> {
        let _structure = self.index.lock_structure().await;
        let asked = self.living(tenant, id)?;
        let below = self.index.descendants(id);
        if let Some(to) = &forwarded_to {
            self.check_forward(&asked, to, &below)?;
        }
        // The family first: whoever finds the parent gone finds nobody left below it.
        for child in &below {
            self.retire(&child.id, None, json!({})).await?;
            self.record_act(child, Action::WorkspaceRetired, by).await;
        }
        let payload = json!({
            "cascade_deleted": below.len(), "forwarded_to": forwarded_to, "parent_id": asked.parent_id,
        });
        self.retire(id, forwarded_to, payload).await?;
        self.record_act(&asked, Action::WorkspaceRetired, by).await;
        Ok(WorkspaceRemoval { cascade: below.len() })
    }

    /// Retired workspaces only: nothing is left to say where it went.
    pub async fn purge_workspace(
        &self,
        tenant: &TenantId,
        id: &WorkspaceId,
        by: impl Into<Identity>,
    ) -> Result<(), WorkspaceError> {
        let (workspaces, tenant, id, by) = (self.clone(), tenant.clone(), id.clone(), by.into());
        self.runtime
            .run_detached(async move {
                let _structure = workspaces.index.lock_structure().await;
                let _lock = workspaces.index.lock(&id).await;
                let known = workspaces.workspace(&tenant, &id).ok_or(WorkspaceError::NotFound)?;
                if !known.is_removed() {
                    return Err(WorkspaceError::bad("purge", "only a retired workspace can be purged"));
                }
                let changes = vec![Change::PurgeWorkspace(id.clone())];
                workspaces.writer.write(RosterBatch { changes, events: Vec::new() }).await?;
                workspaces.index.remove(&id);
                workspaces.record_act(&known, Action::WorkspacePurged, &by).await;
                Ok(())
            })
            .await
    }

    /// Whoever is forwarded must not come back to where they started.
    fn check_forward(
        &self,
        from: &Workspace,
        to: &WorkspaceId,
        going: &[Arc<Workspace>],
    ) -> Result<(), WorkspaceError> {
        let bad = |problem: &str| WorkspaceError::bad("forwarded_to", problem);
        let mut next = self.workspace(&from.tenant, to).ok_or_else(|| bad("there is no such workspace"))?;
        for _ in 0..FORWARD_HOPS_MAX {
            if next.id == from.id {
                return Err(bad("would lead back to this workspace"));
            }
            if going.iter().any(|other| other.id == next.id) {
                return Err(bad("is removed together with this workspace"));
            }
            if !next.is_removed() {
                return Ok(());
            }
            let Some(further) = next.forwarded_to.as_ref() else { return Err(bad("was removed itself")) };
            next = self.workspace(&from.tenant, further).ok_or_else(|| bad("leads to nobody"))?;
        }
        Err(bad("has too many hops before it"))
    }

    async fn retire(
        &self,
        id: &WorkspaceId,
        forwarded_to: Option<WorkspaceId>,
        payload: serde_json::Value,
    ) -> Result<(), WorkspaceError> {
        let _lock = self.index.lock(id).await;
        let known = self.index.find(id).ok_or(WorkspaceError::NotFound)?;
        if known.is_removed() {
            return Ok(());
        }
        let retired = Workspace {
            status: WorkspaceStatus::Removed,
            forwarded_to,
            updated_at: self.runtime.now(),
            ..(*known).clone()
        };
        self.keep_workspace(retired, Some(("WORKSPACE_REMOVED", payload))).await?;
        let gone = self.placement.lock().remove_member(Who::Workspace(id.as_str()));
        if let Some(gone) = gone {
            self.departures.member_gone(gone);
        }
        self.call_back(|hook| hook.retired(id));
        Ok(())
    }
}
