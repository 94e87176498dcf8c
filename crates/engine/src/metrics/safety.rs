//! What can be scraped of the safety kernel's circuit.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use reveille_core::breaker::Breaker;
use reveille_core::id::Topic;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TopicLabel {
    topic: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CircuitLabel {
    circuit: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TurnLabel {
    circuit: &'static str,
    to: &'static str,
}

#[derive(Default)]
pub struct SafetyMetrics {
    input_fail_open: Family<TopicLabel, Counter>,
    circuit: Family<CircuitLabel, Gauge>,
    turns: Family<TurnLabel, Counter>,
}

impl SafetyMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "input_fail_open",
            "Jobs that were allowed because the safety kernel could not be asked",
            metrics.input_fail_open.clone(),
        );
        registry.register(
            "safety_circuit",
            "The safety kernel's circuit: 0 closed, 1 half-open, 2 open",
            metrics.circuit.clone(),
        );
        registry.register(
            "safety_circuit_turns",
            "How often the safety kernel's circuit came to be closed, half-open or open",
            metrics.turns.clone(),
        );
        metrics
    }

    /// The topic is one that has a series of its own already.
    pub fn failed_open(&self, topic: &Topic) {
        self.input_fail_open.get_or_create(&TopicLabel { topic: topic.to_string() }).inc();
    }

    pub fn turned(&self, circuit: &'static str, to: &'static str) {
        self.turns.get_or_create(&TurnLabel { circuit, to }).inc();
    }

    pub fn stands(&self, circuit: &'static str, breaker: Breaker) {
        let number = match breaker {
            Breaker::Closed { .. } => 0,
            Breaker::HalfOpen { .. } => 1,
            Breaker::Open { .. } => 2,
        };
        self.circuit.get_or_create(&CircuitLabel { circuit }).set(number);
    }
}
