//! What the tasks of one running worker share.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::blobs::BlobClient;
use crate::handler::Handler;
use crate::ledger::AssignmentLedger;
use crate::publisher::Publisher;
use crate::results::Results;

/// How many jobs may wait inside the worker for a slot. Beyond that they wait unread in the
/// subscription, and what overflows there is logged as lost.
pub const QUEUED_JOBS_MAX: usize = 10_000;

pub struct WorkerContext {
    pub handlers: BTreeMap<String, Handler>,
    pub publisher: Arc<Publisher>,
    pub blobs: BlobClient,
    pub ledger: AssignmentLedger,
    pub results: Results,
    /// As many handlers run at once.
    pub slots: Semaphore,
    /// As many jobs are here at once: running, or waiting for a slot.
    pub places: Arc<Semaphore>,
    pub jobs: TaskTracker,
    pub phase: ShutdownPhase,
}

/// The three steps of a shutdown, each a token that fires once.
#[derive(Clone)]
pub struct ShutdownPhase {
    /// No new jobs; those that are here go on.
    pub closing: CancellationToken,
    /// Jobs that still run are given back.
    pub abandoning: CancellationToken,
    /// Everything ends.
    pub over: CancellationToken,
}

impl ShutdownPhase {
    pub fn new() -> Self {
        let over = CancellationToken::new();
        Self { closing: over.child_token(), abandoning: over.child_token(), over }
    }
}
