//! Who may speak for a workspace: whoever has its token, or a key of its tenant.

use super::{WorkspaceError, Workspaces};
use crate::secret::{SECRET_LEN_MAX, base64url, hash};
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::presence::workspace::Workspace;
use std::sync::Arc;

impl Workspaces {
    /// Whose token this is.
    pub fn workspace_of_token(&self, token: &str) -> Option<Arc<Workspace>> {
        if token.len() > SECRET_LEN_MAX {
            return None;
        }
        self.index.by_token(&hash(token))
    }

    /// Whether somebody with this credential may speak for a workspace. A foreign tenant's workspace does
    /// not exist.
    pub fn may_speak_for(
        &self,
        workspace: &Workspace,
        tenant: Option<&TenantId>,
        token: Option<&str>,
    ) -> Result<(), WorkspaceError> {
        if let Some(token) = token
            && workspace.token_hash == Some(hash(token))
        {
            return Ok(());
        }
        match tenant {
            Some(tenant) if *tenant != workspace.tenant => Err(WorkspaceError::NotFound),
            Some(_) => Ok(()),
            None if workspace.token_hash.is_none() => Ok(()),
            None if token.is_some() => Err(WorkspaceError::TokenWrong),
            None => Err(WorkspaceError::TokenMissing),
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
    ) -> Result<String, WorkspaceError> {
        let (workspaces, tenant, id) = (self.clone(), tenant.clone(), id.clone());
        self.runtime
            .run_detached(async move {
                let _lock = workspaces.index.lock(&id).await;
                let known = workspaces.living(&tenant, &id)?;
                let token = workspaces.new_token();
                let token_hash = Some(hash(&token));
                let changed =
                    Workspace { token_hash, updated_at: workspaces.runtime.now(), ..(*known).clone() };
                workspaces.keep_workspace(changed, None).await?;
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
