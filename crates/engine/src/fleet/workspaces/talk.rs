//! What goes through us without staying: messages between workspaces, and words to whoever watches.

use super::Workspaces;
use crate::observe::events::What;
use reveille_a2a::{A2aError, A2aReply, A2aRequest, message};
use reveille_core::id::WorkspaceId;
use reveille_core::presence::workspace::Workspace;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How long whoever sends a message through us waits for the agent.
const A2A_PATIENCE: Duration = Duration::from_mins(5);

impl Workspaces {
    /// Takes an A2A message to a workspace and brings back what it answers.
    pub async fn pass_on(
        &self,
        workspace: &Workspace,
        from: Option<&WorkspaceId>,
        body: &[u8],
    ) -> Result<A2aReply, A2aError> {
        let url = workspace.url.clone();
        let url = url.ok_or_else(|| A2aError::Unreachable("the workspace has no address".to_owned()))?;
        let body = message::wrap(body, || self.runtime.new_uuid()).map_err(A2aError::Refused)?;
        let headers = from.map(|id| ("x-workspace-id".into(), id.to_string())).into_iter().collect();
        self.a2a.post(A2aRequest { url, body, headers, patience: A2A_PATIENCE }, Box::new(|| {})).await
    }

    /// A message from a workspace to whoever watches.
    pub fn notify(&self, workspace: &Workspace, payload: Value) {
        self.publish_workspace_event(workspace, "AGENT_MESSAGE", payload);
    }

    /// What a workspace says it has done.
    pub fn log_activity(&self, workspace: &Workspace, payload: Value) {
        self.publish_workspace_event(workspace, "ACTIVITY_LOGGED", payload);
    }

    /// Tells subscribers something that is not kept.
    pub(crate) fn publish_workspace_event(&self, workspace: &Workspace, name: &'static str, payload: Value) {
        let what =
            What::Workspace { id: workspace.id.clone(), name: name.into(), payload: Arc::new(payload) };
        self.observe.events().publish(self.runtime.now(), &workspace.tenant, what);
    }
}
