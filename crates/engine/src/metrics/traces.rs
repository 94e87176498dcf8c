//! What became of the spans of ended jobs.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use reveille_traces::Counts;
use std::sync::atomic::Ordering;

#[derive(Default)]
pub(crate) struct TraceMetrics {
    exported: Counter,
    dropped: Counter,
    failures: Counter,
}

impl TraceMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let list = [
            ("trace_jobs_exported", "Jobs whose spans the collector has taken", &metrics.exported),
            (
                "trace_jobs_dropped",
                "Jobs whose spans were dropped: the queue was full, or the collector did not take them",
                &metrics.dropped,
            ),
            ("trace_export_failures", "Requests to the collector that failed", &metrics.failures),
        ];
        for (name, help, counter) in list {
            registry.register(name, help, counter.clone());
        }
        metrics
    }

    /// The exporter counts by itself; here it is only shown. Two who look at once do not count twice.
    pub fn look(&self, now: Counts) {
        for (counter, count) in
            [(&self.exported, now.exported), (&self.dropped, now.dropped), (&self.failures, now.failures)]
        {
            counter.inner().fetch_max(count, Ordering::Relaxed);
        }
    }
}
