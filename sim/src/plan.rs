//! The shape of one world: who works, who asks for what, and which rules hold.

use crate::flows::workflows::{FlowsPlan, STEP, UNDO};
use crate::rng::SimRng;
use crate::watch::AgentKey;
use reveille_core::id::{JobId, PoolId, TenantId, Topic, WorkerId, WorkspaceId};
use reveille_core::placement::routing::Routing;
use reveille_core::policy::{Document, Policy};
use reveille_core::request::{Priority, Request};
use reveille_engine::Rules;
use serde_json::json;
use std::collections::BTreeMap;

/// Everyone may have these done; `job.flaky` often asks for another try.
const OPEN_TOPICS: [&str; 4] = ["job.echo", SCARCE, "job.flaky", "job.bounded"];
/// A person has to allow it.
pub const ASKED: &str = "job.asked";
/// Policy never allows it.
pub const DENIED: &str = "job.denied";
/// Policy slows it down until the rules change.
pub const SLOWED: &str = "job.slowed";
/// Nobody ever serves it.
pub const GHOST: &str = "job.ghost";
/// Comes with less time to run and fewer tries.
pub const BOUNDED: &str = "job.bounded";
/// Its results are looked at.
pub const LEAKY: &str = "job.echo";

/// Where routing is mapped, few of its jobs may be at workers at once.
const SCARCE: &str = "job.build";
const TOPIC_MAX: u32 = 2;
const TENANT_MAX: u32 = 2;
/// Few of a tenant's jobs may wait for people at once, where that is limited.
pub const APPROVALS_MAX: u32 = 1;

/// Workers for the steps of runs. One may be unwell at a time, and they may take as long as any fault does.
const CAREFUL: usize = 3;
const CAREFUL_POOL: &str = "careful";
const CAREFUL_TIMEOUT_S: i64 = 4 * 3600;

pub const TENANTS: [&str; 3] = ["default", "acme", "zeta"];
const REGIONS: [&str; 2] = ["eu", "us"];

/// How many servers there are, and whether they share a store; one alone may have a store that it could share.
const SERVERS: [(usize, bool); 8] =
    [(1, false), (1, false), (1, false), (1, false), (1, true), (2, true), (2, true), (3, true)];

#[derive(Clone)]
pub struct Plan {
    pub servers: usize,
    shared: bool,
    pub workers: Vec<WorkerPlan>,
    pub agents: Vec<AgentKey>,
    pub workspaces: Vec<(WorkspaceId, TenantId)>,
    pub delegations: Vec<DelegationPlan>,
    pub jobs: Vec<JobPlan>,
    /// Workflows and their runs, where there are any.
    pub flows: Option<FlowsPlan>,
    /// How long it takes until the last job was asked for, without idle stretches.
    pub span_ms: i64,
    mapped: bool,
    limited: Option<&'static str>,
    dispatch_timeout_s: i64,
    running_timeout_s: i64,
    retries_max: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerKind {
    /// Introduces itself, listens on its own subject and on its topics, beats.
    Agent,
    /// Listens on its topics and says nothing about itself.
    Runner,
    /// The same, with beats beside it.
    BeatingRunner,
}

#[derive(Debug, Clone)]
pub struct WorkerPlan {
    pub name: WorkerId,
    pub kind: WorkerKind,
    pub topics: Vec<Topic>,
    pub pool: PoolId,
    pub region: &'static str,
    pub capacity: u32,
    /// Results say which attempt they belong to.
    pub echoes: bool,
    /// The connection carries the worker's name.
    pub named: bool,
    /// It keeps what it was given over its own death, asks for what it should have got, and says how it went until
    /// that counts. Steps of runs go to such workers only, so that how they end follows from what they were given.
    pub careful: bool,
}

impl WorkerPlan {
    /// How many jobs it may have at once: 90 % of what it can do.
    pub fn jobs_max(&self) -> u32 {
        (self.capacity * 9).div_ceil(10)
    }
}

#[derive(Debug, Clone)]
pub struct JobPlan {
    pub request: Request,
    pub door: SubmitDoor,
    /// Asked for again under another id if nobody answers; only with an idempotency key.
    pub fresh_ids: bool,
}

/// Work that one workspace gives to another; the task is its name.
#[derive(Debug, Clone)]
pub struct DelegationPlan {
    pub task: String,
    pub tenant: TenantId,
    pub source: WorkspaceId,
    pub target: WorkspaceId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitDoor {
    Call,
    Packet,
}

impl Plan {
    pub fn draw(rng: &SimRng) -> Self {
        let (servers, shared) = *rng.pick(&SERVERS);
        let mapped = rng.percent(40);
        let workers = workers(rng);
        let workspaces = workspaces(rng);
        let count = rng.between(30, 80);
        let ghosts = rng.percent(25);
        let jobs = (0..count).map(|number| job(rng, number, &workers, ghosts)).collect();
        Self {
            servers,
            shared,
            workers,
            agents: agents(rng),
            delegations: if shared { Vec::new() } else { delegations(rng, &workspaces) },
            workspaces,
            jobs,
            flows: None,
            span_ms: rng.between(60, 900) * 1000,
            mapped,
            limited: rng.percent(50).then(|| *rng.pick(&TENANTS)),
            dispatch_timeout_s: rng.between(40, 120),
            running_timeout_s: rng.between(45, 200),
            retries_max: rng.between(2, 6),
        }
    }

    /// The same world with workflows, if they can be foreseen there: a kernel that does not answer holds results back.
    /// They are drawn apart, so that the rest stays as it is.
    pub fn with_flows(mut self, seed: u64) -> Self {
        if seed.is_multiple_of(3) {
            return self;
        }
        let rng = SimRng::new(seed ^ 0xf10e);
        let tenants = TENANTS.iter().filter(|tenant| self.limited != Some(**tenant)).collect::<Vec<_>>();
        let tenant = TenantId::known(**rng.pick(&tenants));
        self.workers.extend((0..CAREFUL).map(|number| careful_worker(&rng, number)));
        // Where people have to be quick nobody knows whether they were.
        self.flows = Some(FlowsPlan::draw(&rng, tenant, !seed.is_multiple_of(2)));
        // A bus that is away for long must not end a step.
        self.dispatch_timeout_s = 900;
        self
    }

    /// Whether servers share a store and a bus that are beside them.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// The same world with one server that shares nothing.
    pub fn alone(self) -> Self {
        Self { servers: 1, shared: false, ..self }
    }

    /// How many jobs of this job's tenant may be at workers at once, if there is a limit.
    pub fn tenant_max(&self, request: &Request) -> Option<u32> {
        self.limited.filter(|limited| *limited == request.tenant.as_str()).map(|_| TENANT_MAX)
    }

    /// The same for its topic.
    pub fn topic_max(&self, request: &Request) -> Option<u32> {
        (self.mapped && request.topic.as_str() == SCARCE).then_some(TOPIC_MAX)
    }

    /// The same world for a server that does not know its tenants' limits.
    pub fn without_limits(&self) -> Self {
        Self { limited: None, ..self.clone() }
    }

    pub fn is_limited(&self, request: &Request) -> bool {
        self.tenant_max(request).or(self.topic_max(request)).is_some()
    }

    /// Whether placement may give the job to this worker; labels aside.
    pub fn may_take(&self, worker: &WorkerPlan, request: &Request) -> bool {
        let pools: &[&str] = match request.topic.as_str() {
            STEP | UNDO => &[CAREFUL_POOL],
            SCARCE => &["strict"],
            "job.flaky" => &["main", "strict"],
            GHOST => &[],
            _ => &["main"],
        };
        if self.mapped {
            pools.contains(&worker.pool.as_str())
        } else {
            worker.kind == WorkerKind::Agent && worker.topics.contains(&request.topic)
        }
    }

    /// The rules of the stirred phase; later the slowed topic is let through.
    pub fn rules(&self, slowed: &str) -> Result<Rules, String> {
        let limits =
            self.limited.map(|tenant| (tenant.to_owned(), json!({ "max_concurrent_jobs": TENANT_MAX })));
        let document = json!({
            "version": slowed,
            "rules": [
                { "id": "never", "match": { "topics": [DENIED] }, "decision": "deny" },
                { "id": "ask", "match": { "topics": [ASKED] }, "decision": "require_approval" },
                { "id": "slow", "match": { "topics": [SLOWED] }, "decision": slowed },
                { "id": "bounds", "match": { "topics": [BOUNDED] }, "decision": "allow_with_constraints",
                  "constraints": { "budgets": { "max_runtime_ms": 20_000, "max_retries": 1 } } },
                { "id": "rest", "match": { "topics": ["job.*"] }, "decision": "allow" },
            ],
            "tenants": limits.into_iter().collect::<BTreeMap<_, _>>(),
            "output_policy": { "enabled": self.looks_at_results(), "fail_mode": "closed" },
            "output_rules": [
                { "id": "leak", "match": { "topics": [LEAKY], "scanners": ["secret"] }, "decision": "quarantine" },
                { "id": "hide", "match": { "topics": [BOUNDED], "scanners": ["secret"] }, "decision": "redact" },
            ],
        });
        let source = document.to_string();
        let document: Document = serde_json::from_value(document).map_err(|error| error.to_string())?;
        let timeouts = json!({
            "reconciler": {
                "dispatch_timeout_seconds": self.dispatch_timeout_s,
                "running_timeout_seconds": self.running_timeout_s,
            },
            "topics": {
                "job.flaky": { "max_retries": self.retries_max },
                STEP: { "timeout_seconds": CAREFUL_TIMEOUT_S },
                UNDO: { "timeout_seconds": CAREFUL_TIMEOUT_S },
            },
        });
        Ok(Rules {
            policy: Policy::new(document, source.as_bytes()).map_err(|error| error.to_string())?,
            routing: if self.mapped { mapped_routing() } else { Routing::Discovered }.into(),
            timeouts: serde_json::from_value(timeouts).map_err(|error| error.to_string())?,
        })
    }

    /// Whether output policy is asked. Where it may fail, and holds back what it could not look at, nobody knows how a
    /// step ends.
    pub fn looks_at_results(&self) -> bool {
        self.flows.is_none()
    }

    /// The longest that time alone can need to end every job once nothing goes wrong any more.
    pub fn patience_ms(&self) -> i64 {
        const GIVE_UP_MS: i64 = 31_000 + 45 * 30_000;
        let attempts = (self.retries_max + 4) * (self.running_timeout_s + 60) * 1000;
        GIVE_UP_MS + attempts + if self.shared { 1_200_000 } else { 0 }
    }
}

fn mapped_routing() -> Routing {
    let document = json!({
        "topics": {
            "job.echo": "main", "job.flaky": ["main", "strict"], "job.bounded": "main", ASKED: "main",
            SLOWED: "main", DENIED: "main", GHOST: "nowhere",
            SCARCE: { "pools": "strict", "max_concurrent_jobs": TOPIC_MAX },
            STEP: CAREFUL_POOL, UNDO: CAREFUL_POOL,
        },
        "pools": { CAREFUL_POOL: {}, "main": {}, "strict": { "on_worker_lost": "fail" }, "nowhere": {} },
    });
    serde_json::from_value(document).map_or(Routing::Discovered, Routing::Mapped)
}

/// The first two serve everything between them, so that no job waits for ever once they are back.
fn workers(rng: &SimRng) -> Vec<WorkerPlan> {
    let count = rng.between(3, 9);
    (0..count)
        .map(|number| {
            let kind = match number {
                0 | 1 => WorkerKind::Agent,
                _ => *rng.pick(&[
                    WorkerKind::Agent,
                    WorkerKind::Agent,
                    WorkerKind::Runner,
                    WorkerKind::BeatingRunner,
                ]),
            };
            let all = OPEN_TOPICS.iter().chain(&[ASKED, SLOWED]);
            let topics = all.filter(|_| number < 2 || rng.percent(50)).map(|topic| Topic::known(*topic));
            WorkerPlan {
                name: WorkerId::known(format!("w{number}")),
                kind,
                topics: topics.collect(),
                pool: PoolId::known(if number % 2 == 0 { "main" } else { "strict" }),
                region: REGIONS[number as usize % 2],
                capacity: rng.between(1, 6) as u32,
                echoes: rng.percent(70),
                named: rng.percent(50),
                careful: false,
            }
        })
        .collect()
}

fn careful_worker(rng: &SimRng, number: usize) -> WorkerPlan {
    WorkerPlan {
        name: WorkerId::known(format!("c{number}")),
        kind: WorkerKind::Agent,
        topics: [STEP, UNDO].map(Topic::known).to_vec(),
        pool: PoolId::known(CAREFUL_POOL),
        region: REGIONS[number % 2],
        capacity: rng.between(4, 9) as u32,
        echoes: rng.percent(70),
        named: rng.percent(50),
        careful: true,
    }
}

/// A few ids, so that two tenants have an agent of the same name.
fn agents(rng: &SimRng) -> Vec<AgentKey> {
    let agent = |_| (TenantId::known(*rng.pick(&TENANTS)), WorkerId::known(format!("a{}", rng.below(3))));
    (0..rng.between(2, 5)).map(agent).collect()
}

/// The first two are of one tenant, so that there is somebody to delegate to.
fn workspaces(rng: &SimRng) -> Vec<(WorkspaceId, TenantId)> {
    let tenant = |number| if number < 2 { TENANTS[1] } else { *rng.pick(&TENANTS) };
    let workspace = |number| (WorkspaceId::known(format!("ws{number}")), TenantId::known(tenant(number)));
    (0..rng.between(2, 4)).map(workspace).collect()
}

fn delegations(rng: &SimRng, workspaces: &[(WorkspaceId, TenantId)]) -> Vec<DelegationPlan> {
    let count = rng.between(2, 8);
    let plan = |number| {
        let (source, tenant) = rng.pick(workspaces).clone();
        let others: Vec<&WorkspaceId> = workspaces
            .iter()
            .filter(|(id, owner)| *owner == tenant && *id != source)
            .map(|(id, _)| id)
            .collect();
        if others.is_empty() {
            return None;
        }
        let target = (*rng.pick(&others)).clone();
        Some(DelegationPlan { task: format!("task {number}"), tenant, source, target })
    };
    (0..count).filter_map(plan).collect()
}

fn job(rng: &SimRng, number: i64, workers: &[WorkerPlan], ghosts: bool) -> JobPlan {
    let topic = match rng.below(100) {
        0..=12 => ASKED,
        13..=17 => DENIED,
        18..=22 => SLOWED,
        23..=25 if ghosts => GHOST,
        _ => rng.pick(&OPEN_TOPICS),
    };
    let mut request = Request::plain(&format!("j{number}"), topic);
    request.tenant = TenantId::known(*rng.pick(&TENANTS));
    request.priority = *rng.pick(&Priority::ALL);
    if rng.percent(15) {
        request.labels.insert("placement.region".to_owned(), (*rng.pick(&REGIONS)).to_owned());
    }
    if rng.percent(10) {
        request.labels.insert("preferred_worker_id".to_owned(), rng.pick(workers).name.to_string());
    }
    if rng.percent(15) {
        request.budget.deadline_ms = rng.skewed(200, 300_000);
    }
    if rng.percent(30) {
        request.idempotency_key = Some(format!("k{}", rng.below(12)));
    }
    // Two of a hundred take an id that another tenant may have.
    if rng.percent(2) {
        request.id = JobId::known(format!("j{}", rng.below(10)));
    }
    let fresh_ids = request.idempotency_key.is_some() && rng.percent(60);
    JobPlan { request, door: if rng.percent(65) { SubmitDoor::Call } else { SubmitDoor::Packet }, fresh_ids }
}
