//! Virtual time: a fixed moment plus what the paused runtime says has passed.

use reveille_core::time::Millis;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
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

/// What a server takes for the time: somebody may set it while the server is down, and while the server is
/// stopped it sees no time pass.
#[derive(Clone)]
pub struct ServerClock {
    truth: SimClock,
    ahead_ms: Arc<AtomicI64>,
    /// What it showed when the server was stopped; zero while it runs.
    stopped: Arc<AtomicI64>,
}

impl ServerClock {
    pub fn new(truth: SimClock) -> Self {
        Self { truth, ahead_ms: Arc::default(), stopped: Arc::default() }
    }

    pub fn set(&self, ahead_ms: i64) {
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
    }

    pub fn ahead_ms(&self) -> i64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    pub fn stop(&self) {
        self.stopped.store(self.now().0, Ordering::Relaxed);
    }

    pub fn go_on(&self) {
        self.stopped.store(0, Ordering::Relaxed);
    }

    pub fn now(&self) -> Millis {
        match self.stopped.load(Ordering::Relaxed) {
            0 => self.truth.now() + self.ahead_ms(),
            stopped => Millis(stopped),
        }
    }

    /// When, in truth, the server's clock as it is set now shows this moment.
    pub fn shows(&self, moment: Millis) -> Millis {
        moment - self.ahead_ms()
    }
}

impl reveille_engine::Clock for ServerClock {
    fn now(&self) -> Millis {
        Self::now(self)
    }
}
