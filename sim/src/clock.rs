//! Virtual time: a fixed moment plus what the paused runtime says has passed.

use reveille_core::time::Millis;
use tokio::time::Instant;

/// Any moment will do; this one is not on a round number of anything.
const BASE: Millis = Millis(1_800_000_012_345);

#[derive(Clone, Copy)]
pub struct SimClock(Instant);

impl SimClock {
    /// Call it inside the runtime: outside there is no virtual time.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn elapsed_ms(&self) -> i64 {
        self.0.elapsed().as_millis() as i64
    }

    pub fn now(&self) -> Millis {
        BASE + self.elapsed_ms()
    }
}

impl reveille_engine::Clock for SimClock {
    fn now(&self) -> Millis {
        Self::now(self)
    }
}
