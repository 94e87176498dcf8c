//! A workspace is set up, starts, and starts again on another machine.

use super::credentials::{WorkspaceAct, WorkspaceClaim};
use super::{WORKSPACES_MAX, WorkspaceError, Workspaces};
use crate::secret::hash;
use reveille_core::audit::Action;
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::identity::Identity;
use reveille_core::presence::workspace::{Pulse, Workspace, WorkspaceStatus};
use reveille_core::quota::TenantQuota;
use serde_json::{Value, json};
use std::sync::Arc;

pub const NAME_LEN_MAX: usize = 255;
pub const ROLE_LEN_MAX: usize = 1_000;
pub const RUNTIME_LEN_MAX: usize = 100;
pub const URL_LEN_MAX: usize = 2_048;
pub const CARD_LEN_MAX: usize = 64 * 1024;

/// What a workspace says when it starts.
pub struct WorkspaceRegistration {
    pub id: WorkspaceId,
    pub url: String,
    pub agent_card: Value,
}

pub struct RegisteredWorkspace {
    pub workspace: Arc<Workspace>,
    /// Shown here and nowhere else, and only if it had none.
    pub token: Option<String>,
}

/// Which workspace somebody registers who may.
enum MayRegister {
    Known(Arc<Workspace>),
    /// Nobody has set it up: it is of the tenant whose key was shown.
    New(TenantId),
}

/// A workspace that somebody sets up before it starts.
#[derive(Default)]
pub struct NewWorkspace {
    pub name: String,
    pub role: Option<String>,
    pub tier: i64,
    pub runtime: Option<String>,
    pub url: Option<String>,
    pub parent_id: Option<WorkspaceId>,
    pub max_concurrent_tasks: Option<u32>,
    pub x: f64,
    pub y: f64,
}

impl Workspaces {
    /// Sets a workspace up. It comes online when it registers.
    pub async fn create_workspace(
        &self,
        tenant: &TenantId,
        new: NewWorkspace,
        by: impl Into<Identity>,
    ) -> Result<Arc<Workspace>, WorkspaceError> {
        self.has_room(tenant)?;
        check_text("name", &new.name, NAME_LEN_MAX)?;
        check_text("role", new.role.as_deref().unwrap_or_default(), ROLE_LEN_MAX)?;
        check_text("runtime", new.runtime.as_deref().unwrap_or_default(), RUNTIME_LEN_MAX)?;
        if let Some(url) = &new.url {
            self.check_url(url).await?;
        }
        let (workspaces, tenant, by) = (self.clone(), tenant.clone(), by.into());
        self.runtime
            .run_detached(async move {
                let workspace = workspaces.set_up(tenant, new).await?;
                workspaces.record_act(&workspace, Action::WorkspaceCreated, &by).await;
                Ok(workspace)
            })
            .await
    }

    async fn set_up(&self, tenant: TenantId, new: NewWorkspace) -> Result<Arc<Workspace>, WorkspaceError> {
        let _structure = self.index.lock_structure().await;
        self.has_room(&tenant)?;
        if let Some(parent) = &new.parent_id {
            self.living(&tenant, parent)?;
        }
        let workspace = Workspace {
            name: new.name,
            role: new.role,
            tier: new.tier,
            runtime: new.runtime,
            url: new.url,
            parent_id: new.parent_id,
            max_concurrent_tasks: new.max_concurrent_tasks,
            x: new.x,
            y: new.y,
            ..self.blank(WorkspaceId::known(self.runtime.new_uuid()), tenant)
        };
        let payload = json!({
            "name": workspace.name, "tier": workspace.tier, "runtime": workspace.runtime,
            "parent_id": workspace.parent_id, "x": workspace.x, "y": workspace.y,
        });
        let _lock = self.index.lock(&workspace.id).await;
        self.keep_workspace(workspace.clone(), Some(("WORKSPACE_PROVISIONING", payload))).await?;
        Ok(Arc::new(workspace))
    }

    /// A workspace starts, or starts again elsewhere. It is durable when this returns.
    ///
    /// A new one is of the tenant whose key was shown.
    pub async fn register_workspace(
        &self,
        claim: &WorkspaceClaim,
        registration: WorkspaceRegistration,
        by: impl Into<Identity>,
    ) -> Result<RegisteredWorkspace, WorkspaceError> {
        // Who may not register at all makes us look up no names.
        self.may_register(&registration.id, claim)?;
        self.check_url(&registration.url).await?;
        check_card(&registration.agent_card)?;
        let (workspaces, claim, by) = (self.clone(), claim.clone(), by.into());
        self.runtime
            .run_detached(async move {
                let was_at = workspaces.index.find(&registration.id).and_then(|known| known.url.clone());
                let registered = workspaces.take_in_workspace(&claim, registration).await?;
                // A start at the same place is in the structure events, and is no change.
                if registered.token.is_some() || registered.workspace.url != was_at {
                    workspaces.record_act(&registered.workspace, Action::WorkspaceRegistered, &by).await;
                }
                Ok(registered)
            })
            .await
    }

    async fn take_in_workspace(
        &self,
        claim: &WorkspaceClaim,
        registration: WorkspaceRegistration,
    ) -> Result<RegisteredWorkspace, WorkspaceError> {
        let WorkspaceRegistration { id, url, agent_card } = registration;
        // Of two that are new, the second sees that the first has taken the last place.
        let _structure = match self.index.find(&id) {
            Some(_) => None,
            None => Some(self.index.lock_structure().await),
        };
        let _lock = self.index.lock(&id).await;
        let mut workspace = match self.may_register(&id, claim)? {
            MayRegister::Known(known) => (*known).clone(),
            MayRegister::New(tenant) => self.self_made(id, tenant, &agent_card)?,
        };
        let new_token = workspace.token_hash.is_none().then(|| self.new_token());
        if let Some(token) = &new_token {
            workspace.token_hash = Some(hash(token));
        }
        let payload = json!({ "url": url, "agent_card": agent_card });
        workspace.url = Some(url);
        workspace.agent_card = Some(agent_card);
        workspace.status = WorkspaceStatus::Online;
        workspace.updated_at = self.runtime.now();
        self.keep_workspace(workspace.clone(), Some(("WORKSPACE_ONLINE", payload))).await?;
        // It has just started: what it was sent is lost, and what it said of itself is no longer so.
        self.call_back(|hook| hook.restarted(&workspace.id));
        self.note_pulse(&workspace, Pulse::default());
        Ok(RegisteredWorkspace { workspace: Arc::new(workspace), token: new_token })
    }

    fn may_register(&self, id: &WorkspaceId, claim: &WorkspaceClaim) -> Result<MayRegister, WorkspaceError> {
        match (self.index.find(id), claim) {
            (Some(known), _) => {
                self.admit(&known, claim, WorkspaceAct::Register)?;
                if known.is_removed() { Err(WorkspaceError::Removed) } else { Ok(MayRegister::Known(known)) }
            }
            (None, WorkspaceClaim::Key(tenant) | WorkspaceClaim::Open(tenant)) => {
                Ok(MayRegister::New(tenant.clone()))
            }
            (None, WorkspaceClaim::Token(_)) => Err(WorkspaceError::TokenWrong),
            (None, WorkspaceClaim::Nothing) => Err(WorkspaceError::TokenMissing),
        }
    }

    fn self_made(
        &self,
        id: WorkspaceId,
        tenant: TenantId,
        card: &Value,
    ) -> Result<Workspace, WorkspaceError> {
        self.has_room(&tenant)?;
        let name = card.get("name").and_then(Value::as_str).unwrap_or(id.as_str());
        let name = name.chars().filter(|c| !c.is_control()).take(NAME_LEN_MAX).collect();
        Ok(Workspace { name, tier: 1, ..self.blank(id, tenant) })
    }

    /// Whether there may be one more workspace of this tenant.
    fn has_room(&self, tenant: &TenantId) -> Result<(), WorkspaceError> {
        if self.index.len() >= WORKSPACES_MAX {
            return Err(WorkspaceError::TooMany);
        }
        let (has, max) = (self.index.len_of(tenant), self.runtime.settings().limits.workspaces_per_tenant);
        Ok(self.observe.metrics().check_quota(TenantQuota::Workspaces, has as u64, max as u64)?)
    }

    fn blank(&self, id: WorkspaceId, tenant: TenantId) -> Workspace {
        let now = self.runtime.now();
        Workspace {
            id,
            tenant,
            status: WorkspaceStatus::Provisioning,
            name: String::new(),
            role: None,
            tier: 0,
            runtime: None,
            url: None,
            agent_card: None,
            parent_id: None,
            forwarded_to: None,
            token_hash: None,
            max_concurrent_tasks: None,
            x: 0.0,
            y: 0.0,
            collapsed: false,
            created_at: now,
            updated_at: now,
        }
    }

    async fn check_url(&self, url: &str) -> Result<(), WorkspaceError> {
        if url.len() > URL_LEN_MAX {
            return Err(WorkspaceError::bad("url", format!("is longer than {URL_LEN_MAX} bytes")));
        }
        self.a2a.check(url).await.map_err(WorkspaceError::BadUrl)
    }
}

pub(super) fn check_card(agent_card: &Value) -> Result<(), WorkspaceError> {
    if agent_card.to_string().len() > CARD_LEN_MAX {
        return Err(WorkspaceError::bad("agent_card", format!("is longer than {CARD_LEN_MAX} bytes")));
    }
    Ok(())
}

pub(super) fn check_text(field: &'static str, text: &str, len_max: usize) -> Result<(), WorkspaceError> {
    if field == "name" && text.is_empty() {
        return Err(WorkspaceError::bad(field, "is empty"));
    }
    if text.len() > len_max {
        return Err(WorkspaceError::bad(field, format!("is longer than {len_max} bytes")));
    }
    if text.chars().any(char::is_control) {
        return Err(WorkspaceError::bad(field, "has a control character"));
    }
    Ok(())
}
