//! What became of the spans of ended jobs.

use super::MetricsPage;
use prometheus_client::metrics::counter::Counter;
use reveille_traces::TraceCounts;
use std::sync::atomic::Ordering;

pub(super) struct TraceMetrics {
    exported: Counter,
    dropped: Counter,
    failures: Counter,
}

impl TraceMetrics {
    pub fn list(page: &mut MetricsPage) -> Self {
        let dropped = "Jobs whose spans were dropped: the queue was full, or the collector did not take them";
        Self {
            exported: page.list("trace_jobs_exported", "Jobs whose spans the collector has taken"),
            dropped: page.list("trace_jobs_dropped", dropped),
            failures: page.list("trace_export_failures", "Requests to the collector that failed"),
        }
    }

    /// The exporter counts by itself; here it is only shown. Two who look at once do not count twice.
    pub fn look(&self, now: TraceCounts) {
        for (counter, count) in
            [(&self.exported, now.exported), (&self.dropped, now.dropped), (&self.failures, now.failures)]
        {
            counter.inner().fetch_max(count, Ordering::Relaxed);
        }
    }
}
