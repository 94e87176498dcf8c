//! What can be scraped of output policy.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use reveille_core::id::Topic;
use reveille_core::output::{OutputDecision, Stage};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TopicLabel {
    topic: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PhaseLabel {
    topic: String,
    phase: &'static str,
}

pub struct OutputMetrics {
    checked: Family<TopicLabel, Counter>,
    quarantined: Family<TopicLabel, Counter>,
    skipped: Family<TopicLabel, Counter>,
    latency: Family<PhaseLabel, Histogram>,
}

impl OutputMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let latency: fn() -> Histogram =
            || Histogram::new([0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0]);
        let metrics = Self {
            checked: Family::default(),
            quarantined: Family::default(),
            skipped: Family::default(),
            latency: Family::new_with_constructor(latency),
        };
        registry.register("output_policy_checked", "Results that were looked at", metrics.checked.clone());
        registry.register(
            "output_policy_quarantined",
            "Results that were held back",
            metrics.quarantined.clone(),
        );
        registry.register(
            "output_policy_skipped",
            "Results that could not be looked at",
            metrics.skipped.clone(),
        );
        registry.register("output_check_latency_seconds", "How long a look took", metrics.latency.clone());
        metrics
    }

    /// The topic is one that has a series of its own already.
    pub fn checked(&self, topic: &Topic, stage: Stage, decision: OutputDecision, seconds: f64) {
        let label = TopicLabel { topic: topic.to_string() };
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

    pub fn skipped(&self, topic: &Topic) {
        self.skipped.get_or_create(&TopicLabel { topic: topic.to_string() }).inc();
    }
}
