//! One run: a world is made from a seed, stirred with faults on, left to settle with faults off, and
//! judged.

mod final_check;
mod who;

use crate::agents::SimAgent;
use crate::archive::Archive;
use crate::beats::BeatLog;
use crate::breakage::Breakage;
use crate::clock::SimClock;
use crate::coverage::Coverage;
use crate::delegations::DelegationLog;
use crate::faults::{Fault, Faults};
use crate::flows::history::FlowHistory;
use crate::flows::reference::Compared;
use crate::flows::starters;
use crate::invariants::{InvariantResult, JobHistory};
use crate::key_holders::{self, KeyLog};
use crate::network::Network;
use crate::operators::Drains;
use crate::outages::Outages;
use crate::plan::{APPROVALS_MAX, Plan};
use crate::rng::SimRng;
use crate::server::{Life, SimServer};
use crate::situations::Situations;
use crate::trace::EventTrace;
use crate::watch::{AgentsWatched, Calm, WorkspacesWatched};
use crate::workers::SimWorker;
use crate::workspaces::SimWorkspace;
use crate::{chaos, delegations, operators, panics, people, plan, readers, server, submitters, watch};
use reveille_core::id::TenantId;
use reveille_core::time::Millis;
use reveille_engine::Rules;
use reveille_roster::MemoryRoster;
use reveille_store::MemoryStore;
use reveille_store::workflows::MemoryWorkflows;
use std::fmt::Display;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub struct World {
    pub seed: u64,
    pub breakage: Option<Breakage>,
    pub plan: Plan,
    pub rng: SimRng,
    pub clock: SimClock,
    pub trace: EventTrace,
    pub faults: Faults,
    pub outages: Outages,
    pub situations: Situations,
    pub calm: Calm,
    pub roster_calm: Calm,
    pub agents_watched: AgentsWatched,
    pub workspaces_watched: WorkspacesWatched,
    pub drains: Drains,
    pub key_log: KeyLog,
    /// Jobs that the safety net had to see to.
    pub caught: AtomicU64,
    /// How many runs were compared with the reference, once they were.
    compared: OnceLock<Compared>,
    pub network: Network,
    servers: Vec<Arc<SimServer>>,
    pub beats: BeatLog,
    /// The furthest that two servers' clocks were apart.
    skew_ms: AtomicI64,
    /// What is durable.
    pub store: MemoryStore,
    pub roster: MemoryRoster,
    pub flows: MemoryWorkflows,
    workers: Vec<Arc<SimWorker>>,
    agents: Vec<Arc<SimAgent>>,
    workspaces: Vec<Arc<SimWorkspace>>,
    delegation_log: Mutex<DelegationLog>,
    ledger: Mutex<JobHistory>,
    flow_history: Mutex<FlowHistory>,
    archive: Mutex<Archive>,
    quiet_since: OnceLock<Millis>,
    failure: Mutex<Option<String>>,
    over: CancellationToken,
}

/// What a run came to.
pub struct SeedOutcome {
    pub seed: u64,
    pub coverage: Coverage,
    /// Equal for two runs that were equal.
    pub trace_hash: u64,
    pub failure: Option<SeedFailure>,
}

#[derive(Debug)]
pub struct SeedFailure {
    /// The promise that was broken.
    pub words: String,
    pub last_lines: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    Silent,
    Aloud,
}

/// Runs one seed to its end.
pub fn run(seed: u64, breakage: Option<Breakage>, voice: Verbosity) -> SeedOutcome {
    panics::watch();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => unreachable!("a runtime without I/O needs nothing that could fail: {error}"),
    };
    runtime.block_on(async {
        let world = Arc::new(World::make(seed, breakage, voice));
        world.live_through().await;
        let outcome = world.outcome();
        // An engine holds its world, and would keep it for ever.
        world.servers.iter().for_each(|server| server.forget());
        outcome
    })
}

pub async fn sleep_ms(ms: i64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms as u64)).await;
    }
}

impl World {
    fn make(seed: u64, breakage: Option<Breakage>, voice: Verbosity) -> Self {
        let rng = SimRng::new(seed);
        let clock = SimClock::start();
        let plan = Plan::draw(&rng);
        let plan = if breakage.is_some_and(Breakage::is_of_one_alone) { plan.alone() } else { plan };
        let plan = plan.with_flows(seed);
        let servers: Vec<_> =
            (0..plan.servers).map(|number| Arc::new(SimServer::new(number, clock))).collect();
        // One alone has its store in itself; one that is shared has a clock of its own.
        let (alone, is_shared) = (servers[0].clock.clone(), plan.is_shared());
        let store_clock = move || if is_shared { clock.now() } else { alone.now() };
        let workers = plan.workers.iter().cloned().enumerate();
        let workers = workers.map(|(number, plan)| Arc::new(SimWorker::new(number, plan))).collect();
        let agents = plan.agents.iter().cloned().map(|key| Arc::new(SimAgent::new(key))).collect();
        let workspaces = plan.workspaces.iter().cloned();
        let workspaces = workspaces.map(|(id, tenant)| Arc::new(SimWorkspace::new(id, tenant))).collect();
        let delegation_log = DelegationLog::new(&plan.delegations);
        let policies = ["throttle", "allow"].into_iter().filter_map(|slowed| plan.rules(slowed).ok());
        let ledger = JobHistory::with_policies(policies.map(|rules| rules.policy));
        Self {
            seed,
            breakage,
            faults: Faults::draw(&rng),
            plan,
            rng,
            clock,
            trace: if voice == Verbosity::Aloud {
                EventTrace::aloud(clock)
            } else {
                EventTrace::silent(clock)
            },
            outages: Outages::default(),
            situations: Situations::default(),
            calm: Calm::default(),
            roster_calm: Calm::default(),
            agents_watched: AgentsWatched::default(),
            workspaces_watched: WorkspacesWatched::default(),
            drains: Drains::default(),
            key_log: KeyLog::default(),
            caught: AtomicU64::new(0),
            compared: OnceLock::new(),
            network: Network::default(),
            servers,
            beats: BeatLog::default(),
            skew_ms: AtomicI64::new(0),
            store: MemoryStore::new(Arc::new(store_clock)),
            roster: MemoryRoster::new(),
            flows: MemoryWorkflows::default(),
            workers,
            agents,
            workspaces,
            delegation_log: Mutex::new(delegation_log),
            ledger: Mutex::new(ledger),
            flow_history: Mutex::default(),
            archive: Mutex::default(),
            quiet_since: OnceLock::new(),
            failure: Mutex::default(),
            over: CancellationToken::new(),
        }
    }

    async fn live_through(self: &Arc<Self>) {
        tokio::select! {
            biased;
            () = self.over.cancelled() => {}
            () = self.story() => {}
        }
        if let Some(words) = panics::take() {
            self.fail(&format!("something panicked: {words}"));
        }
    }

    /// The run from beginning to end.
    async fn story(self: &Arc<Self>) {
        for server in &self.servers {
            tokio::spawn(server::supervise(self.clone(), server.clone()));
        }
        for worker in &self.workers {
            tokio::spawn(worker.clone().live(self.clone()));
        }
        for agent in &self.agents {
            tokio::spawn(agent.clone().live(self.clone()));
        }
        for workspace in &self.workspaces {
            tokio::spawn(workspace.clone().live(self.clone()));
        }
        for tenant in plan::TENANTS.map(TenantId::known) {
            tokio::spawn(readers::read(self.clone(), tenant));
        }
        tokio::spawn(people::decide(self.clone()));
        tokio::spawn(operators::drain_now_and_then(self.clone()));
        tokio::spawn(key_holders::issue_and_revoke(self.clone()));
        tokio::spawn(key_holders::try_keys(self.clone()));
        tokio::spawn(watch::watch(self.clone()));
        let chaos = tokio::spawn(chaos::stir(self.clone()));
        tokio::join!(
            submitters::submit_all(self.clone()),
            delegations::delegate_all(self.clone()),
            starters::start_all(self.clone()),
        );
        sleep_ms(self.rng.between(1_000, 60_000)).await;
        chaos.abort();
        self.quiet_down();
        self.settle().await;
        if let Err(words) = self.judge().await {
            self.fail(&words);
        }
    }

    /// Nothing goes wrong from here on, and everybody is there.
    fn quiet_down(self: &Arc<Self>) {
        self.trace.say("quiet");
        self.faults.stop();
        self.outages.end();
        self.calm.disturbed(self.now());
        self.roster_calm.disturbed(self.now());
        self.agents.iter().for_each(|agent| agent.come_back());
        self.workspaces.iter().for_each(|workspace| workspace.come_back());
        for worker in self.workers.iter().filter(|worker| !worker.is_alive()) {
            worker.restart(self);
        }
        self.quiet_since.get_or_init(|| self.now());
        for server in &self.servers {
            server.heal(self.now());
            server.go_on(self);
            if let (Some((engine, _)), Ok(rules)) = (server.engine(), self.rules()) {
                engine.use_rules(rules);
            }
        }
    }

    fn outcome(&self) -> SeedOutcome {
        let (ledger, compared) = (self.ledger(), self.compared.get());
        let mut coverage = Coverage {
            seeds: 1,
            shared_seeds: u64::from(self.plan.is_shared()),
            jobs: ledger.jobs().count() as u64,
            runs: self.read_flow_history(|history| history.runs.len() as u64),
            commits: ledger.commits,
            virtual_ms: self.clock.elapsed_ms(),
            compared: compared.map_or(0, |compared| compared.runs),
            compared_shared: compared.filter(|_| self.plan.is_shared()).map_or(0, |compared| compared.runs),
            spared: compared.map_or(0, |compared| compared.spared),
            caught: self.caught.load(Ordering::Relaxed),
            states: ledger.states.clone(),
            events: ledger.events.clone(),
            faults: self.faults.met(),
            situations: self.situations.counts(),
            ..Coverage::default()
        };
        for job in ledger.jobs() {
            *coverage.endings.entry(job.state()).or_default() += 1;
        }
        let words = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let failure = words.map(|words| SeedFailure { words, last_lines: self.trace.last_lines() });
        SeedOutcome { seed: self.seed, coverage, trace_hash: self.trace.hash(), failure }
    }

    // What everybody in this world uses.

    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// When, in truth, the server takes it to be this moment. Of several, each has its own idea of it, and it may
    /// be as much later as their clocks are apart.
    pub fn when(&self, moment: Millis) -> Millis {
        if self.plan.is_shared() {
            return moment + self.skew_ms.load(Ordering::Relaxed);
        }
        self.servers[0].clock.shows(moment)
    }

    /// A clock was set.
    pub fn note_skew(&self) {
        let ahead = self.servers.iter().map(|server| server.clock.ahead_ms().abs()).max();
        self.skew_ms.fetch_max(2 * ahead.unwrap_or_default(), Ordering::Relaxed);
    }

    pub fn strikes(&self, fault: Fault) -> bool {
        self.faults.strikes(fault, &self.rng)
    }

    fn ledger(&self) -> MutexGuard<'_, JobHistory> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes something into the ledger; if that breaks a promise, the run is over.
    pub fn check(&self, entry: impl FnOnce(&mut JobHistory) -> InvariantResult) {
        let verdict = entry(&mut self.ledger());
        if let Err(words) = verdict {
            self.fail(&words);
        }
    }

    /// The same for what happens to runs.
    pub fn flow_history(&self, entry: impl FnOnce(&mut FlowHistory) -> InvariantResult) {
        let verdict = entry(&mut self.flow_history.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(words) = verdict {
            self.fail(&words);
        }
    }

    pub fn read_flow_history<T>(&self, question: impl FnOnce(&FlowHistory) -> T) -> T {
        question(&self.flow_history.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same for what was written to the roster.
    pub fn archive(&self, entry: impl FnOnce(&mut Archive) -> InvariantResult) {
        let verdict = entry(&mut self.archive.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(words) = verdict {
            self.fail(&words);
        }
    }

    /// Looks into what was written to the roster.
    pub fn look_up<T>(&self, question: impl FnOnce(&Archive) -> T) -> T {
        question(&self.archive.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks, or tells, what is known of the delegations.
    pub fn delegation_log<T>(&self, entry: impl FnOnce(&mut DelegationLog) -> T) -> T {
        let (answer, broken) = {
            let mut log = self.delegation_log.lock().unwrap_or_else(PoisonError::into_inner);
            (entry(&mut log), log.broken())
        };
        if let Some(words) = broken {
            self.fail(&words);
        }
        answer
    }

    /// A promise is broken. The first one counts.
    pub fn fail(&self, words: &str) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            self.trace.say(format_args!("BROKEN: {words}"));
            *failure = Some(words.to_owned());
        }
        self.over.cancel();
    }

    /// The server dies here, and whoever called never hears of it.
    pub async fn crash(&self, life: &Life, at: impl Display) {
        self.kill(life, at);
        std::future::pending::<()>().await;
    }

    pub fn kill(&self, life: &Life, at: impl Display) {
        self.trace.say(format_args!("server {} dies {at}", life.name()));
        life.end();
        self.network.server_is_gone(self, life.server);
        self.calm.disturbed(self.now());
    }

    pub fn rules(&self) -> Result<Rules, String> {
        let slowed = if self.quiet_since().is_some() { "allow" } else { "throttle" };
        if self.breakage == Some(Breakage::IgnoreLimits) {
            return self.plan.without_limits().rules(slowed);
        }
        self.plan.rules(slowed)
    }

    /// How many jobs of a tenant may wait for a person, in a third of the worlds without workflows, whose runs are
    /// compared with those of a world without faults.
    pub fn approvals_max(&self) -> Option<u32> {
        (self.seed.is_multiple_of(3) && self.plan.flows.is_none()).then_some(APPROVALS_MAX)
    }

    /// Since when nothing goes wrong any more.
    pub fn quiet_since(&self) -> Option<Millis> {
        self.quiet_since.get().copied()
    }
}
