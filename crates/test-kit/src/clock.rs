//! The one clock of the tests.

use reveille_core::time::Millis;
use reveille_engine::{Clock, SystemClock};
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::time::Instant;

/// Where a clock starts unless a test says otherwise: 2026-11-15T12:00:00Z.
pub const NOON: Millis = Millis(1_794_744_000_000);

/// Follows tokio's time: a test on paused time decides how late it is. Somebody may set it, as somebody sets clocks.
pub struct TestClock {
    start: Millis,
    /// None for a clock that stands still.
    began: Option<Instant>,
    ahead_ms: AtomicI64,
}

impl TestClock {
    pub fn starting_at(start: Millis) -> Self {
        Self { start, began: Some(Instant::now()), ahead_ms: AtomicI64::new(0) }
    }

    /// The wall's time, where others look at it too.
    pub fn of_the_wall() -> Self {
        Self::starting_at(SystemClock::start().now())
    }

    pub fn standing_still() -> Self {
        Self { began: None, ..Self::starting_at(NOON) }
    }

    /// Puts the clock forward, or back.
    pub fn shift(&self, ms: i64) {
        self.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::starting_at(NOON)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Millis {
        let elapsed_ms = self.began.map_or(0, |began| began.elapsed().as_millis() as i64);
        self.start + elapsed_ms + self.ahead_ms.load(Ordering::Relaxed)
    }
}
