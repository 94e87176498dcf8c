//! What is seen of the engine: the events that are streamed, the metrics that are scraped, the traces that are
//! exported, logs that do not flood, and the audit trail of what belongs to no job, with its checkpoints.
//!
//! The lowest room: it is told, and calls nobody.

pub mod audit_writer;
pub mod checkpoints;
pub mod events;
pub mod metrics;
mod throttled_log;
mod tracing;

pub use throttled_log::Trouble;
pub use tracing::{context_of, with_context};

use crate::runtime::Runtime;
use events::{Audience, EventId, Events, Reader, SubscribeError};
use metrics::Metrics;
use reveille_traces::{TraceCounts, Traces};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use throttled_log::ThrottledLog;

/// A handle; clones are the same.
#[derive(Clone)]
pub struct Observe(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    events: Arc<Events>,
    metrics: Metrics,
    traces: Arc<dyn Traces>,
    log: ThrottledLog,
}

impl Observe {
    pub fn new(runtime: Runtime, events: Events, traces: Arc<dyn Traces>) -> Self {
        let events = events.limited(runtime.settings().limits.subscribers_per_tenant);
        let (metrics, log) = (Metrics::default(), ThrottledLog::default());
        Self(Arc::new(Inner { runtime, events: Arc::new(events), metrics, traces, log }))
    }

    pub fn events(&self) -> &Arc<Events> {
        &self.0.events
    }

    /// Reads events on from `after`, or from now on. Whoever is refused is counted.
    pub fn subscribe(&self, audience: Audience, after: Option<EventId>) -> Result<Reader, SubscribeError> {
        self.0.events.subscribe(audience, after).inspect_err(|error| {
            if let SubscribeError::Tenant(over) = error {
                self.metrics().over_quota(*over);
            }
        })
    }

    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// `what` happened to `whom`; said once in a while, with how often it was not said.
    pub fn log(&self, trouble: Trouble, what: &str, whom: &dyn Display, error: &dyn Display) {
        self.0.log.of(trouble).warn(self.0.runtime.now(), what, whom, error);
    }

    pub fn trace_counts(&self) -> TraceCounts {
        self.0.traces.counts()
    }

    /// Waits for spans that are on their way, for so long at most.
    pub async fn flush_traces(&self, patience: Duration) {
        self.0.traces.finish(patience).await;
    }
}
