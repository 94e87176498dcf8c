//! Promises with a time in them, looked at several times a second: the dead are noticed, the living
//! are not buried, deadlines fire, nobody waits beside an idle worker, and the safety net is not needed.

mod agents;
pub mod drains;
mod jobs;
pub mod limits;
mod net;
mod shared;
pub mod views;
mod workers;
mod workspaces;

pub use agents::{AgentKey, AgentsWatched};
pub use workers::WorkersWatched;
pub use workspaces::WorkspacesWatched;

use crate::invariants::InvariantResult;
use crate::world::{World, sleep_ms};
use reveille_core::time::Millis;
use std::sync::{Arc, Mutex, PoisonError};

/// How late a death may be noticed.
const NOTICED_MS: i64 = 100;
/// A store that failed is left alone for a second; a slow answer may be on its way for three.
const RECOVERS_MS: i64 = 1_100;
/// What has arrived in this very moment may not have been read.
const SETTLED_MS: i64 = 2;
const TICK_MS: i64 = 50;
/// Not a divisor of anything the engine does.
const LOOK_MS: i64 = 230;

/// The last that was heard of a member of the fleet.
#[derive(Debug, Clone, Copy, Default)]
pub struct LastHeard {
    pub at: Millis,
    /// Each pause of the server may have been taken for a little longer than it was.
    pub doubt_ms: i64,
}

impl LastHeard {
    pub fn at(at: Millis) -> Self {
        Self { at, doubt_ms: 0 }
    }

    /// The server stood still: that time counts for nobody.
    pub fn paused(&mut self, ms: i64) {
        self.at = self.at + ms;
        self.doubt_ms += TICK_MS;
    }

    /// The latest that the server may take it to have been.
    pub fn latest(&self) -> Millis {
        self.at + self.doubt_ms
    }
}

/// When a port or the server last gave anybody trouble.
#[derive(Default)]
pub struct Calm(Mutex<Millis>);

impl Calm {
    pub fn disturbed(&self, at: Millis) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (*last).max(at);
    }

    pub fn since(&self) -> Millis {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) + RECOVERS_MS
    }
}

/// Looks again and again.
pub async fn watch(world: Arc<World>) {
    loop {
        sleep_ms(LOOK_MS).await;
        let verdict = if world.plan.is_shared() { shared::look(&world) } else { look_at_the_one(&world) };
        if let Err(words) = verdict {
            world.fail(&words);
        }
    }
}

/// One server alone, and all that it says.
fn look_at_the_one(world: &World) -> InvariantResult {
    let server = world.server(0);
    let Some((engine, life)) = server.engine() else { return Ok(()) };
    let mut seen = server.watched.seen();
    if seen.life != life.number {
        return Ok(());
    }
    let (now, seen) = (world.now(), &mut *seen);
    seen.look(world, &engine, now)?;
    jobs::look(world, &engine, seen, now)?;
    net::look(world, &engine, seen, now)?;
    agents::look(world, &engine, now)?;
    workspaces::look(world, &engine, now)
}
