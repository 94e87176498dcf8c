//! Who may speak for a workspace: whoever has its token, or a key of its tenant. One function decides.

use super::{WorkspaceError, Workspaces};
use crate::secret::{SECRET_LEN_MAX, base64url, hash};
use reveille_core::audit::Action;
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::identity::Identity;
use reveille_core::presence::workspace::Workspace;
use std::sync::Arc;

/// What somebody shows who would speak for a workspace.
#[derive(Clone)]
pub enum WorkspaceClaim {
    /// A key of this tenant.
    Key(TenantId),
    /// No key, where none is needed: they are this tenant. A workspace that has a token is not theirs to speak for.
    Open(TenantId),
    /// A secret that is no key.
    Token(String),
    Nothing,
}

/// What they would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceAct {
    Register,
    /// Beat, change its card, look for its peers.
    Speak,
}

impl Workspaces {
    /// Whose token this is. A retired workspace's opens nothing.
    pub fn workspace_of_token(&self, token: &str) -> Option<Arc<Workspace>> {
        if token.len() > SECRET_LEN_MAX {
            return None;
        }
        self.index.by_token(&hash(token)).filter(|workspace| !workspace.is_removed())
    }

    /// Whether somebody with this credential may speak for a workspace; every way to one asks here. Knowing its id is
    /// not enough, except to register for the first time where a setting says so. A foreign tenant's workspace does not
    /// exist, and of a retired one a stranger learns that it is, and no more.
    pub fn admit(
        &self,
        workspace: &Workspace,
        claim: &WorkspaceClaim,
        act: WorkspaceAct,
    ) -> Result<(), WorkspaceError> {
        let has_token = workspace.token_hash.is_some();
        let may_begin = act == WorkspaceAct::Register && self.runtime.settings().open_registration;
        match claim {
            WorkspaceClaim::Key(tenant) if *tenant != workspace.tenant => Err(WorkspaceError::NotFound),
            WorkspaceClaim::Key(_) => Ok(()),
            WorkspaceClaim::Token(token) if workspace.token_hash == Some(hash(token)) => Ok(()),
            _ if workspace.is_removed() => Err(WorkspaceError::Removed),
            WorkspaceClaim::Open(tenant) if *tenant == workspace.tenant && !has_token => Ok(()),
            _ if may_begin && !has_token => Ok(()),
            WorkspaceClaim::Token(_) => Err(WorkspaceError::TokenWrong),
            WorkspaceClaim::Open(_) | WorkspaceClaim::Nothing => Err(WorkspaceError::TokenMissing),
        }
    }

    /// A workspace of this tenant that is not retired.
    pub fn living(&self, tenant: &TenantId, id: &WorkspaceId) -> Result<Arc<Workspace>, WorkspaceError> {
        let found = self.workspace(tenant, id).ok_or(WorkspaceError::NotFound)?;
        if found.is_removed() { Err(WorkspaceError::Removed) } else { Ok(found) }
    }

    /// Gives a workspace a new token in place of the one it lost.
    pub async fn new_workspace_token(
        &self,
        tenant: &TenantId,
        id: &WorkspaceId,
        by: impl Into<Identity>,
    ) -> Result<String, WorkspaceError> {
        let (workspaces, tenant, id, by) = (self.clone(), tenant.clone(), id.clone(), by.into());
        self.runtime
            .run_detached(async move {
                let _lock = workspaces.index.lock(&id).await;
                let known = workspaces.living(&tenant, &id)?;
                let token = workspaces.new_token();
                let token_hash = Some(hash(&token));
                let changed =
                    Workspace { token_hash, updated_at: workspaces.runtime.now(), ..(*known).clone() };
                workspaces.keep_workspace(changed, None).await?;
                workspaces.record_act(&known, Action::WorkspaceTokenRotated, &by).await;
                Ok(token)
            })
            .await
    }

    /// 32 random bytes, as the reference's tokens are written.
    pub(super) fn new_token(&self) -> String {
        let mut bytes = Vec::with_capacity(32);
        for _ in 0..4 {
            bytes.extend_from_slice(&self.runtime.random().to_be_bytes());
        }
        base64url(&bytes)
    }
}
