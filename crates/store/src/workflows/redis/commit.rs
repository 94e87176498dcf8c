//! What `commit.lua` is told of a change, and what it answers.

use super::{RedisWorkflows, written};
use crate::workflows::{RunCommit, RunStep};
use crate::{StoreError, key_part};
use reveille_core::flow::LINES_MAX;
use reveille_core::id::RunId;

impl RedisWorkflows {
    pub(super) async fn commit_step(&self, step: &RunStep) -> Result<RunCommit, StoreError> {
        let head = &step.change.head;
        let mut script = self.scripts.commit.prepare_invoke();
        script.key(self.key(&format!("wf:run:{}", head.id)));
        script.key(self.key(&format!("wf:run:timeline:{}", head.id)));
        script.key(self.timers()).key(self.key("wf:runs:seq"));

        // The arguments in the order in which the script names them.
        let flag = |is: bool| if is { "1" } else { "0" };
        script
            .arg(self.store.prefix())
            .arg(head.id.as_str())
            .arg(optional(step.expects))
            .arg(self.store.token());
        script.arg(written(head)?).arg(head.revision);
        script.arg(head.state.as_str()).arg(flag(!head.state.is_terminal())).arg(flag(head.is_live()));
        script.arg(head.updated_at.0).arg(optional(head.due.map(|due| due.0))).arg(&head.actor.team);
        script.arg(key_part(head.tenant.as_str())).arg(head.workflow.as_str());
        script.arg(optional(head.origin.goes_by_a_version().then_some(head.version)));
        script.arg(head.idempotency_key.as_deref().unwrap_or_default());
        script.arg(optional(step.runs_max)).arg(LINES_MAX);
        let parts = step.parts();
        script.arg(parts.len());
        for (name, body) in &parts {
            script.arg(name).arg(flag(body.is_some())).arg(body.as_deref().unwrap_or_default());
        }
        script.arg(step.change.timeline.len());
        for line in &step.change.timeline {
            script.arg(written(line)?);
        }
        let reply: Vec<String> = self.link.run_surely(&script).await?;
        match reply.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["done"] => Ok(RunCommit::Done),
            ["conflict"] => Ok(RunCommit::Conflict),
            ["no room"] => Ok(RunCommit::QuotaExceeded),
            ["duplicate", id] => Ok(RunCommit::Duplicate(RunId::known(id))),
            _ => Err(StoreError::Corrupt(format!("Redis answered a change of a run with {reply:?}"))),
        }
    }
}

fn optional(number: Option<impl ToString>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}
