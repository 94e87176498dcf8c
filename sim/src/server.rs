//! The server: an engine that dies and is started again on the same store.

use crate::breakage::Breakage;
use crate::bus::SimBus;
use crate::courier::SimCourier;
use crate::faults::Fault;
use crate::kernel::SimKernel;
use crate::roster::SimRoster;
use crate::sights::Sight;
use crate::store::SimStore;
use crate::stories::SimTraces;
use crate::world::{World, sleep_ms};
use reveille_engine::{Engine, Parts, SeededDice, Settings};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// One life of the server, from a start to a death.
#[derive(Clone)]
pub struct Life {
    pub number: u64,
    ended: CancellationToken,
}

impl Life {
    pub fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    pub fn end(&self) {
        self.ended.cancel();
    }

    /// A call into a dead server never returns.
    pub async fn or_never(&self) {
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    /// The answer, unless the server dies first.
    pub async fn answer<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.ended.cancelled() => None,
            answer = call => Some(answer),
        }
    }
}

#[derive(Default)]
pub struct Server {
    up: Mutex<Option<(Engine, Life)>>,
}

impl Server {
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
}

/// Starts the server whenever it is down, for as long as the run lasts.
pub async fn supervise(world: Arc<World>) {
    for number in 0.. {
        let life = Life { number, ended: CancellationToken::new() };
        world.trace.say(format_args!("server {number} starts"));
        if world.strikes(Fault::ClockSet) {
            let reach_ms = *world.dice.pick(&[2_000, 60_000, 3_600_000]);
            let ahead_ms = world.dice.between(-reach_ms, reach_ms);
            world.trace.say(format_args!("the clock is {ahead_ms} ms ahead"));
            world.server_clock.set(ahead_ms);
        }
        world.watched.new_life(number);
        world.agents_watched.new_life();
        world.workspaces_watched.new_life();
        if let Some(engine) = start(&world, &life).await {
            // The rules may have changed while it started.
            if let Ok(rules) = world.rules() {
                engine.use_rules(rules);
            }
            let knew_anybody = world.watched.up(world.now());
            world.agents_watched.up(world.now());
            world.workspaces_watched.up(world.now());
            world.sights.saw(if knew_anybody { Sight::WarmStart } else { Sight::ColdStart });
            if world.drains.are_there() {
                world.sights.saw(Sight::DrainOutlived);
            }
            world.server.set(Some((engine.clone(), life.clone())));
            life.ended.cancelled().await;
            world.server.set(None);
            engine.kill();
        }
        world.network.server_is_gone();
        let down_ms = if world.faults.are_on() { world.dice.skewed(50, 60_000) } else { 100 };
        world.trace.say(format_args!("server {number} is down for {down_ms} ms"));
        sleep_ms(down_ms).await;
    }
}

fn settings(world: &World) -> Settings {
    // In every other world people have to be quick.
    let approval_ms = world.seed.is_multiple_of(2).then_some(20_000);
    let mut settings = Settings { approval_ms, ..Settings::default() };
    if world.breakage == Some(Breakage::IgnoreAgentTtl) {
        settings.ttls.voicegateway_ms *= 1_000;
    }
    settings
}

async fn start(world: &Arc<World>, life: &Life) -> Option<Engine> {
    let parts = Parts {
        store: Arc::new(SimStore::new(world.clone(), life.clone())),
        roster: Arc::new(SimRoster::new(world.clone(), life.clone())),
        flows: Arc::new(reveille_flows::MemoryFlows::default()),
        courier: Arc::new(SimCourier::new(world.clone(), life.clone())),
        kernel: SimKernel::of(world, life),
        bus: Arc::new(SimBus::new(world.clone(), life.clone())),
        traces: Arc::new(SimTraces(world.clone())),
        clock: Arc::new(world.server_clock.clone()),
        dice: Arc::new(SeededDice::new(world.seed.wrapping_mul(1_000_003).wrapping_add(life.number))),
        rules: world.rules().map_err(|problem| world.fail(&problem)).ok()?,
        settings: settings(world),
    };
    match life.answer(Engine::start(parts)).await {
        Some(Ok(engine)) => Some(engine),
        Some(Err(error)) => {
            life.end();
            world.faults.count(Fault::StartFailed);
            world.trace.say(format_args!("server {} could not start: {error}", life.number));
            None
        }
        None => {
            world.faults.count(Fault::StartFailed);
            None
        }
    }
}
