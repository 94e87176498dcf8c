//! Rollbacks: what a run has done is undone, last step first, by a run of its own.
//!
//! The run to be undone owes its rollback until that is stored, under an id that is known beforehand; so it is
//! made once, however often it is tried. From there it is a run like any other: it goes through its list, one
//! after the other unless it was told otherwise, and a crash anywhere finds it where it stands.

use super::{Loaded, StartRunError, Started};
use crate::Engine;
use crate::drive::STORE_PAUSE;
use reveille_core::digest::sha256_hex;
use reveille_core::flow::{Compensation, Document, Event, Flow, Head, Node, NodeKey, Origin, Run};
use reveille_core::id::{JobId, RunId, Topic};
use reveille_core::request::{Needs, OfRun, Place, Priority, Request, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The one step of a rollback.
const STEP: &str = "undo";
/// A client's compensation with this label, set to `true`, need not wait for others that have it too.
const PARALLEL: &str = "saga_parallel";

/// The two ways through a list, as versions of what every rollback goes by.
const IN_ORDER: u32 = 1;
const AT_ONCE: u32 = 2;

/// What undoes one step, as it stands in a rollback's list.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Undoing {
    node: NodeKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<JobId>,
    topic: String,
    #[serde(default)]
    input: Json,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    capability: String,
    #[serde(default)]
    risk_tags: Vec<String>,
    #[serde(default)]
    requires: Vec<String>,
    #[serde(default)]
    timeout_ms: i64,
    #[serde(default)]
    step_index: i32,
    #[serde(default)]
    problem: String,
    /// What undoes a client's job says all of this by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<Box<Request>>,
}

/// What a rollback goes by: through the list, and on even if one fails.
pub(super) fn flow(version: u32) -> Arc<Flow> {
    static IN_TURN: LazyLock<Arc<Flow>> = LazyLock::new(|| read(IN_ORDER, &json!(1)));
    static TOGETHER: LazyLock<Arc<Flow>> = LazyLock::new(|| read(AT_ONCE, &Json::Null));
    if version == AT_ONCE { TOGETHER.clone() } else { IN_TURN.clone() }
}

fn read(version: u32, parallel_max: &Json) -> Arc<Flow> {
    let step = json!({"topic": "job.undo", "for_each": "${input.undo}", "max_parallel": parallel_max, "input": "${item}", "retry": {"max_retries": 3}});
    let document = json!({"id": "rollback", "name": "rollback", "steps": {STEP: step}});
    let document: Document =
        serde_json::from_value(document).unwrap_or_else(|error| unreachable!("it is a document: {error}"));
    let mut flow =
        Flow::read(&document, version).unwrap_or_else(|problem| unreachable!("it is a workflow: {problem}"));
    for step in flow.steps.values_mut() {
        if let Some(for_each) = &mut step.for_each {
            for_each.is_tolerant = true;
        }
    }
    Arc::new(flow)
}

/// The run that undoes another.
pub fn rollback_id(of: &RunId) -> RunId {
    named(&format!("rollback:{of}"))
}

/// The run that undoes this one, or what was last to be undone of it: a client's workflow may fail more than once.
pub fn rollback_of(head: &Head) -> RunId {
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

impl Engine {
    /// Makes the run that undoes this one, and notes that it is there.
    pub(super) async fn undo(self, id: RunId) {
        loop {
            match self.try_undo(&id).await {
                Ok(None) => return,
                Ok(Some(upto)) => return self.drive_run_on(&id, &Event::RollbackMade { upto }).await,
                Err(error) => self.trouble.store.tell(self.now(), "a rollback is still owed", &id, &error),
            }
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    /// Says up to which compensation the rollback goes that is there now; nothing if none is owed.
    async fn try_undo(&self, id: &RunId) -> Result<Option<u32>, StartRunError> {
        let Some(Loaded { run, flow }) = self.load_run(id).await? else { return Ok(None) };
        if !run.head.owes_rollback {
            return Ok(None);
        }
        let undo: Vec<Undoing> =
            run.to_undo().into_iter().rev().filter_map(|undo| undoing(&flow, undo)).collect();
        self.begin_rollback(rollback_of(&run.head), &run.head, undo, flow.undoes_at_once).await?;
        Ok(Some(run.head.stack.as_ref().map_or(run.head.compensations, |stack| stack.undo_to)))
    }

    /// Begins a run that goes through the list, unless it is there already. How long the list is and how much
    /// is in it has been limited when it was recorded.
    pub(super) async fn begin_rollback(
        &self,
        id: RunId,
        of: &Head,
        undo: Vec<Undoing>,
        is_parallel: bool,
    ) -> Result<(), StartRunError> {
        let together = |undo: &Undoing| {
            let labels = undo.request.as_ref().map(|request| &request.labels);
            labels.and_then(|labels| labels.get(PARALLEL)).is_some_and(|said| said == "true")
        };
        let is_parallel = is_parallel || undo.iter().all(together);
        let flow = flow(if is_parallel { AT_ONCE } else { IN_ORDER });
        let head = Head {
            origin: Origin::Rollback { of: of.id.clone() },
            started_by: of.started_by.clone(),
            actor: of.actor.clone(),
            memory_id: of.memory_id.clone(),
            ..Head::new(id, of.tenant.clone(), of.workflow.clone(), flow.version, self.now())
        };
        let input = json!({"of": of.id, "why": of.error, "undo": undo});
        if let Started::New(_) = self.begin_run(Run::new(head, Arc::new(input)), flow, false).await? {
            self.metrics.saga.triggered();
        }
        Ok(())
    }
}

/// What undoes a step of ours, as the workflow says; or a client's job, as the client said.
pub(super) fn undoing(flow: &Flow, undo: &Compensation) -> Option<Undoing> {
    let mut undoing = Undoing {
        node: undo.node.clone(),
        job: undo.job.clone(),
        topic: String::new(),
        input: undo.input.clone(),
        labels: BTreeMap::new(),
        env: BTreeMap::new(),
        capability: String::new(),
        risk_tags: Vec::new(),
        requires: Vec::new(),
        timeout_ms: 0,
        step_index: 0,
        problem: undo.problem.clone(),
        request: None,
    };
    if let Some(client) = &undo.client {
        undoing.topic = client.request.topic.to_string();
        undoing.request = Some(Box::new(client.request.clone()));
        return Some(undoing);
    }
    let step = flow.steps.get(&undo.node.step)?;
    let how = step.compensation.as_ref()?;
    undoing.topic.clone_from(&how.topic);
    undoing.labels.extend(how.labels.clone());
    undoing.labels.extend(how.meta.labels.clone());
    undoing.env.clone_from(&how.env);
    undoing.capability.clone_from(&how.meta.capability);
    undoing.risk_tags.clone_from(&how.meta.risk_tags);
    undoing.requires.clone_from(&how.meta.requires);
    undoing.timeout_ms = how.timeout_ms.unwrap_or_default();
    undoing.step_index = i32::try_from(step.index).unwrap_or(i32::MAX);
    Some(undoing)
}

/// Why a compensation does not become a job.
#[derive(Debug)]
pub(super) enum NotUndone {
    Unreadable(String),
    NoInput(String),
}

/// The job that undoes one step, with its input if that comes along.
pub(super) fn request(
    head: &Head,
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
    let (mut request, input) = match undo.request {
        Some(request) => (Request { id: id.clone(), ..*request }, None),
        None => own(head, of, id, undo)?,
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
fn own(head: &Head, of: &RunId, id: &JobId, undo: Undoing) -> Result<(Request, Option<Json>), NotUndone> {
    let topic = Topic::parse(&undo.topic).map_err(|problem| NotUndone::Unreadable(problem.to_string()))?;
    let mut request = super::send::plain(head, id, topic);
    request.labels = undo.labels;
    request.env = undo.env;
    request.place.step_index = undo.step_index;
    // A step that was no job has a name of its own all the same: two runs of a workflow are undone twice.
    request.place.parent_job_id =
        undo.job.map_or_else(|| format!("{of}:{}", undo.node), |job| job.to_string());
    request.budget.deadline_ms = undo.timeout_ms;
    request.needs = Needs {
        capability: undo.capability,
        risk_tags: undo.risk_tags,
        requires: undo.requires,
        ..Needs::default()
    };
    Ok((request, Some(undo.input)))
}
