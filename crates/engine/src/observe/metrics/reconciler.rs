//! What can be scraped of the reconciler: that it is there, and how often it was needed.

use super::MetricsPage;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use reveille_core::job::State;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The two passes over live jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Ends what has had its time.
    Reconciler,
    /// Moves on what stands still.
    Replayer,
}

impl Sweep {
    pub const ALL: [Self; 2] = [Self::Reconciler, Self::Replayer];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reconciler => "reconciler",
            Self::Replayer => "replayer",
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NetLabel {
    net: &'static str,
}

pub struct ReconcilerMetrics {
    passes: Family<NetLabel, Counter>,
    acted: Family<NetLabel, Counter>,
    left: Family<NetLabel, Counter>,
    /// The jobs that the last pass of each found.
    found: Mutex<BTreeMap<&'static str, BTreeMap<State, u64>>>,
}

impl ReconcilerMetrics {
    pub(super) fn list(page: &mut MetricsPage) -> Self {
        let metrics = Self {
            passes: page.list("safety_net_passes", "How often live jobs were gone through"),
            acted: page.list("safety_net_acted", "Jobs that no timer saw to, and the net did"),
            left: page.list("safety_net_left", "Jobs that the net could not see to either"),
            found: Mutex::default(),
        };
        for label in Sweep::ALL.map(label) {
            drop(metrics.passes.get_or_create(&label));
            drop(metrics.acted.get_or_create(&label));
            drop(metrics.left.get_or_create(&label));
        }
        metrics
    }

    pub fn passed(&self, sweep: Sweep, found: BTreeMap<State, u64>) {
        self.passes.get_or_create(&label(sweep)).inc();
        self.last_pass().insert(sweep.as_str(), found);
    }

    pub fn left(&self, sweep: Sweep) {
        self.left.get_or_create(&label(sweep)).inc();
    }

    pub(super) fn caught(&self, sweep: Sweep) {
        self.acted.get_or_create(&label(sweep)).inc();
    }

    pub(super) fn acted(&self) -> u64 {
        Sweep::ALL.map(|sweep| self.acted.get_or_create(&label(sweep)).get()).into_iter().sum()
    }

    /// Jobs of this state that the last passes found.
    pub(super) fn found(&self, state: State) -> u64 {
        self.last_pass().values().filter_map(|found| found.get(&state)).sum()
    }

    fn last_pass(&self) -> MutexGuard<'_, BTreeMap<&'static str, BTreeMap<State, u64>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn label(sweep: Sweep) -> NetLabel {
    NetLabel { net: sweep.as_str() }
}
