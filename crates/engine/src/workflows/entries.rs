//! What of workflows and their runs is in the audit trail: what somebody did to them. What a run does by itself is in its
//! timeline, and its jobs have entries of their own.

use super::Workflows;
use reveille_core::audit::{Action, Draft};
use reveille_core::flow::{RunHead, RunOrigin};
use reveille_core::id::{TenantId, WorkflowId};
use reveille_core::identity::Identity;

impl Workflows {
    pub(super) fn about_workflow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        action: Action,
        by: &Identity,
    ) -> Draft {
        self.audit.act(tenant, action, by).about("workflow", id.as_str())
    }

    pub(super) fn about_run(&self, head: &RunHead, action: Action, by: &Identity) -> Draft {
        self.about_workflow(&head.tenant, &head.workflow, action, by).about("run", head.id.as_str())
    }

    /// A run that somebody started; nothing for one that follows from another.
    pub(super) fn about_start(&self, head: &RunHead) -> Option<Draft> {
        let of = match &head.origin {
            RunOrigin::Started => "",
            RunOrigin::Rerun { of, .. } => of.as_str(),
            RunOrigin::Step { .. } | RunOrigin::Rollback { .. } | RunOrigin::Client => return None,
        };
        let by = head.started_by.as_ref().map(|key| self.jobs.identity_of(key)).unwrap_or_default();
        let entry = self.about_run(head, Action::RunStarted, &by);
        Some(entry.about("version", &head.version.to_string()).about("rerun_of", of))
    }
}
