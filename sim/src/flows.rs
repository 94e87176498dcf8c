//! Workflows as one life of a server sees them: in the same file as its jobs, and as slow, failing and deadly as
//! that. What is kept outlives the server.

pub mod history;
pub mod reference;
pub mod script;
pub mod starters;
pub mod workflows;

use crate::backend::BackendPort;
use crate::breakage::Breakage;
use crate::outages::Backend;
use crate::server::Life;
use crate::world::World;
use reveille_core::flow::{
    Node, NodeDue, NodeKey, Run, RunChange, RunHead, RunOrigin, StepState, TimelineEntry,
};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use reveille_store::workflows::{MemoryWorkflows, RunCommit, RunQuery, RunStep, Saved, WorkflowStore};
use reveille_store::{Page, StoreError};
use std::sync::Arc;

pub struct SimFlows {
    world: Arc<World>,
    life: Life,
    port: BackendPort,
    flows: MemoryWorkflows,
}

impl SimFlows {
    pub fn new(world: Arc<World>, life: Life) -> Self {
        let port = BackendPort::new(world.clone(), life.clone(), Backend::Store);
        let flows = world.flows.clone();
        Self { world, life, port, flows }
    }

    async fn try_commit(&self, step: RunStep) -> Result<RunCommit, StoreError> {
        let world = &self.world;
        let broken = world.breakage.filter(|_| world.rng.percent(50));
        let is_rollback = matches!(step.change.head.origin, RunOrigin::Rollback { .. });
        let is_new = step.begins_with.is_some();
        match broken {
            Some(Breakage::ForgetRollback) if is_rollback && is_new => return Ok(RunCommit::Done),
            Some(Breakage::DropOutcome) if !is_new && settles(&step.change) => return Ok(RunCommit::Done),
            Some(Breakage::StartTwice) if is_new => return self.apply(without_key(&step)).await,
            Some(Breakage::UndoTwice) if is_rollback && is_new => {
                let first = |undo: &mut Vec<_>| undo.extend(undo.first().cloned());
                self.apply(relisted(&step, first)).await?;
                return Err(unheard());
            }
            Some(Breakage::UndoInOrder) if is_rollback && is_new => {
                self.apply(relisted(&step, |undo| undo.reverse())).await?;
                return Err(unheard());
            }
            Some(Breakage::FireTwice) => {
                if let Some((key, before)) = self.fires(&step).await? {
                    self.apply(step.clone()).await?;
                    self.set_back(&step, key, before).await?;
                    return Err(unheard());
                }
            }
            _ => {}
        }
        self.apply(step).await
    }

    /// Commits for good, and the history records it.
    async fn apply(&self, step: RunStep) -> Result<RunCommit, StoreError> {
        let (world, head) = (&self.world, &step.change.head);
        let done = self.flows.commit(step.clone()).await?;
        let words = format!("run {} r{} {}", head.id, head.revision, head.state);
        world.trace.say(format_args!("{} commits {words}: {done:?}", self.life.name()));
        if done == RunCommit::Done {
            let now = world.server(self.life.server).clock.now();
            world.flow_history(|history| history.committed(&step, self.life.number, now, &world.situations));
        }
        Ok(done)
    }

    /// A step whose delay this change ends, as it was before.
    async fn fires(&self, step: &RunStep) -> Result<Option<(NodeKey, Node)>, StoreError> {
        let Some(run) = self.flows.run(&step.change.head.id).await? else { return Ok(None) };
        let waited = step.change.nodes.iter().find_map(|(key, node)| {
            let before = run.nodes.get(key)?;
            let is_over = node.state == StepState::Running && matches!(before.due, Some(NodeDue::Begin(_)));
            is_over.then(|| (key.clone(), before.clone()))
        });
        Ok(waited)
    }

    /// Puts one step back to where its timer has not fired.
    async fn set_back(&self, step: &RunStep, key: NodeKey, before: Node) -> Result<(), StoreError> {
        // Under the same revision, so that nothing but the step itself tells.
        let head = RunHead { due: before.due.map(NodeDue::at), ..step.change.head.clone() };
        // What was sent off counts: if the timer fires again, it is another attempt.
        let sent = step.change.nodes.iter().find(|(sent, _)| *sent == key);
        let attempt = sent.map_or(before.attempt, |(_, node)| node.attempt);
        let nodes = vec![(key, Node { attempt, ..before })];
        let change = RunChange { head, nodes, timeline: Vec::new(), ..RunChange::clone(&step.change) };
        self.flows.commit(RunStep::change(&step.change.head, Arc::new(change))).await?;
        Ok(())
    }
}

/// Whether a job's result ends a step.
fn settles(change: &RunChange) -> bool {
    change.nodes.iter().any(|(_, node)| node.state == StepState::Succeeded && node.sent.is_some())
}

fn without_key(step: &RunStep) -> RunStep {
    let head = RunHead { idempotency_key: None, ..step.change.head.clone() };
    RunStep { change: Arc::new(RunChange { head, ..RunChange::clone(&step.change) }), ..step.clone() }
}

/// A rollback with another list.
fn relisted(step: &RunStep, relist: impl Fn(&mut Vec<serde_json::Value>)) -> RunStep {
    let mut step = step.clone();
    let mut change = RunChange::clone(&step.change);
    for (_, items) in &mut change.items {
        relist(Arc::make_mut(items));
    }
    let count = change.items.first().map_or(0, |(_, items)| items.len() as u32);
    let first = change.items.first().and_then(|(_, items)| items.first().cloned());
    for (key, node) in &mut change.nodes {
        match key.round {
            None => node.fan = node.fan.map(|fan| reveille_core::flow::Fan { count, ..fan }),
            Some(_) => node.input = first.clone().map(Arc::new),
        }
    }
    if let Some(run) = step.begins_with.as_mut().map(Arc::make_mut) {
        let mut input = (*run.input).clone();
        if let Some(undo) = input["undo"].as_array_mut() {
            relist(undo);
        }
        run.input = Arc::new(input);
    }
    step.change = Arc::new(change);
    step
}

fn unheard() -> StoreError {
    StoreError::Unavailable("the simulation says so".to_owned())
}

#[async_trait::async_trait]
impl WorkflowStore for SimFlows {
    async fn save(&self, saved: Saved, workflows_max: u32) -> Result<Option<u32>, StoreError> {
        self.port.write_or_wonder("save workflow", self.flows.save(saved, workflows_max)).await
    }

    async fn workflow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        version: Option<u32>,
    ) -> Result<Option<Arc<Saved>>, StoreError> {
        self.port.read("workflow", self.flows.workflow(tenant, id, version)).await
    }

    async fn workflows(
        &self,
        tenant: &TenantId,
        after: Option<&WorkflowId>,
        limit: usize,
    ) -> Result<Vec<Arc<Saved>>, StoreError> {
        self.port.read("workflows", self.flows.workflows(tenant, after, limit)).await
    }

    async fn delete_workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<bool, StoreError> {
        self.port.write("delete workflow", self.flows.delete_workflow(tenant, id)).await
    }

    async fn commit(&self, step: RunStep) -> Result<RunCommit, StoreError> {
        self.port.write_or_wonder("commit of a run", self.try_commit(step)).await
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.port.read("run", self.flows.run(id)).await
    }

    async fn node(&self, id: &RunId, key: &NodeKey) -> Result<Option<Node>, StoreError> {
        self.port.read("step of a run", self.flows.node(id, key)).await
    }

    async fn due(&self, by: Millis, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.port.read("late runs", self.flows.due(by, limit)).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Page<RunHead>, StoreError> {
        self.port.read("runs", self.flows.runs(query)).await
    }

    async fn live(&self, cursor: Option<u64>, _limit: usize) -> Result<Page<RunId>, StoreError> {
        // Small pages, so that there is a second one.
        self.port.read("live runs", self.flows.live(cursor, 2)).await
    }

    async fn timeline(
        &self,
        id: &RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, TimelineEntry)>, StoreError> {
        self.port.read("timeline", self.flows.timeline(id, after, limit)).await
    }

    async fn delete_run(&self, id: &RunId) -> Result<bool, StoreError> {
        self.port.write("delete run", self.flows.delete_run(id)).await
    }

    async fn prune(&self, ended_before: Millis, limit: usize) -> Result<u64, StoreError> {
        self.port.write("prune runs", self.flows.prune(ended_before, limit)).await
    }
}
