//! The safety net is not needed: what it would see to, timers have seen to.

use super::LOOK_MS;
use super::workers::WorkersSeen;
use crate::breakage::Breakage;
use crate::invariants::InvariantResult;
use crate::world::World;
use reveille_core::time::Millis;
use reveille_engine::Engine;
use std::sync::atomic::Ordering;

/// How long timers may need to catch up with what they could not do for a while.
const CAUGHT_UP_MS: i64 = 5_000;

/// The same where the jobs of a server that died have to be taken over first.
const CAUGHT_UP_SHARED_MS: i64 = 15_000;

pub fn look(world: &World, engine: &Engine, seen: &mut WorkersSeen, now: Millis) -> InvariantResult {
    let caught = engine.metrics().net_acted();
    let just_now = caught - std::mem::replace(&mut seen.caught, caught);
    world.caught.fetch_add(just_now, Ordering::Relaxed);
    let Some(recovered_at) = seen.recovered_at else { return Ok(()) };
    if just_now > 0 {
        world.trace.say(format_args!("the net caught {just_now}"));
    }
    if just_now == 0 || world.breakage.is_some_and(Breakage::loses_timers) {
        return Ok(());
    }
    let calm_ms = now.since(recovered_at.max(world.calm.since())) - LOOK_MS;
    let caught_up_ms = if world.plan.is_shared() { CAUGHT_UP_SHARED_MS } else { CAUGHT_UP_MS };
    if calm_ms > caught_up_ms {
        return Err(format!("the safety net had to act after {calm_ms} ms of calm"));
    }
    Ok(())
}
