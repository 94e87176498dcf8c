//! What is changed of a workspace while it lives: its card, its name, its place in the family.

use super::registry::{NAME_LEN_MAX, ROLE_LEN_MAX, RUNTIME_LEN_MAX, check_card, check_text};
use super::{WorkspaceError, Workspaces};
use reveille_core::audit::Action;
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::identity::Identity;
use reveille_core::presence::workspace::Workspace;
use serde_json::{Value, json};

/// What may be changed later. `Some(None)` takes a value away.
#[derive(Default)]
pub struct Patch {
    pub name: Option<String>,
    pub role: Option<Option<String>>,
    pub tier: Option<i64>,
    pub runtime: Option<String>,
    pub parent_id: Option<Option<WorkspaceId>>,
    pub max_concurrent_tasks: Option<u32>,
    pub collapsed: Option<bool>,
    pub x: Option<f64>,
    pub y: Option<f64>,
}

/// Whether more was changed than where it is drawn on the canvas.
fn is_more_than_looks(before: &Workspace, after: &Workspace) -> bool {
    let drawn_as_before = Workspace {
        x: before.x,
        y: before.y,
        collapsed: before.collapsed,
        updated_at: before.updated_at,
        ..after.clone()
    };
    drawn_as_before != *before
}

impl Workspaces {
    /// Another agent card.
    pub async fn update_card(&self, id: &WorkspaceId, agent_card: Value) -> Result<(), WorkspaceError> {
        check_card(&agent_card)?;
        let (workspaces, id) = (self.clone(), id.clone());
        self.runtime
            .run_detached(async move {
                let _lock = workspaces.index.lock(&id).await;
                let known = workspaces.index.find(&id).ok_or(WorkspaceError::NotFound)?;
                if known.is_removed() {
                    return Err(WorkspaceError::Removed);
                }
                let payload = json!({ "agent_card": agent_card });
                let changed = Workspace {
                    agent_card: Some(agent_card),
                    updated_at: workspaces.runtime.now(),
                    ..(*known).clone()
                };
                Ok(workspaces.keep_workspace(changed, Some(("AGENT_CARD_UPDATED", payload))).await?)
            })
            .await
    }

    pub async fn patch_workspace(
        &self,
        tenant: &TenantId,
        id: &WorkspaceId,
        patch: Patch,
        by: impl Into<Identity>,
    ) -> Result<(), WorkspaceError> {
        let (workspaces, tenant, id, by) = (self.clone(), tenant.clone(), id.clone(), by.into());
        self.runtime
            .run_detached(async move {
                let _structure = workspaces.index.lock_structure().await;
                let _lock = workspaces.index.lock(&id).await;
                let known = workspaces.living(&tenant, &id)?;
                let changed = workspaces.patched(&known, patch)?;
                workspaces.keep_workspace(changed.clone(), None).await?;
                if is_more_than_looks(&known, &changed) {
                    workspaces.record_act(&known, Action::WorkspaceChanged, &by).await;
                }
                Ok(())
            })
            .await
    }

    fn patched(&self, known: &Workspace, patch: Patch) -> Result<Workspace, WorkspaceError> {
        let mut changed = Workspace { updated_at: self.runtime.now(), ..known.clone() };
        if let Some(name) = patch.name {
            check_text("name", &name, NAME_LEN_MAX)?;
            changed.name = name;
        }
        if let Some(role) = patch.role {
            check_text("role", role.as_deref().unwrap_or_default(), ROLE_LEN_MAX)?;
            changed.role = role;
        }
        if let Some(runtime) = patch.runtime {
            check_text("runtime", &runtime, RUNTIME_LEN_MAX)?;
            changed.runtime = Some(runtime);
        }
        if let Some(parent) = patch.parent_id {
            if let Some(parent) = &parent {
                let above = self.living(&known.tenant, parent)?;
                if above.id == known.id || self.index.descends(&above, &known.id) {
                    return Err(WorkspaceError::bad("parent_id", "would make it its own ancestor"));
                }
            }
            changed.parent_id = parent;
        }
        changed.tier = patch.tier.unwrap_or(changed.tier);
        changed.max_concurrent_tasks = patch.max_concurrent_tasks.or(changed.max_concurrent_tasks);
        changed.collapsed = patch.collapsed.unwrap_or(changed.collapsed);
        changed.x = patch.x.unwrap_or(changed.x);
        changed.y = patch.y.unwrap_or(changed.y);
        Ok(changed)
    }
}
