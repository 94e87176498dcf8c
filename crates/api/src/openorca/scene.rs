//! The fleet as one audience sees it.

use super::tally::Tally;
use crate::types::openorca::{
    ConsoleSnapshot, ConsoleTask, FleetHealth, FleetNode, Intervention, KnownMember, Machine, NodeIds,
    SnapshotMeta, holder_contract,
};
use reveille_core::fleet::Who;
use reveille_core::id::{JobId, TenantId, WorkerId, WorkspaceId};
use reveille_core::job::{Job, State};
use reveille_core::placement::Member;
use reveille_core::presence::Contract;
use reveille_core::time::Millis;
use reveille_engine::{Audience, Engine, WorkerView};
use reveille_store::{JobQuery, PAGE_LEN_MAX, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::time::Instant;

/// Nodes in a snapshot; of a larger fleet those heard last.
const NODES_MAX: usize = 5_000;
const TASKS_MAX: usize = 100;
/// Pages of jobs that are looked through for those completed today.
const PAGES_MAX: usize = 20;
const DAY_MS: i64 = 24 * 3600 * 1000;

pub struct Scene {
    pub engine: Engine,
    pub audience: Audience,
    pub ids: NodeIds,
    tally: Arc<Tally>,
}

/// What is not in the fleet and still belongs to its health.
#[derive(Default)]
pub struct Standing {
    /// Jobs that wait for a person.
    pub waiting: BTreeSet<JobId>,
    midnight: Millis,
    completed_today: u64,
}

impl Standing {
    pub fn completed(&mut self, at: Millis, now: Millis) {
        self.roll_over(now);
        self.completed_today += u64::from(at >= self.midnight);
    }

    pub fn roll_over(&mut self, now: Millis) {
        if midnight(now) > self.midnight {
            (self.midnight, self.completed_today) = (midnight(now), 0);
        }
    }
}

/// The last one, UTC.
fn midnight(now: Millis) -> Millis {
    now - now.0.rem_euclid(DAY_MS)
}

impl Scene {
    pub fn new(engine: Engine, audience: Audience, tally: Arc<Tally>) -> Self {
        Self { engine, ids: NodeIds::of(&audience), audience, tally }
    }

    /// Everything, and what has to be known to follow it from here.
    pub async fn snapshot(&self) -> Result<(ConsoleSnapshot, Standing), StoreError> {
        let (jobs, completed_today) = self.recent_jobs().await?;
        let waiting = self.waiting_jobs().await?;
        let now = self.engine.now();
        let mut views = self.engine.fleet().newest(&self.audience, None, NODES_MAX + 1);
        let truncated = views.len() > NODES_MAX;
        views.truncate(NODES_MAX);
        let (agents, machines) = self.nodes(&views, &jobs);
        let standing = Standing {
            waiting: waiting.iter().map(|job| job.id().clone()).collect(),
            midnight: midnight(now),
            completed_today,
        };
        let snapshot = ConsoleSnapshot {
            agents,
            tasks: jobs.iter().map(|job| self.task(job)).collect(),
            action_log: [],
            interventions: waiting.iter().filter_map(|job| Intervention::of(job)).collect(),
            swarms: [],
            machines,
            fleet_health: self.health(&standing, Instant::now()).0,
            meta: SnapshotMeta::at(now, truncated),
        };
        Ok((snapshot, standing))
    }

    /// How the fleet is, and whether that takes in everything up to `since`.
    pub fn health(&self, standing: &Standing, since: Instant) -> (FleetHealth, bool) {
        let (census, is_fresh) = self.tally.after(&self.engine, since);
        let count = census.of(&self.audience);
        (FleetHealth::of(count, standing.waiting.len(), standing.completed_today), is_fresh)
    }

    /// A member as it is now; nothing if it is known no longer.
    pub async fn node(&self, member: &Member) -> Result<Option<FleetNode>, StoreError> {
        let Some(view) = self.engine.fleet().worker(member.who()) else { return Ok(None) };
        let current_task = self.current_task(member).await?;
        Ok(Some(self.seen(&view, current_task, |seen| FleetNode::of(seen, self.ids))))
    }

    /// The job that a member has and this audience may see.
    async fn current_task(&self, member: &Member) -> Result<Option<String>, StoreError> {
        for id in self.engine.fleet().held_by(member.who()).into_iter().take(TASKS_MAX) {
            let job = self.engine.jobs().job(&id).await?;
            if job.is_some_and(|job| self.audience.includes(&job.request.tenant)) {
                return Ok(Some(id.to_string()));
            }
        }
        Ok(None)
    }

    pub fn task(&self, job: &Job) -> ConsoleTask {
        ConsoleTask::of(job, self.holder(job).map(|(member, name)| (self.ids.node(&member), name)))
    }

    /// Who has the job, or had it last, and its name.
    pub fn holder(&self, job: &Job) -> Option<(Member, String)> {
        let id = job.worker()?;
        let contract = holder_contract(job);
        let view = self.engine.fleet().worker(Who::of(contract, &job.request.tenant, id.as_str()));
        let tenant = view.as_ref().map_or(&job.request.tenant, |view| &view.worker.tenant).clone();
        // What another tenant calls its worker is nobody else's business.
        let name =
            view.filter(|_| self.audience.includes(&tenant)).map(|view| view.worker.agent_name().to_owned());
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| id.to_string());
        Some((Member { contract, tenant, id: id.clone() }, name))
    }

    fn nodes(&self, views: &[WorkerView], jobs: &[Arc<Job>]) -> (Vec<FleetNode>, Vec<Machine>) {
        let mut at_work: BTreeMap<(Contract, &WorkerId), &JobId> = BTreeMap::new();
        for job in jobs.iter().filter(|job| job.attempt().is_some()) {
            if let Some(worker) = job.worker() {
                at_work.entry((holder_contract(job), worker)).or_insert(job.id());
            }
        }
        let mut machines: BTreeMap<String, Machine> = BTreeMap::new();
        let mut nodes = Vec::with_capacity(views.len());
        for view in views {
            let task = at_work.get(&(view.worker.contract(), &view.worker.id));
            let task = task.map(ToString::to_string);
            let (node, machine) = self.seen(view, task, |seen| {
                let node = FleetNode::of(seen, self.ids);
                let machine = Machine::of(seen, &node);
                (node, machine)
            });
            let is_online = machine.is_online;
            machines.entry(machine.id.clone()).or_insert(machine).is_online |= is_online;
            nodes.push(node);
        }
        (nodes, machines.into_values().collect())
    }

    fn seen<T>(
        &self,
        view: &WorkerView,
        current_task: Option<String>,
        look: impl FnOnce(&KnownMember<'_>) -> T,
    ) -> T {
        let worker = &view.worker;
        let workspace = (worker.contract() == Contract::Molecule)
            .then(|| {
                self.engine.workspaces().workspace(&worker.tenant, &WorkspaceId::known(worker.id.as_str()))
            })
            .flatten();
        let (ttls, now) = (&self.engine.settings().ttls, self.engine.now());
        look(&KnownMember { view, workspace: workspace.as_deref(), current_task, ttls, now })
    }

    fn tenant(&self) -> Option<TenantId> {
        match &self.audience {
            Audience::Tenant(tenant) => Some(tenant.clone()),
            Audience::Everyone => None,
        }
    }

    /// The newest jobs, and how many were completed today. Jobs are looked through from the newest to
    /// the first that was created before today, some thousands at most.
    async fn recent_jobs(&self) -> Result<(Vec<Arc<Job>>, u64), StoreError> {
        let midnight = midnight(self.engine.now());
        let mut query = JobQuery { tenant: self.tenant(), limit: PAGE_LEN_MAX, ..JobQuery::default() };
        let (mut newest, mut completed) = (Vec::new(), 0);
        for _ in 0..PAGES_MAX {
            let page = self.engine.jobs().list(&query).await?;
            let is_done = |job: &&Arc<Job>| job.state() == State::Succeeded && job.updated_at >= midnight;
            completed += page.items.iter().filter(is_done).count() as u64;
            let room = TASKS_MAX - newest.len();
            newest.extend(page.items.iter().take(room).cloned());
            let is_older = page.items.last().is_none_or(|job| job.created_at < midnight);
            match page.next {
                Some(next) if !is_older => query.cursor = Some(next),
                _ => break,
            }
        }
        Ok((newest, completed))
    }

    async fn waiting_jobs(&self) -> Result<Vec<Arc<Job>>, StoreError> {
        let state = Some(State::ApprovalRequired);
        let query = JobQuery { tenant: self.tenant(), state, limit: PAGE_LEN_MAX, ..JobQuery::default() };
        Ok(self.engine.jobs().list(&query).await?.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_completed_yesterday_does_not_count_today() {
        let noon = Millis(DAY_MS * 100 + DAY_MS / 2);
        let mut standing = Standing { midnight: midnight(noon), completed_today: 7, ..Standing::default() };
        standing.completed(noon, noon);
        assert_eq!(standing.completed_today, 8);
        standing.completed(noon, noon + DAY_MS);
        assert_eq!(standing.completed_today, 0);
        standing.completed(noon + DAY_MS, noon + DAY_MS);
        assert_eq!(standing.completed_today, 1);
    }
}
