//! Operators who take workers and pools out of service for a while, and put them back.

use crate::faults::Fault;
use crate::world::{World, sleep_ms};
use reveille_core::id::{PoolId, WorkerId};
use reveille_core::presence::Drained;
use reveille_core::time::Millis;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The drains that were acknowledged and that nobody has begun to take back.
#[derive(Default)]
pub struct Drains(Mutex<BTreeMap<Drained, DrainRecord>>);

/// Since when a drain is certain, and until when, by the server's clock, jobs may stay.
#[derive(Debug, Clone, Copy)]
pub struct DrainRecord {
    pub since: Millis,
    pub until: Millis,
}

impl Drains {
    fn held(&self) -> MutexGuard<'_, BTreeMap<Drained, DrainRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of_worker(&self, worker: &WorkerId) -> Option<DrainRecord> {
        self.held().get(&Drained::Worker(worker.clone())).copied()
    }

    pub fn of_pool(&self, pool: &PoolId) -> Option<DrainRecord> {
        self.held().get(&Drained::Pool(pool.clone())).copied()
    }

    pub fn are_there(&self) -> bool {
        !self.held().is_empty()
    }
}

/// Drains something now and then; when faults stop, everything is back in service.
pub async fn drain_now_and_then(world: Arc<World>) {
    loop {
        sleep_ms(world.rng.between(5_000, 60_000)).await;
        if !world.strikes(Fault::WorkerDrained) {
            continue;
        }
        let worker = world.rng.pick(world.workers());
        if world.is_spared(worker) {
            continue;
        }
        let plan = &worker.plan;
        let what = match world.rng.below(4) {
            0 if !plan.careful => Drained::Pool(plan.pool.clone()),
            _ => Drained::Worker(plan.name.clone()),
        };
        drain(&world, &what).await;
        let end = world.now() + world.rng.skewed(1_000, 180_000);
        while world.faults.are_on() && world.now() < end {
            sleep_ms(1_000).await;
        }
        // From here on it may be in service at any moment.
        world.drains.held().remove(&what);
        while !undrain(&world, &what).await {
            sleep_ms(world.rng.between(500, 5_000)).await;
        }
    }
}

async fn drain(world: &World, what: &Drained) {
    let Some((engine, life)) = world.engine() else { return };
    let seconds = world.rng.between(1, 60) as u32;
    let done = life.answer(engine.fleet().drain_workers(what.clone(), seconds, "op")).await;
    world.trace.say(format_args!("op drains {what:?} for {seconds} s: {}", matches!(done, Some(Ok(_)))));
    if let Some(Ok(drain)) = done {
        world.drains.held().insert(what.clone(), DrainRecord { since: world.now(), until: drain.until });
    }
}

async fn undrain(world: &World, what: &Drained) -> bool {
    let Some((engine, life)) = world.engine() else { return false };
    let done = life.answer(engine.fleet().undrain_workers(what.clone(), "op")).await;
    world.trace.say(format_args!("op puts {what:?} back: {}", matches!(done, Some(Ok(_)))));
    matches!(done, Some(Ok(_)))
}
