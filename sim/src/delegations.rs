//! Workspaces that delegate: they ask until they are answered, and what they asked for must arrive at
//! the right door under one name.

use crate::a2a::A2aMessage;
use crate::invariants::InvariantResult;
use crate::plan::DelegationPlan;
use crate::world::{World, sleep_ms};
use reveille_core::id::{JobId, WorkspaceId};
use std::collections::BTreeMap;
use std::sync::Arc;

const TRIES_MAX: usize = 12;

/// What is known of every delegation, by its task.
#[derive(Default)]
pub struct DelegationLog {
    plans: BTreeMap<String, DelegationPlan>,
    /// The one id under which each task travels.
    messages: BTreeMap<String, String>,
    acknowledged: BTreeMap<String, JobId>,
    broken: Option<String>,
}

impl DelegationLog {
    pub fn new(plans: &[DelegationPlan]) -> Self {
        let plans = plans.iter().map(|plan| (plan.task.clone(), plan.clone())).collect();
        Self { plans, ..Self::default() }
    }

    pub fn knows(&self, mail: &A2aMessage) -> bool {
        self.messages.contains_key(&mail.task)
    }

    /// An A2A request has arrived. Says whether it has arrived before.
    pub fn arrives(&mut self, mail: &A2aMessage, message: &str, at: &WorkspaceId) -> bool {
        let task = &mail.task;
        let problem = match self.plans.get(task) {
            None => Some(format!("{task:?} was never asked for")),
            Some(plan) if plan.target != *at => {
                Some(format!("{task:?} is for {} and came to {at}", plan.target))
            }
            Some(plan) if plan.source.as_str() != mail.from => {
                Some(format!("{task:?} is from {} and says {}", plan.source, mail.from))
            }
            Some(_) => None,
        };
        let is_again = self.messages.contains_key(task);
        let before = self.messages.entry(task.clone()).or_insert_with(|| message.to_owned()).clone();
        let renamed = (before != message).then(|| format!("{task:?} came as {before} and as {message}"));
        self.broken = self.broken.take().or(problem).or(renamed);
        is_again
    }

    fn taken(&mut self, plan: &DelegationPlan, job: &JobId) -> InvariantResult {
        let first = self.acknowledged.entry(plan.task.clone()).or_insert_with(|| job.clone());
        if first == job { Ok(()) } else { Err(format!("{:?} is both {first} and {job}", plan.task)) }
    }

    pub fn broken(&mut self) -> Option<String> {
        self.broken.take()
    }

    /// The jobs whose delegations were told that they are taken.
    pub fn acknowledged(&self) -> Vec<JobId> {
        self.acknowledged.values().cloned().collect()
    }
}

pub async fn delegate_all(world: Arc<World>) {
    let plans = world.plan.delegations.clone();
    let gap_ms = world.plan.span_ms / (plans.len() as i64 + 1);
    let mut asking = tokio::task::JoinSet::new();
    for plan in plans {
        sleep_ms(world.rng.between(0, gap_ms * 2)).await;
        asking.spawn(ask(world.clone(), plan));
    }
    while asking.join_next().await.is_some() {}
}

async fn ask(world: Arc<World>, plan: DelegationPlan) {
    for _ in 0..TRIES_MAX {
        if is_taken(&world, &plan).await {
            return;
        }
        sleep_ms(world.rng.skewed(100, 30_000)).await;
    }
}

async fn is_taken(world: &Arc<World>, plan: &DelegationPlan) -> bool {
    let Some((engine, life)) = world.engine() else { return false };
    let Some(source) = engine.workspaces().workspace(&plan.tenant, &plan.source) else { return false };
    let asked =
        engine.delegations().delegate(&source, None, &plan.target, &plan.task, Some(&plan.task), None);
    match life.answer(asked).await {
        Some(Ok(taken)) => {
            let id = taken.job.id();
            world.trace.say(format_args!("{:?} is taken as {id}", plan.task));
            if let Err(words) = world.delegation_log(|log| log.taken(plan, id)) {
                world.fail(&words);
            }
            if taken.target != plan.target {
                world.fail(&format!("{:?} is for {} and goes to {}", plan.task, plan.target, taken.target));
            }
            if world.look_up(|archive| archive.row_of(id).is_none()) {
                world.fail(&format!("{id} was acknowledged and its row is not kept"));
            }
            true
        }
        Some(Err(error)) => {
            world.trace.say(format_args!("{:?} is not taken: {error}", plan.task));
            false
        }
        None => false,
    }
}
