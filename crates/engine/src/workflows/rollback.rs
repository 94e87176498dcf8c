//! Rollbacks: what a run has done is undone, last step first, by a run of its own.
//!
//! The run to be undone owes its rollback until that is stored, under an id that is known beforehand; so it is
//! made once, however often it is tried. From there it is a run like any other: it goes through its list, one
//! after the other unless it was told otherwise, and a crash anywhere finds it where it stands.

use super::{Loaded, RunQuota, StartRunError, Started, Workflows};
use crate::observe::Trouble;
use reveille_core::digest::sha256_hex;
use reveille_core::flow::{
    Flow, Node, NodeKey, Run, RunEvent, RunHead, RunOrigin, UNDO_AT_ONCE, UNDO_IN_ORDER, UNDO_STEP, UndoJob,
    Undoing, UndoneBy, rollback_flow,
};
use reveille_core::id::{JobId, RunId, StepId};
use reveille_core::request::{Needs, OfRun, Place, Priority, Request, Role};
use reveille_core::time::Millis;
use reveille_store::StoreError;
use serde_json::{Value as Json, json};
use std::sync::{Arc, LazyLock};

/// A client's compensation with this label, set to `true`, need not wait for others that have it too.
const PARALLEL: &str = "saga_parallel";

/// What every rollback goes by, in its two versions.
pub(super) fn flow(version: u32) -> Arc<Flow> {
    static IN_ORDER: LazyLock<Arc<Flow>> = LazyLock::new(|| Arc::new(rollback_flow(UNDO_IN_ORDER)));
    static AT_ONCE: LazyLock<Arc<Flow>> = LazyLock::new(|| Arc::new(rollback_flow(UNDO_AT_ONCE)));
    if version == UNDO_AT_ONCE { AT_ONCE.clone() } else { IN_ORDER.clone() }
}

/// The run that undoes another.
pub fn rollback_id(of: &RunId) -> RunId {
    named(&format!("rollback:{of}"))
}

/// The run that undoes this one, or what was last to be undone of it: a client's workflow may fail more than once.
pub fn rollback_of(head: &RunHead) -> RunId {
    match &head.stack {
        Some(stack) => named(&format!("rollback:{}:{}", head.id, stack.undo_to)),
        None => rollback_id(&head.id),
    }
}

/// The run that undoes one job of a client, which had not succeeded yet when its workflow failed.
pub(super) fn rollback_of_one(stack: &RunId, job: &JobId) -> RunId {
    named(&format!("rollback:{stack}:job:{job}"))
}

fn named(name: &str) -> RunId {
    RunId::known(&sha256_hex(name.as_bytes())[..32])
}

impl Workflows {
    /// The run that undoes this one, if it is there by now.
    pub async fn rollback_made(&self, of: &RunHead) -> Result<Option<RunId>, StoreError> {
        if of.compensations == 0 {
            return Ok(None);
        }
        let id = rollback_of(of);
        // Its one step is there from its first commit on, and less to read than the whole of it.
        let step = NodeKey::of(&StepId::known(UNDO_STEP));
        Ok(self.store.node(&id, &step).await?.map(|_| id))
    }

    /// Makes the run that undoes this one, and notes that it is there.
    pub(super) async fn undo(self, id: RunId) {
        let words = "rollback not started; retrying";
        let made = self.observe.insist(Trouble::Store, words, &id, || self.try_undo(&id)).await;
        if let Some(upto) = made {
            self.drive_run_on(&id, &RunEvent::RollbackMade { upto }).await;
        }
    }

    /// Says up to which compensation the rollback goes that is there now; nothing if none is owed.
    async fn try_undo(&self, id: &RunId) -> Result<Option<u32>, StartRunError> {
        let Some(Loaded { run, flow }) = self.load_run(id).await? else { return Ok(None) };
        if !run.head.owes_rollback {
            return Ok(None);
        }
        let undo: Vec<Undoing> =
            run.to_undo().into_iter().rev().filter_map(|undo| Undoing::of(&flow, undo)).collect();
        self.begin_rollback(rollback_of(&run.head), &run.head, undo, flow.undoes_at_once).await?;
        Ok(Some(run.head.stack.as_ref().map_or(run.head.compensations, |stack| stack.undo_to)))
    }

    /// Begins a run that goes through the list, unless it is there already. How long the list is and how much
    /// is in it has been limited when it was recorded.
    pub(super) async fn begin_rollback(
        &self,
        id: RunId,
        of: &RunHead,
        undo: Vec<Undoing>,
        is_parallel: bool,
    ) -> Result<(), StartRunError> {
        let together = |undo: &Undoing| match &undo.by {
            UndoneBy::Client(request) => request.labels.get(PARALLEL).is_some_and(|said| said == "true"),
            UndoneBy::Step { .. } => false,
        };
        let is_parallel = is_parallel || undo.iter().all(together);
        let flow = flow(if is_parallel { UNDO_AT_ONCE } else { UNDO_IN_ORDER });
        let head = head(id, of, flow.version, self.runtime.now());
        let input = json!({"of": of.id, "why": of.error, "undo": undo});
        if let Started::New(_) =
            self.begin_run(Run::new(head, Arc::new(input)), flow, RunQuota::Exempt).await?
        {
            self.observe.metrics().saga().triggered();
        }
        Ok(())
    }
}

/// The head of a rollback: it acts for whom the run acted that it undoes.
pub(super) fn head(id: RunId, of: &RunHead, version: u32, now: Millis) -> RunHead {
    RunHead {
        origin: RunOrigin::Rollback { of: of.id.clone() },
        started_by: of.started_by.clone(),
        actor: of.actor.clone(),
        memory_id: of.memory_id.clone(),
        ..RunHead::new(id, of.tenant.clone(), of.workflow.clone(), version, now)
    }
}

/// Why a compensation does not become a job.
#[derive(Debug)]
pub(super) enum NotUndone {
    Unreadable(String),
    NoInput(String),
}

/// The job that undoes one step, with its input if that comes along.
pub(super) fn request(
    head: &RunHead,
    of: &RunId,
    key: &NodeKey,
    node: &Node,
    id: &JobId,
) -> Result<(Request, Option<Json>), NotUndone> {
    let item = node.input.as_deref().cloned().unwrap_or_default();
    let undo: Undoing =
        serde_json::from_value(item).map_err(|error| NotUndone::Unreadable(error.to_string()))?;
    if !undo.problem.is_empty() {
        return Err(NotUndone::NoInput(undo.problem));
    }
    let (mut request, input) = match undo.by {
        UndoneBy::Client(request) => (Request { id: id.clone(), ..*request }, None),
        UndoneBy::Step { index, job } => {
            // A step that was no job has a name of its own all the same: two runs of a workflow are undone twice.
            let undone = undo.job.map_or_else(|| format!("{of}:{}", undo.node), |job| job.to_string());
            (own(head, id, index, *job, undone), Some(undo.input))
        }
    };
    let workflow = request.place.workflow_id.clone();
    request.priority = Priority::Critical;
    for name in ["saga_compensation", "is_compensation"] {
        request.labels.insert(name.to_owned(), "true".to_owned());
    }
    request.labels.insert("saga_workflow_id".to_owned(), workflow.clone());
    request.labels.insert("run_id".to_owned(), of.to_string());
    request.env.insert("saga_compensation".to_owned(), "true".to_owned());
    request.env.insert("saga_workflow_id".to_owned(), workflow.clone());
    // A try that failed has used its key up.
    let attempt = if node.attempt > 1 { format!("|{}", node.attempt) } else { String::new() };
    let said = request.idempotency_key.take().map(|key| format!("{key}{attempt}"));
    request.idempotency_key = Some(said.unwrap_or_else(|| {
        let Place { parent_job_id: job, step_index, .. } = &request.place;
        let (topic, capability) = (&request.topic, &request.needs.capability);
        let hashed = format!("{workflow}|{job}|{topic}|{capability}|{step_index}{attempt}");
        format!("saga:{}", &sha256_hex(hashed.as_bytes())[..32])
    }));
    let role = Role::Compensation;
    request.place.of_run =
        Some(Box::new(OfRun { run: head.id.clone(), node: key.clone(), attempt: node.attempt, role }));
    Ok((request, input))
}

/// What undoes a step of ours.
fn own(head: &RunHead, id: &JobId, index: u32, job: UndoJob, undone: String) -> Request {
    let mut request = super::send::plain(head, id, job.topic);
    request.labels = job.labels;
    request.labels.extend(job.meta.labels);
    request.env = job.env;
    request.place.step_index = i32::try_from(index).unwrap_or(i32::MAX);
    request.place.parent_job_id = undone;
    request.budget.deadline_ms = job.timeout_ms.unwrap_or_default();
    request.needs = Needs {
        capability: job.meta.capability,
        risk_tags: job.meta.risk_tags,
        requires: job.meta.requires,
        ..Needs::default()
    };
    request
}
