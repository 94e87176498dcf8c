//! One run: a world is made from a seed, stirred with faults on, left to settle with faults off, and
//! judged.

use crate::breakage::Breakage;
use crate::clock::SimClock;
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::faults::{Fault, Faults};
use crate::invariants::{Ledger, Verdict};
use crate::network::Network;
use crate::outages::Outages;
use crate::plan::{Plan, WorkerPlan};
use crate::server::{Life, Server};
use crate::trace::Trace;
use crate::watch::{Calm, Watched};
use crate::workers::Worker;
use crate::{chaos, panics, people, server, submitters, watch};
use reveille_bus::Message;
use reveille_core::id::WorkerId;
use reveille_core::job::Job;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::{Engine, Rules};
use reveille_store::{JobQuery, MemoryStore, PAGE_LEN_MAX, Store, StoreError};
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::packet;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long the last messages may still be on their way when everything seems over.
const AFTERMATH_MS: i64 = 60_000;

pub struct World {
    pub seed: u64,
    pub breakage: Option<Breakage>,
    pub plan: Plan,
    pub dice: Dice,
    pub clock: SimClock,
    pub trace: Trace,
    pub faults: Faults,
    pub outages: Outages,
    pub calm: Calm,
    pub watched: Watched,
    pub network: Network,
    pub server: Server,
    /// What is durable.
    pub store: MemoryStore,
    workers: Vec<Arc<Worker>>,
    ledger: Mutex<Ledger>,
    quiet_since: OnceLock<Millis>,
    failure: Mutex<Option<String>>,
    over: CancellationToken,
}

/// What a run came to.
pub struct Outcome {
    pub seed: u64,
    pub coverage: Coverage,
    /// Equal for two runs that were equal.
    pub trace_hash: u64,
    pub failure: Option<Failure>,
}

#[derive(Debug)]
pub struct Failure {
    /// The promise that was broken.
    pub words: String,
    pub last_lines: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    Silent,
    Aloud,
}

/// Runs one seed to its end.
pub fn run(seed: u64, breakage: Option<Breakage>, voice: Voice) -> Outcome {
    panics::watch();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => unreachable!("a runtime without I/O needs nothing that could fail: {error}"),
    };
    runtime.block_on(async {
        let world = Arc::new(World::make(seed, breakage, voice));
        world.live_through().await;
        world.outcome()
    })
}

pub async fn sleep_ms(ms: i64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms as u64)).await;
    }
}

impl World {
    fn make(seed: u64, breakage: Option<Breakage>, voice: Voice) -> Self {
        let dice = Dice::new(seed);
        let clock = SimClock::start();
        let plan = Plan::draw(&dice);
        let workers = plan.workers.iter().cloned().enumerate();
        let workers = workers.map(|(number, plan)| Arc::new(Worker::new(number, plan))).collect();
        Self {
            seed,
            breakage,
            faults: Faults::draw(&dice),
            plan,
            dice,
            clock,
            trace: if voice == Voice::Aloud { Trace::aloud(clock) } else { Trace::silent(clock) },
            outages: Outages::default(),
            calm: Calm::default(),
            watched: Watched::default(),
            network: Network::default(),
            server: Server::default(),
            store: MemoryStore::new(Arc::new(move || clock.now())),
            workers,
            ledger: Mutex::default(),
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
        tokio::spawn(server::supervise(self.clone()));
        for worker in &self.workers {
            tokio::spawn(worker.clone().live(self.clone()));
        }
        tokio::spawn(people::decide(self.clone()));
        tokio::spawn(watch::watch(self.clone()));
        let chaos = tokio::spawn(chaos::stir(self.clone()));
        submitters::submit_all(self.clone()).await;
        sleep_ms(self.dice.between(1_000, 60_000)).await;
        chaos.abort();
        self.quiet_down();
        self.settle().await;
        if let Err(words) = self.judge().await {
            self.fail(&words);
        }
    }

    /// Nothing goes wrong from here on, and everybody is there.
    fn quiet_down(&self) {
        self.trace.say("quiet");
        self.faults.stop();
        self.outages.end();
        self.calm.disturbed(self.now());
        for worker in self.workers.iter().filter(|worker| !worker.is_alive()) {
            worker.restart(self);
        }
        self.quiet_since.get_or_init(|| self.now());
        if let (Some((engine, _)), Ok(rules)) = (self.server.engine(), self.rules()) {
            engine.use_rules(rules);
        }
    }

    /// Waits until every job has ended, as long as that may take, and for what is still on its way.
    async fn settle(&self) {
        let end = self.now() + self.plan.patience_ms();
        while self.now() < end && !self.ledger().live.is_empty() {
            sleep_ms(2_000).await;
        }
        sleep_ms(AFTERMATH_MS).await;
    }

    async fn judge(&self) -> Verdict {
        let stored = self.stored().await.map_err(|error| error.to_string())?;
        self.ledger().settled(&stored)?;
        let (engine, _) = self.server.engine().ok_or("the server did not come back")?;
        floor_is_empty(&engine)
    }

    fn outcome(&self) -> Outcome {
        let ledger = self.ledger();
        let mut coverage = Coverage {
            seeds: 1,
            jobs: ledger.jobs().count() as u64,
            commits: ledger.commits,
            virtual_ms: self.clock.elapsed_ms(),
            states: ledger.states.clone(),
            events: ledger.events.clone(),
            faults: self.faults.met(),
            ..Coverage::default()
        };
        for job in ledger.jobs() {
            *coverage.endings.entry(job.state()).or_default() += 1;
        }
        let words = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let failure = words.map(|words| Failure { words, last_lines: self.trace.last_lines() });
        Outcome { seed: self.seed, coverage, trace_hash: self.trace.hash(), failure }
    }

    // What everybody in this world uses.

    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    pub fn strikes(&self, fault: Fault) -> bool {
        self.faults.strikes(fault, &self.dice)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes something into the ledger; if that breaks a promise, the run is over.
    pub fn check(&self, entry: impl FnOnce(&mut Ledger) -> Verdict) {
        let verdict = entry(&mut self.ledger());
        if let Err(words) = verdict {
            self.fail(&words);
        }
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
        self.trace.say(format_args!("server {} dies {at}", life.number));
        life.end();
        self.network.server_is_gone();
        self.calm.disturbed(self.now());
    }

    pub fn rules(&self) -> Result<Rules, String> {
        self.plan.rules(if self.quiet_since().is_some() { "allow" } else { "throttle" })
    }

    /// Since when nothing goes wrong any more.
    pub fn quiet_since(&self) -> Option<Millis> {
        self.quiet_since.get().copied()
    }

    pub fn worker(&self, number: usize) -> &Arc<Worker> {
        &self.workers[number]
    }

    pub fn workers(&self) -> &[Arc<Worker>] {
        &self.workers
    }

    pub fn worker_plan(&self, name: &WorkerId) -> Option<&WorkerPlan> {
        self.plan.workers.iter().find(|plan| plan.name == *name)
    }

    /// Whether placement would take this worker for the job.
    pub fn can_be_given(&self, name: &WorkerId, request: &Request) -> bool {
        self.worker_plan(name).is_some_and(|plan| self.plan.may_take(plan, request))
    }

    pub fn jobs(&self) -> Vec<Arc<Job>> {
        self.ledger().jobs().cloned().collect()
    }

    pub fn live_jobs(&self) -> Vec<Arc<Job>> {
        let ledger = self.ledger();
        ledger.live.iter().filter_map(|id| ledger.job(id).cloned()).collect()
    }

    async fn stored(&self) -> Result<Vec<Arc<Job>>, StoreError> {
        let mut query = JobQuery { limit: PAGE_LEN_MAX, ..JobQuery::default() };
        let mut jobs = Vec::new();
        loop {
            let page = self.store.jobs(&query).await?;
            jobs.extend(page.items);
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => return Ok(jobs),
            }
        }
    }

    /// Whom a message for this worker reaches.
    pub fn misrouted(&self, worker: usize) -> usize {
        let astray = self.breakage == Some(Breakage::Misroute) && self.dice.percent(5);
        if astray { (worker + 1) % self.workers.len() } else { worker }
    }

    /// Whether dead workers still beat in this broken world.
    pub fn beats_as_a_ghost(&self) -> bool {
        self.breakage == Some(Breakage::GhostBeats)
    }

    /// A dispatch packet is on its way out.
    pub fn dispatch_leaves(&self, payload: &[u8], to: Option<&WorkerId>) {
        match packet::decode(payload).ok().and_then(|packet| packet.payload) {
            Some(Payload::JobRequest(job)) => {
                self.check(|ledger| ledger.dispatched(&job, to, self.now()));
            }
            _ => self.fail("something that is no job was sent to a worker"),
        }
    }

    /// A message reached the server that says that a worker is there.
    pub fn note_presence(&self, message: &Message) {
        let name = match packet::decode(&message.payload).ok().and_then(|packet| packet.payload) {
            Some(Payload::Heartbeat(beat)) => beat.worker_id,
            Some(Payload::Handshake(handshake)) => handshake.component_id,
            _ => return,
        };
        let name = WorkerId::known(name);
        let dead = self.workers.iter().any(|worker| worker.plan.name == name && !worker.is_alive());
        if !(dead && self.beats_as_a_ghost()) {
            self.watched.heard(&name, self.now());
        }
    }
}

/// Nobody holds anything and nothing waits.
fn floor_is_empty(engine: &Engine) -> Verdict {
    for view in engine.workers() {
        if view.worker.held != 0 {
            return Err(format!(
                "{} is said to hold {} jobs and all have ended",
                view.worker.id, view.worker.held
            ));
        }
    }
    let page = engine.metrics_page();
    let live = page.lines().find_map(|line| line.strip_prefix("cordum_scheduler_live_jobs "));
    match live {
        Some("0") => Ok(()),
        other => Err(format!("all jobs have ended and the floor has {other:?}")),
    }
}
