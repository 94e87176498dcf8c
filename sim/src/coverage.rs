//! What the runs have met. A set of runs that met too little proves nothing and counts as failed.

use crate::faults::Fault;
use crate::situations::Situation;
use reveille_core::job::{Event, State};
use std::collections::BTreeMap;
use std::fmt::Write;

/// At least this many of a hundred jobs must succeed, or the world is too hostile to be instructive.
const SUCCEEDED_PERCENT_MIN: u64 = 35;

#[derive(Debug, Clone, Default)]
pub struct Coverage {
    pub seeds: u64,
    /// Of the seeds, those whose world has several servers.
    pub shared_seeds: u64,
    pub jobs: u64,
    pub runs: u64,
    /// Of the runs, those that the reference had a say in, and how many of them were shared by servers.
    pub compared: u64,
    pub compared_shared: u64,
    /// Runs of which a job was given up: nobody can foresee how they end.
    pub spared: u64,
    pub commits: u64,
    pub virtual_ms: i64,
    /// Jobs that the safety net had to see to.
    pub caught: u64,
    pub states: BTreeMap<State, u64>,
    pub endings: BTreeMap<State, u64>,
    pub events: BTreeMap<Event, u64>,
    pub faults: BTreeMap<Fault, u64>,
    pub situations: BTreeMap<Situation, u64>,
}

impl Coverage {
    pub fn merge(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.shared_seeds += other.shared_seeds;
        self.jobs += other.jobs;
        self.runs += other.runs;
        self.compared += other.compared;
        self.compared_shared += other.compared_shared;
        self.spared += other.spared;
        self.commits += other.commits;
        self.virtual_ms += other.virtual_ms;
        self.caught += other.caught;
        add(&mut self.states, &other.states);
        add(&mut self.endings, &other.endings);
        add(&mut self.events, &other.events);
        add(&mut self.faults, &other.faults);
        add(&mut self.situations, &other.situations);
    }

    /// What was never met, in words.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for state in State::ALL.iter().filter(|state| !self.states.contains_key(state)) {
            missing.push(format!("no job was ever {state}"));
        }
        for event in Event::ALL.iter().filter(|event| !self.events.contains_key(event)) {
            missing.push(format!("the event {event} never happened"));
        }
        for fault in Fault::ALL.iter().filter(|fault| !self.faults.contains_key(fault)) {
            missing.push(format!("the fault \"{}\" never happened", fault.as_str()));
        }
        for sight in Situation::ALL.iter().filter(|sight| !self.situations.contains_key(sight)) {
            missing.push(format!("nobody saw \"{}\"", sight.as_str()));
        }
        let succeeded = self.endings.get(&State::Succeeded).copied().unwrap_or_default();
        if succeeded * 100 < self.jobs * SUCCEEDED_PERCENT_MIN {
            missing.push(format!("only {succeeded} of {} jobs succeeded", self.jobs));
        }
        for (compared, which) in [(self.compared, "run"), (self.compared_shared, "run that servers share")] {
            if compared == 0 {
                missing.push(format!("no {which} was compared with the reference"));
            }
        }
        missing
    }

    pub fn table(&self) -> String {
        let mut table = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(table, "  {name:<24}{value:>12}");
        };
        line("seeds", self.seeds.to_string());
        line("  of several servers", self.shared_seeds.to_string());
        line("jobs", self.jobs.to_string());
        line("runs", self.runs.to_string());
        line("runs compared", self.compared.to_string());
        line("  of several servers", self.compared_shared.to_string());
        line("runs spared", self.spared.to_string());
        line("commits", self.commits.to_string());
        line("caught by the net", self.caught.to_string());
        line("virtual hours", format!("{:.1}", self.virtual_ms as f64 / 3_600_000.0));
        for (title, counts) in [
            ("endings", named(&self.endings, State::as_str)),
            ("states", named(&self.states, State::as_str)),
            ("events", named(&self.events, Event::as_str)),
            ("faults", named(&self.faults, Fault::as_str)),
            ("situations", named(&self.situations, Situation::as_str)),
        ] {
            let _ = writeln!(table, "{title}");
            for (name, count) in counts {
                let _ = writeln!(table, "  {name:<24}{count:>12}");
            }
        }
        table
    }
}

fn add<K: Ord + Copy>(sum: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, count) in more {
        *sum.entry(*key).or_default() += count;
    }
}

fn named<K: Copy>(counts: &BTreeMap<K, u64>, name: fn(K) -> &'static str) -> Vec<(&'static str, u64)> {
    counts.iter().map(|(key, count)| (name(*key), *count)).collect()
}
