//! Rollbacks: what a run has done is undone, last step first, by a run of its own.
//!
//! The run to be undone owes its rollback until that is stored, under an id that is known beforehand; so it is
//! made once, however often it is tried. From there it is a run like any other: it goes through its list, one
//! after the other, and a crash anywhere finds it where it stands.

use super::{Asked, Loaded};
use crate::Engine;
use crate::drive::STORE_PAUSE;
use reveille_core::digest::sha256_hex;
use reveille_core::flow::{Compensation, Document, Event, Flow, Head, Node, NodeKey, Origin};
use reveille_core::id::{JobId, RunId, Topic};
use reveille_core::request::{Needs, OfRun, Priority, Request, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The one step of a rollback.
const STEP: &str = "undo";

/// What undoes one step, as it stands in a rollback's list.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Undoing {
    node: NodeKey,
    #[serde(default)]
    job: Option<JobId>,
    topic: String,
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
}

/// Every rollback goes by this: through the list, one at a time, and on even if one fails.
pub(super) fn flow() -> Arc<Flow> {
    static FLOW: LazyLock<Arc<Flow>> = LazyLock::new(|| {
        let step = json!({"topic": "job.undo", "for_each": "${input.undo}", "max_parallel": 1, "input": "${item}", "retry": {"max_retries": 3}});
        let document = json!({"id": "rollback", "name": "rollback", "steps": {STEP: step}});
        let document: Document = serde_json::from_value(document)
            .unwrap_or_else(|error| unreachable!("it is a document: {error}"));
        let mut flow =
            Flow::read(&document, 1).unwrap_or_else(|problem| unreachable!("it is a workflow: {problem}"));
        for step in flow.steps.values_mut() {
            if let Some(for_each) = &mut step.for_each {
                for_each.is_tolerant = true;
            }
        }
        Arc::new(flow)
    });
    FLOW.clone()
}

/// The run that undoes another.
pub fn rollback_id(of: &RunId) -> RunId {
    RunId::known(&sha256_hex(format!("rollback:{of}").as_bytes())[..32])
}

impl Engine {
    /// Makes the run that undoes this one, and notes that it is there.
    pub(super) async fn undo(self, id: RunId) {
        loop {
            match self.try_undo(&id).await {
                Ok(()) => return self.drive_run_on(&id, &Event::RollbackMade).await,
                Err(error) => self.trouble.store.tell(self.now(), "a rollback is still owed", &id, &error),
            }
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    async fn try_undo(&self, id: &RunId) -> Result<(), super::StartRunError> {
        let Some(Loaded { run, flow }) = self.load_run(id).await? else { return Ok(()) };
        let undo: Vec<Undoing> =
            run.compensations.iter().rev().filter_map(|undo| undoing(&flow, undo)).collect();
        let asked = Asked {
            tenant: run.head.tenant.clone(),
            workflow: run.head.workflow.clone(),
            input: json!({"of": id, "why": run.head.error, "undo": undo}),
            idempotency_key: None,
            started_by: run.head.started_by.clone(),
            actor: run.head.actor.clone(),
        };
        let origin = Origin::Rollback { of: id.clone() };
        let rollback = self.new_run(rollback_id(id), &asked, &self::flow(), origin)?;
        self.begin_run(rollback, self::flow(), false).await.map(drop)
    }
}

fn undoing(flow: &Flow, undo: &Compensation) -> Option<Undoing> {
    let step = flow.steps.get(&undo.node.step)?;
    let how = step.compensation.as_ref()?;
    Some(Undoing {
        node: undo.node.clone(),
        job: undo.job.clone(),
        topic: how.topic.clone(),
        input: undo.input.clone(),
        labels: how
            .labels
            .iter()
            .chain(&how.meta.labels)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        env: how.env.clone(),
        capability: how.meta.capability.clone(),
        risk_tags: how.meta.risk_tags.clone(),
        requires: how.meta.requires.clone(),
        timeout_ms: how.timeout_ms.unwrap_or_default(),
        step_index: i32::try_from(step.index).unwrap_or(i32::MAX),
        problem: undo.problem.clone(),
    })
}

/// The job that undoes one step.
pub(super) fn request(
    head: &Head,
    of: &RunId,
    key: &NodeKey,
    node: &Node,
    id: &JobId,
) -> Result<Request, String> {
    let item = node.input.as_deref().cloned().unwrap_or_default();
    let undo: Undoing =
        serde_json::from_value(item).map_err(|error| format!("saga_unmarshal_failed: {error}"))?;
    if !undo.problem.is_empty() {
        return Err(format!("its input cannot be worked out: {}", undo.problem));
    }
    let topic = Topic::parse(&undo.topic).map_err(|problem| problem.to_string())?;
    let mut request = super::send::plain(head, id, topic);
    request.priority = Priority::Critical;
    request.labels = undo.labels;
    request.env = undo.env;
    for name in ["saga_compensation", "is_compensation"] {
        request.labels.insert(name.to_owned(), "true".to_owned());
    }
    request.labels.insert("saga_workflow_id".to_owned(), head.workflow.to_string());
    request.labels.insert("run_id".to_owned(), of.to_string());
    request.env.insert("saga_compensation".to_owned(), "true".to_owned());
    request.env.insert("saga_workflow_id".to_owned(), head.workflow.to_string());
    request.place.step_index = undo.step_index;
    request.place.parent_job_id = undo.job.as_ref().map(ToString::to_string).unwrap_or_default();
    request.budget.deadline_ms = undo.timeout_ms;
    request.needs = Needs {
        capability: undo.capability,
        risk_tags: undo.risk_tags,
        requires: undo.requires,
        ..Needs::default()
    };
    // A step that was no job has a name of its own all the same: two runs of a workflow are undone twice.
    let job = undo.job.map_or_else(|| format!("{of}:{}", undo.node), |job| job.to_string());
    let hashed =
        format!("{}|{job}|{}|{}|{}", head.workflow, undo.topic, request.needs.capability, undo.step_index);
    let attempt = if node.attempt > 1 { format!("|{}", node.attempt) } else { String::new() };
    request.idempotency_key =
        Some(format!("saga:{}", &sha256_hex(format!("{hashed}{attempt}").as_bytes())[..32]));
    let role = Role::Compensation;
    request.place.of_run =
        Some(Box::new(OfRun { run: head.id.clone(), node: key.clone(), attempt: node.attempt, role }));
    Ok(request)
}
