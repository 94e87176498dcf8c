//! What can be scraped of sagas: those that clients drive, and rollbacks of our own workflows.

use super::MetricsPage;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use reveille_core::flow::{Node, NodeKey, RunHead, RunOrigin};
use reveille_core::id::RunId;
use rustc_hash::FxHashSet;
use std::sync::{Mutex, PoisonError};

const ROLLBACK_SECONDS: [f64; 7] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

pub(crate) struct SagaMetrics {
    recorded: Counter,
    triggered: Counter,
    dispatched: Counter,
    failed: Counter,
    unreadable: Counter,
    active: Gauge,
    duration: Histogram,
    under_way: Mutex<FxHashSet<RunId>>,
}

impl SagaMetrics {
    pub(super) fn list(page: &mut MetricsPage) -> Self {
        Self {
            recorded: page.list("saga_recorded", "Compensations that were put down for later"),
            triggered: page.list("saga_rollback_triggered", "Rollbacks that began"),
            dispatched: page
                .list("saga_compensation_dispatched", "Compensations that were submitted as jobs"),
            failed: page
                .list("saga_compensation_failed", "Compensations that were denied or did not succeed"),
            unreadable: page.list("saga_unmarshal_error", "Compensations that could not be read"),
            active: page.list("saga_active", "Rollbacks under way"),
            duration: page.list_as(
                "saga_rollback_duration_seconds",
                "How long a rollback took",
                Histogram::new(ROLLBACK_SECONDS),
            ),
            under_way: Mutex::default(),
        }
    }

    pub fn recorded(&self, compensations: usize) {
        self.recorded.inc_by(compensations as u64);
    }

    pub fn triggered(&self) {
        self.triggered.inc();
    }

    pub fn dispatched(&self) {
        self.dispatched.inc();
    }

    pub fn unreadable(&self) {
        self.unreadable.inc();
    }

    /// A run was committed, or picked up after a start; `nodes` are the steps it changed.
    pub fn settled(&self, head: &RunHead, nodes: &[(NodeKey, Node)]) {
        if !matches!(head.origin, RunOrigin::Rollback { .. }) {
            return;
        }
        let gone = nodes.iter().filter(|(key, node)| key.round.is_some() && node.state.is_failure());
        self.failed.inc_by(gone.count() as u64);
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        match head.ended_at {
            None => drop(under_way.insert(head.id.clone())),
            // It is told of once, or it was over with its first commit.
            Some(at) if under_way.remove(&head.id) || head.revision == 1 => {
                self.duration.observe(at.since(head.created_at).max(0) as f64 / 1000.0);
            }
            Some(_) => {}
        }
        self.active.set(under_way.len() as i64);
    }
}
