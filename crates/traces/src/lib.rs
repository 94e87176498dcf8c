//! The Traces port: where the spans of ended jobs go, and its adapters.
//!
//! What the spans are, `core::trace` reads off the job. Here they only travel: to nowhere, or to a collector
//! that speaks OTLP over HTTP. A collector that is slow or away costs spans, never jobs.

mod otlp;

pub use otlp::{BadHeaders, Collector, Otlp, QUEUE_MAX, headers};

use reveille_core::job::Job;
use std::sync::Arc;
use std::time::Duration;

/// The port.
#[async_trait::async_trait]
pub trait Traces: Send + Sync + 'static {
    /// Whether they go anywhere. Where they do not, nobody works out what they would be.
    fn are_wanted(&self) -> bool {
        true
    }

    /// Takes a job whose story is over. It never waits: what there is no room for is dropped and counted.
    fn export(&self, job: &Arc<Job>);

    /// What became of the jobs that were told so far.
    fn counts(&self) -> TraceCounts;

    /// Takes nothing more, and sends what it has as long as the patience lasts.
    async fn finish(&self, patience: Duration);
}

/// Jobs, by what became of their spans, and requests that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceCounts {
    pub exported: u64,
    pub dropped: u64,
    /// Requests to the collector that were not answered, or not well. They may have been repeated.
    pub failures: u64,
}

/// For those who want no traces.
pub struct Nowhere;

#[async_trait::async_trait]
impl Traces for Nowhere {
    fn are_wanted(&self) -> bool {
        false
    }

    fn export(&self, _job: &Arc<Job>) {}

    fn counts(&self) -> TraceCounts {
        TraceCounts::default()
    }

    async fn finish(&self, _patience: Duration) {}
}
