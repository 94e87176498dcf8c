//! The engine's own heartbeat: which members are dead by now, and which jobs time has caught up with.

use crate::engine::Engine;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

const TICK: Duration = Duration::from_millis(20);
/// A tick this late means that we were not listening either.
const ABSENCE_MS: i64 = 2_000;

/// Members that were restored have been waiting for us since `hydrated_at`; a start that took long is an
/// absence like any other.
pub async fn run(engine: Engine, hydrated_at: Instant) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = hydrated_at;
    loop {
        interval.tick().await;
        // While nothing can be heard nobody's silence counts, and nothing can be sent.
        if !engine.bus().is_up() {
            continue;
        }
        let here = Instant::now();
        let away_ms = (here - last).as_millis() as i64;
        last = here;
        let now = engine.now();
        if away_ms > ABSENCE_MS {
            tracing::warn!(away_ms, "this server was stalled or off the bus; worker TTLs extended");
            engine.fleet().forgive(away_ms, now);
        }
        engine.fleet().expire(now);
        engine.jobs().run_due(now);
    }
}
