//! The servers: engines that die, are stopped, and are started again on the same store.

use crate::a2a::SimA2aClient;
use crate::breakage::Breakage;
use crate::bus::SimBus;
use crate::clock::{ServerClock, SimClock};
use crate::faults::Fault;
use crate::flows::SimFlows;
use crate::kernel::SimKernel;
use crate::links::{Dependency, Links, PauseGate};
use crate::roster::SimRoster;
use crate::situations::Situation;
use crate::store::SimStore;
use crate::traces::SimTraces;
use crate::watch::WorkersWatched;
use crate::world::{World, sleep_ms};
use reveille_core::time::Millis;
use reveille_engine::{Engine, Parts, SeededRng, Settings};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// How far clocks are set while a server is down: alone, and beside others. Those who run several are told to keep
/// them within a second.
const SET_ALONE_MS: [i64; 3] = [2_000, 60_000, 3_600_000];
const SET_MS: [i64; 4] = [500, 1_000, 5_000, 30_000];

/// For how long what it has asked the bus for stands.
const ASKS_MS: i64 = 5_000;

/// One life of a server, from a start to a death.
#[derive(Clone)]
pub struct Life {
    pub server: usize,
    pub number: u64,
    ended: CancellationToken,
    gate: Arc<PauseGate>,
}

impl Life {
    fn new(server: &SimServer, number: u64) -> Self {
        Self { server: server.number, number, ended: CancellationToken::new(), gate: server.gate.clone() }
    }

    /// What the other servers know it by.
    pub fn name(&self) -> String {
        format!("s{}.{}", self.server, self.number)
    }

    pub fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    pub fn end(&self) {
        self.ended.cancel();
    }

    /// A call into a dead server never returns, and one into a stopped server when it goes on.
    pub async fn here(&self) {
        self.gate.pass().await;
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    /// The answer, unless the server dies first.
    pub fn answer<'a, T: Send + 'a>(
        &'a self,
        call: impl Future<Output = T> + Send + 'a,
    ) -> impl Future<Output = Option<T>> + Send + 'a {
        let answered = Box::pin(async move {
            self.gate.pass().await;
            let answer = call.await;
            self.gate.pass().await;
            answer
        });
        async move {
            tokio::select! {
                biased;
                () = self.ended.cancelled() => None,
                answer = answered => Some(answer),
            }
        }
    }
}

pub struct SimServer {
    pub number: usize,
    pub clock: ServerClock,
    pub links: Links,
    pub watched: WorkersWatched,
    gate: Arc<PauseGate>,
    stopped: Mutex<Stopped>,
    up: Mutex<Option<(Engine, Life)>>,
}

#[derive(Default)]
struct Stopped {
    since: Option<Millis>,
    /// When it last went on.
    until: Millis,
}

impl SimServer {
    pub fn new(number: usize, truth: SimClock) -> Self {
        Self {
            number,
            clock: ServerClock::new(truth),
            links: Links::default(),
            watched: WorkersWatched::default(),
            gate: Arc::default(),
            stopped: Mutex::default(),
            up: Mutex::default(),
        }
    }

    /// The running engine, if there is one.
    pub fn engine(&self) -> Option<(Engine, Life)> {
        let up = self.up.lock().unwrap_or_else(PoisonError::into_inner);
        up.clone().filter(|(_, life)| !life.is_over())
    }

    /// Whether it runs and has picked up what it found.
    pub fn is_recovered(&self) -> bool {
        self.engine().is_some_and(|(engine, _)| engine.is_recovered())
    }

    fn set(&self, up: Option<(Engine, Life)>) {
        *self.up.lock().unwrap_or_else(PoisonError::into_inner) = up;
    }

    /// Its world is over.
    pub fn forget(&self) {
        self.set(None);
    }

    pub fn is_stopped(&self) -> bool {
        self.gate.is_shut()
    }

    /// Whether messages reach it.
    pub fn hears(&self) -> bool {
        !self.is_stopped() && self.links.leads(Dependency::Bus)
    }

    /// Whether the bus gives it kept messages: one that was stopped a moment ago has asked for some.
    pub fn asks_for_kept(&self, now: Millis) -> bool {
        self.links.leads(Dependency::Bus) && self.stopped_ms(now).is_none_or(|ms| ms < ASKS_MS)
    }

    /// It stands still, as after SIGSTOP: it sees no time pass, hears nothing, and whatever it has begun waits.
    pub fn stop(&self, now: Millis) {
        self.gate.shut();
        self.clock.stop();
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).since = Some(now);
        self.note_hearing(now);
    }

    pub fn go_on(&self, world: &Arc<World>) {
        let now = world.now();
        {
            let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
            if stopped.since.take().is_none() {
                return;
            }
            stopped.until = now;
        }
        self.clock.go_on();
        self.gate.open();
        self.note_hearing(now);
        world.network.go_on(world, self.number);
    }

    /// How long it has been stopped for by now, if it is.
    pub fn stopped_ms(&self, now: Millis) -> Option<i64> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).since.map(|since| now.since(since))
    }

    pub fn went_on_at(&self) -> Millis {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).until
    }

    /// Its ways to the others lead nowhere from here on.
    pub fn cut(&self, ways: &[Dependency], now: Millis) {
        self.links.cut(ways);
        self.note_hearing(now);
    }

    pub fn heal(&self, now: Millis) {
        self.links.heal();
        self.note_hearing(now);
    }

    /// While it hears nothing nobody's silence counts.
    fn note_hearing(&self, now: Millis) {
        if let Some(deaf_ms) = self.links.note_hearing(self.hears(), now) {
            self.watched.hears_again(deaf_ms, now);
        }
    }
}

/// Starts a server whenever it is down, for as long as the run lasts.
pub async fn supervise(world: Arc<World>, server: Arc<SimServer>) {
    if world.plan.is_shared() {
        server.clock.set(world.rng.between(-SET_MS[1], SET_MS[1]));
        world.note_skew();
        sleep_ms(world.rng.skewed(0, 5_000)).await;
    }
    for number in 0.. {
        let life = Life::new(&server, number);
        world.trace.say(format_args!("server {} starts", life.name()));
        set_clock(&world, &server);
        server.watched.new_life(number);
        world.agents_watched.new_life();
        world.workspaces_watched.new_life();
        if let Some(engine) = start(&world, &server, &life).await {
            // The rules may have changed while it started.
            if let Ok(rules) = world.rules() {
                engine.use_rules(rules);
            }
            let knew_anybody = server.watched.up(world.now());
            world.agents_watched.up(world.now());
            world.workspaces_watched.up(world.now());
            world.situations.record(if knew_anybody { Situation::WarmStart } else { Situation::ColdStart });
            if world.drains.are_there() {
                world.situations.record(Situation::DrainOutlived);
            }
            server.set(Some((engine.clone(), life.clone())));
            life.ended.cancelled().await;
            server.set(None);
            engine.kill();
        }
        world.network.server_is_gone(&world, server.number);
        let down_ms = if world.faults.are_on() { world.rng.skewed(50, 60_000) } else { 100 };
        world.trace.say(format_args!("server {} is down for {down_ms} ms", life.name()));
        sleep_ms(down_ms).await;
        server.go_on(&world);
    }
}

fn set_clock(world: &World, server: &SimServer) {
    if !world.strikes(Fault::ClockSet) {
        return;
    }
    let reach_ms = if world.plan.is_shared() {
        *world.rng.pick(&SET_MS)
    } else if world.plan.flows.is_some() {
        // An hour that never was ends jobs, and then steps, that would have ended otherwise.
        SET_ALONE_MS[0]
    } else {
        *world.rng.pick(&SET_ALONE_MS)
    };
    let ahead_ms = world.rng.between(-reach_ms, reach_ms);
    world.trace.say(format_args!("the clock of server {} is {ahead_ms} ms ahead", server.number));
    server.clock.set(ahead_ms);
    world.note_skew();
}

fn settings(world: &World) -> Settings {
    // In every other world people have to be quick.
    let approval_ms = world.seed.is_multiple_of(2).then_some(20_000);
    let mut settings = Settings { approval_ms, ..Settings::default() };
    if let Some(max) = world.approvals_max().filter(|_| world.breakage != Some(Breakage::IgnoreQuotas)) {
        settings.limits.approvals_per_tenant = max;
    }
    if world.breakage == Some(Breakage::IgnoreAgentTtl) {
        settings.ttls.voicegateway_ms *= 1_000;
    }
    settings
}

async fn start(world: &Arc<World>, server: &SimServer, life: &Life) -> Option<Engine> {
    let parts = Parts {
        store: Arc::new(SimStore::new(world.clone(), life.clone())),
        roster: Arc::new(SimRoster::new(world.clone(), life.clone())),
        workflows: Arc::new(SimFlows::new(world.clone(), life.clone())),
        a2a: Arc::new(SimA2aClient::new(world.clone(), life.clone())),
        kernel: SimKernel::of(world, life),
        oidc: None,
        bus: Arc::new(SimBus::new(world.clone(), life.clone())),
        traces: Arc::new(SimTraces(world.clone())),
        clock: Arc::new(server.clock.clone()),
        rng: Arc::new(SeededRng::new(dice_of(world.seed, life))),
        rules: world.rules().map_err(|problem| world.fail(&problem)).ok()?,
        settings: settings(world),
    };
    match life.answer(Engine::start(parts)).await {
        Some(Ok(engine)) => Some(engine),
        Some(Err(error)) => {
            life.end();
            world.faults.count(Fault::StartFailed);
            world.trace.say(format_args!("server {} could not start: {error}", life.name()));
            None
        }
        None => {
            world.faults.count(Fault::StartFailed);
            None
        }
    }
}

/// No two lives draw the same.
fn dice_of(seed: u64, life: &Life) -> u64 {
    seed.wrapping_mul(1_000_003).wrapping_add(life.number).wrapping_add(life.server as u64 * 100_003)
}
