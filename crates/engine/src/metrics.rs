//! What can be scraped, under the names that dashboards of the reference know: `cordum_scheduler_…`.

mod fleet;
mod output;

use fleet::FleetMetrics;
use output::OutputMetrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use reveille_core::id::Topic;
use reveille_core::job::{Event, Job, Phase, State};
use reveille_core::reason::Reason;
use reveille_core::time::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// Topics that get a series of their own; anything beyond shares `other`, so that no client can fill
/// the memory with names.
const TOPICS_MAX: usize = 1_000;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TopicLabel {
    topic: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabel {
    state: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Completed {
    topic: String,
    status: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LimitLabel {
    limit: &'static str,
}

/// What held somebody back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A job was turned away: its tenant has too many.
    Queue,
    /// A call was turned away: its key calls too often.
    Rate,
    /// A new job has to wait for others of its tenant.
    Tenant,
    /// A new job has to wait for others of its topic.
    Topic,
}

impl Limit {
    const ALL: [Self; 4] = [Self::Queue, Self::Rate, Self::Tenant, Self::Topic];

    fn label(self) -> LimitLabel {
        let limit = match self {
            Self::Queue => "queue",
            Self::Rate => "rate",
            Self::Tenant => "tenant",
            Self::Topic => "topic",
        };
        LimitLabel { limit }
    }
}

pub struct Metrics {
    registry: Registry,
    topics: Mutex<BTreeSet<Topic>>,
    jobs_received: Family<TopicLabel, Counter>,
    jobs_dispatched: Family<TopicLabel, Counter>,
    jobs_completed: Family<Completed, Counter>,
    safety_denied: Family<TopicLabel, Counter>,
    dispatch_latency: Family<TopicLabel, Histogram>,
    orphan_replayed: Family<TopicLabel, Counter>,
    safety_unavailable: Family<TopicLabel, Counter>,
    job_lock_wait: Histogram,
    active_goroutines: Gauge,
    stale_jobs: Family<StateLabel, Gauge>,
    validation_rejections: Counter,
    limited: Family<LimitLabel, Counter>,
    workers: Gauge,
    live_jobs: Gauge,
    pub(crate) fleet: FleetMetrics,
    pub(crate) output: OutputMetrics,
}

/// What is counted only when somebody asks.
pub(crate) struct Moment {
    pub now: Millis,
    pub unconfirmed: usize,
    pub workers: usize,
    pub live_jobs: usize,
    pub tasks: usize,
    pub stale_jobs: BTreeMap<State, u64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("cordum_scheduler");
        let latency: fn() -> Histogram = || {
            Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0])
        };
        let metrics = Self {
            topics: Mutex::default(),
            jobs_received: Family::default(),
            jobs_dispatched: Family::default(),
            jobs_completed: Family::default(),
            safety_denied: Family::default(),
            dispatch_latency: Family::new_with_constructor(latency),
            orphan_replayed: Family::default(),
            safety_unavailable: Family::default(),
            job_lock_wait: latency(),
            active_goroutines: Gauge::default(),
            stale_jobs: Family::default(),
            validation_rejections: Counter::default(),
            limited: Family::default(),
            workers: Gauge::default(),
            live_jobs: Gauge::default(),
            fleet: FleetMetrics::register(&mut registry),
            output: OutputMetrics::register(&mut registry),
            registry: Registry::default(),
        };
        registry.register("jobs_received", "Jobs that were asked for", metrics.jobs_received.clone());
        registry.register(
            "jobs_dispatched",
            "Attempts that were given to workers",
            metrics.jobs_dispatched.clone(),
        );
        registry.register("jobs_completed", "Jobs that ended", metrics.jobs_completed.clone());
        registry.register("safety_denied", "Jobs that policy denied", metrics.safety_denied.clone());
        registry.register(
            "dispatch_latency_seconds",
            "From submit to dispatch",
            metrics.dispatch_latency.clone(),
        );
        registry.register(
            "orphan_replayed",
            "Attempts that were lost and queued again",
            metrics.orphan_replayed.clone(),
        );
        registry.register(
            "safety_unavailable",
            "Jobs that policy could not judge; the built-in policy always can",
            metrics.safety_unavailable.clone(),
        );
        registry.register(
            "job_lock_wait_seconds",
            "How long a decision waited for another about the same job",
            metrics.job_lock_wait.clone(),
        );
        registry.register("active_goroutines", "Tasks that run", metrics.active_goroutines.clone());
        registry.register(
            "stale_jobs",
            "Jobs that should have been looked at and were not",
            metrics.stale_jobs.clone(),
        );
        registry.register(
            "validation_rejections",
            "Packets that were refused",
            metrics.validation_rejections.clone(),
        );
        registry.register("limited", "Jobs and calls that a limit held back", metrics.limited.clone());
        for limit in Limit::ALL {
            drop(metrics.limited.get_or_create(&limit.label()));
        }
        registry.register("workers", "Workers that are known", metrics.workers.clone());
        registry.register("live_jobs", "Jobs that have not ended", metrics.live_jobs.clone());
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// The page, in the `OpenMetrics` text format.
    pub(crate) fn page(&self, now: &Moment) -> String {
        self.workers.set(now.workers as i64);
        self.fleet.look(now);
        self.live_jobs.set(now.live_jobs as i64);
        self.active_goroutines.set(now.tasks as i64);
        for state in State::ALL.iter().filter(|state| !state.is_terminal()) {
            let stale = now.stale_jobs.get(state).copied().unwrap_or(0);
            self.stale_jobs.get_or_create(&StateLabel { state: state.to_string() }).set(stale as i64);
        }
        let mut page = String::new();
        match prometheus_client::encoding::text::encode(&mut page, &self.registry) {
            Ok(()) => page,
            Err(error) => format!("# {error}\n"),
        }
    }

    pub(crate) fn received(&self, topic: &Topic) {
        self.jobs_received.get_or_create(&self.label(topic)).inc();
    }

    pub(crate) fn waited_for_turn(&self, seconds: f64) {
        self.job_lock_wait.observe(seconds);
    }

    pub(crate) fn rejected(&self) {
        self.validation_rejections.inc();
    }

    pub(crate) fn limited(&self, limit: Limit) {
        self.limited.get_or_create(&limit.label()).inc();
    }

    /// A new job found no place.
    pub(crate) fn has_to_wait(&self, reason: Reason) {
        match reason {
            Reason::TenantLimit => self.limited(Limit::Tenant),
            Reason::TopicLimit => self.limited(Limit::Topic),
            _ => {}
        }
    }

    /// Counts what a committed change was.
    pub(crate) fn observe(&self, job: &Job) {
        let label = self.label(&job.request.topic);
        let last = job.marks.last().map(|mark| mark.event);
        match &job.phase {
            Phase::Dispatched(attempt) if last == Some(Event::Assign) => {
                self.jobs_dispatched.get_or_create(&label).inc();
                let waited = attempt.dispatched_at.since(job.created_at) as f64 / 1000.0;
                self.dispatch_latency.get_or_create(&label).observe(waited);
            }
            Phase::Scheduled { .. } if last == Some(Event::LoseWorker) => {
                self.orphan_replayed.get_or_create(&label).inc();
            }
            Phase::Ended(ending) => {
                if ending.state == State::Denied {
                    self.safety_denied.get_or_create(&label).inc();
                }
                let label = Completed { topic: label.topic, status: ending.state.to_string() };
                self.jobs_completed.get_or_create(&label).inc();
            }
            _ => {}
        }
    }

    fn label(&self, topic: &Topic) -> TopicLabel {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if topics.contains(topic) {
            return TopicLabel { topic: topic.to_string() };
        }
        if topics.len() >= TOPICS_MAX {
            return TopicLabel { topic: "other".to_owned() };
        }
        topics.insert(topic.clone());
        drop(topics);
        let label = TopicLabel { topic: topic.to_string() };
        self.begin(&label);
        label
    }

    /// Every series of a topic exists from its first job on: a rate over nothing is zero, not a gap.
    fn begin(&self, label: &TopicLabel) {
        let counters = [
            &self.jobs_received,
            &self.jobs_dispatched,
            &self.safety_denied,
            &self.safety_unavailable,
            &self.orphan_replayed,
        ];
        for counter in counters {
            drop(counter.get_or_create(label));
        }
        drop(self.dispatch_latency.get_or_create(label));
        let completed = Completed { topic: label.topic.clone(), status: State::Succeeded.to_string() };
        drop(self.jobs_completed.get_or_create(&completed));
    }
}
