//! What can be scraped of the safety kernel's circuit.

use super::{MetricsPage, PerTopic, TopicLabel};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use reveille_core::breaker::Breaker;

/// Questions about jobs and about results fail apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Circuit {
    Input,
    Output,
}

impl Circuit {
    pub const ALL: [Self; 2] = [Self::Input, Self::Output];

    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
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

pub struct SafetyMetrics {
    input_fail_open: PerTopic<Counter>,
    circuit: Family<CircuitLabel, Gauge>,
    turns: Family<TurnLabel, Counter>,
}

impl SafetyMetrics {
    pub(super) fn list(page: &mut MetricsPage) -> Self {
        let open = "Jobs that were allowed because the safety kernel could not be asked";
        let turns = "How often the circuit came to be closed, half-open or open";
        let metrics = Self {
            input_fail_open: page.list("input_fail_open", open),
            circuit: page
                .list("safety_circuit", "The safety kernel's circuit: 0 closed, 1 half-open, 2 open"),
            turns: page.list("safety_circuit_turns", turns),
        };
        for circuit in Circuit::ALL.map(Circuit::name) {
            for to in Breaker::NAMES {
                drop(metrics.turns.get_or_create(&TurnLabel { circuit, to }));
            }
        }
        metrics
    }

    pub(super) fn begin(&self, label: &TopicLabel) {
        drop(self.input_fail_open.get_or_create(label));
    }

    pub(super) fn failed_open(&self, label: &TopicLabel) {
        self.input_fail_open.get_or_create(label).inc();
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
