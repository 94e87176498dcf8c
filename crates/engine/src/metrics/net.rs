//! What can be scraped of the safety net: that it is there, and how often it was needed.

use super::Page;
use crate::net::Net;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use reveille_core::job::State;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NetLabel {
    net: &'static str,
}

pub struct NetMetrics {
    passes: Family<NetLabel, Counter>,
    acted: Family<NetLabel, Counter>,
    left: Family<NetLabel, Counter>,
    /// The jobs that the last pass of each found.
    found: Mutex<BTreeMap<&'static str, BTreeMap<State, u64>>>,
}

impl NetMetrics {
    pub(super) fn list(page: &mut Page) -> Self {
        let metrics = Self {
            passes: page.list("safety_net_passes", "How often live jobs were gone through"),
            acted: page.list("safety_net_acted", "Jobs that no timer saw to, and the net did"),
            left: page.list("safety_net_left", "Jobs that the net could not see to either"),
            found: Mutex::default(),
        };
        for label in Net::ALL.map(label) {
            drop(metrics.passes.get_or_create(&label));
            drop(metrics.acted.get_or_create(&label));
            drop(metrics.left.get_or_create(&label));
        }
        metrics
    }

    pub fn passed(&self, net: Net, found: BTreeMap<State, u64>) {
        self.passes.get_or_create(&label(net)).inc();
        self.last_pass().insert(net.as_str(), found);
    }

    pub fn left(&self, net: Net) {
        self.left.get_or_create(&label(net)).inc();
    }

    pub(super) fn caught(&self, net: Net) {
        self.acted.get_or_create(&label(net)).inc();
    }

    pub(super) fn acted(&self) -> u64 {
        Net::ALL.map(|net| self.acted.get_or_create(&label(net)).get()).into_iter().sum()
    }

    /// Jobs of this state that the last passes found.
    pub(super) fn found(&self, state: State) -> u64 {
        self.last_pass().values().filter_map(|found| found.get(&state)).sum()
    }

    fn last_pass(&self) -> MutexGuard<'_, BTreeMap<&'static str, BTreeMap<State, u64>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn label(net: Net) -> NetLabel {
    NetLabel { net: net.as_str() }
}
