//! The arguments of `commit.lua` for a change, and its answer.

use super::scripts::CommitRun;
use super::{RedisWorkflows, written};
use crate::redis::script::{ScriptCall, call};
use crate::workflows::{RunCommit, RunStep};
use crate::{StoreError, key_part};
use reveille_core::flow::LINES_MAX;
use reveille_core::id::RunId;

impl RedisWorkflows {
    pub(super) async fn commit_step(&self, step: &RunStep) -> Result<RunCommit, StoreError> {
        let head = &step.change.head;
        let call = call!(CommitRun {
            run: self.key(&format!("wf:run:{}", head.id)),
            timeline: self.key(&format!("wf:run:timeline:{}", head.id)),
            timers: self.timers(),
            run_seq: self.key("wf:runs:seq"),
            prefix: &self.store.keys().prefix,
            id: head.id.as_str(),
            expects: step.expects,
            token: self.store.token(),
            head: written(head)?,
            revision: head.revision,
            state: head.state.as_str(),
            open: !head.state.is_terminal(),
            live: head.is_live(),
            updated: head.updated_at.0,
            due: head.due.map(|due| due.0),
            team: &head.actor.team,
            tenant: key_part(head.tenant.as_str()),
            workflow: head.workflow.as_str(),
            version: head.origin.goes_by_a_version().then_some(head.version),
            idempotency: head.idempotency_key.as_deref(),
            runs_max: step.runs_max,
            lines_max: LINES_MAX,
        });
        let mut call = call.of(&self.scripts);
        let parts = step.parts();
        call.more(parts.len());
        for (name, body) in &parts {
            call.more(name).more(body.is_some()).more(body.as_deref());
        }
        call.more(step.change.timeline.len());
        for line in &step.change.timeline {
            call.more(written(line)?);
        }
        let reply: Vec<String> = self.link.run_surely(&call).await?;
        match reply.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["done"] => Ok(RunCommit::Done),
            ["conflict"] => Ok(RunCommit::Conflict),
            ["no room"] => Ok(RunCommit::QuotaExceeded),
            ["duplicate", id] => Ok(RunCommit::Duplicate(RunId::known(id))),
            _ => Err(StoreError::Corrupt(format!("Redis answered a change of a run with {reply:?}"))),
        }
    }
}
