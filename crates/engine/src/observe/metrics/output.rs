//! What can be scraped of output policy.

use super::{MetricsPage, PerTopic, TopicLabel};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use reveille_core::output::{OutputDecision, Stage};

const LOOK_SECONDS: [f64; 11] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PhaseLabel {
    topic: String,
    phase: &'static str,
}

pub(super) struct OutputMetrics {
    checked: PerTopic<Counter>,
    quarantined: PerTopic<Counter>,
    skipped: PerTopic<Counter>,
    latency: Family<PhaseLabel, Histogram>,
}

impl OutputMetrics {
    pub fn list(page: &mut MetricsPage) -> Self {
        let look: fn() -> Histogram = || Histogram::new(LOOK_SECONDS);
        let latency = Family::new_with_constructor(look);
        Self {
            checked: page.list("output_policy_checked", "Results that were looked at"),
            quarantined: page.list("output_policy_quarantined", "Results that were held back"),
            skipped: page.list("output_policy_skipped", "Results that could not be looked at"),
            latency: page.list_as("output_check_latency_seconds", "How long a look took", latency),
        }
    }

    pub fn begin(&self, label: &TopicLabel) {
        for counter in [&self.checked, &self.quarantined, &self.skipped] {
            drop(counter.get_or_create(label));
        }
    }

    pub fn checked(&self, label: TopicLabel, stage: Stage, decision: OutputDecision, seconds: f64) {
        self.checked.get_or_create(&label).inc();
        if matches!(decision, OutputDecision::Quarantine | OutputDecision::Deny) {
            self.quarantined.get_or_create(&label).inc();
        }
        let phase = match stage {
            Stage::Sync => "sync",
            Stage::Async => "async",
        };
        self.latency.get_or_create(&PhaseLabel { topic: label.topic, phase }).observe(seconds);
    }

    pub fn skipped(&self, label: &TopicLabel) {
        self.skipped.get_or_create(label).inc();
    }
}
