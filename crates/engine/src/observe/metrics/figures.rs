//! The server's own figures, for those who draw them. They are counted where the metrics page counts, over all topics, so
//! that both say the same.

use super::{LATENCY_SECONDS, Metrics};
use prometheus_client::metrics::counter::Counter;
use reveille_core::job::State;
use reveille_core::time::Millis;

/// One for each span of [`LATENCY_SECONDS`], and one for what took longer.
const SPANS: usize = LATENCY_SECONDS.len() + 1;

#[derive(Default)]
pub(super) struct Totals {
    pub received: Counter,
    succeeded: Counter,
    failed: Counter,
    dispatched: [Counter; SPANS],
}

impl Totals {
    pub fn ended(&self, state: State) {
        let total = if state == State::Succeeded { &self.succeeded } else { &self.failed };
        total.inc();
    }

    pub fn dispatched(&self, seconds: f64) {
        self.dispatched[LATENCY_SECONDS.partition_point(|span| *span < seconds)].inc();
    }
}

/// What the counters say at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    pub received: u64,
    pub succeeded: u64,
    /// Jobs that ended in any other way.
    pub failed: u64,
    pub live: usize,
    /// Nothing before this server has written one.
    pub snapshot_age_ms: Option<i64>,
    /// Dispatches that took as long as one of the spans, and not as long as the one before.
    dispatched: [u64; SPANS],
}

impl Figures {
    /// Within how many milliseconds all but one of a hundred dispatches since `before` were made; nothing if there was
    /// none.
    pub fn p99_ms_since(&self, before: &Self) -> Option<f64> {
        let since: Vec<u64> = self
            .dispatched
            .iter()
            .zip(&before.dispatched)
            .map(|(now, then)| now.saturating_sub(*then))
            .collect();
        let all: u64 = since.iter().sum();
        let mut so_far = 0;
        let span = since.iter().position(|count| {
            so_far += count;
            all > 0 && so_far * 100 >= all * 99
        });
        span.map(|span| LATENCY_SECONDS.get(span).map_or(f64::INFINITY, |seconds| seconds * 1000.0))
    }
}

impl Metrics {
    pub(crate) fn figures(&self, now: Millis, live: usize) -> Figures {
        let totals = &self.totals;
        Figures {
            received: totals.received.get(),
            succeeded: totals.succeeded.get(),
            failed: totals.failed.get(),
            live,
            snapshot_age_ms: self.fleet.snapshot_age_ms(now),
            dispatched: std::array::from_fn(|span| totals.dispatched[span].get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_between_two_looks() {
        let metrics = Metrics::default();
        let look = || metrics.figures(Millis(1_000), 4);
        metrics.totals.dispatched(200.0);
        let before = look();
        assert_eq!((before.p99_ms_since(&before), before.snapshot_age_ms), (None, None));
        for _ in 0..199 {
            metrics.totals.dispatched(0.004);
            metrics.totals.ended(State::Succeeded);
        }
        metrics.totals.dispatched(0.02);
        metrics.totals.ended(State::Denied);
        let after = look();
        assert_eq!((after.succeeded, after.failed, after.live), (199, 1, 4));
        assert_eq!(after.p99_ms_since(&before), Some(5.0));
        metrics.totals.dispatched(1_000.0);
        assert_eq!(look().p99_ms_since(&after), Some(f64::INFINITY));
    }
}
