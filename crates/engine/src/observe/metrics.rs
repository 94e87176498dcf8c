//! What can be scraped, under the names that dashboards of the reference know: `cordum_scheduler_…`. A test
//! prints them to `docs/metrics.md`.

mod figures;
mod fleet;
mod output;
mod quotas;
mod reconciler;
mod safety;
mod saga;
mod traces;

pub use figures::Figures;
use figures::Totals;
use fleet::FleetMetrics;
use output::OutputMetrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use quotas::QuotaMetrics;
use reconciler::ReconcilerMetrics;
pub use reconciler::Sweep;
use reveille_core::id::Topic;
use reveille_core::job::{Event, Job, Phase, State};
use reveille_core::output::{OutputDecision, Stage};
use reveille_core::quota::{OverQuota, TenantQuota};
use reveille_core::reason::Reason;
use reveille_core::time::Millis;
use reveille_traces::TraceCounts;
pub use safety::Circuit;
use safety::SafetyMetrics;
use saga::SagaMetrics;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use traces::TraceMetrics;

/// Topics that get a series of their own; anything beyond shares `other`, so that no client can fill
/// the memory with names.
const TOPICS_MAX: usize = 1_000;

const LATENCY_SECONDS: [f64; 13] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0];

type PerTopic<M> = Family<TopicLabel, M>;

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

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ModeLabel {
    mode: &'static str,
}

/// What held somebody back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A call without a valid key, or a connection, was turned away: its address has too many.
    Address,
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
    const ALL: [Self; 5] = [Self::Address, Self::Queue, Self::Rate, Self::Tenant, Self::Topic];

    fn label(self) -> LimitLabel {
        let limit = match self {
            Self::Address => "address",
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
    totals: Totals,
    topics: Mutex<BTreeSet<Topic>>,
    jobs_received: PerTopic<Counter>,
    jobs_dispatched: PerTopic<Counter>,
    jobs_completed: Family<Completed, Counter>,
    attempts_lost: PerTopic<Counter>,
    safety_denied: PerTopic<Counter>,
    safety_unavailable: PerTopic<Counter>,
    dispatch_latency: PerTopic<Histogram>,
    job_lock_wait: Histogram,
    active_goroutines: Gauge,
    stale_jobs: Family<StateLabel, Gauge>,
    orphan_replayed: PerTopic<Counter>,
    validation_rejections: Counter,
    packets_unproven: Family<ModeLabel, Counter>,
    sign_ins_failed: Counter,
    limited: Family<LimitLabel, Counter>,
    quotas: QuotaMetrics,
    workers: Gauge,
    live_jobs: Gauge,
    messages_lost: Gauge,
    fleet: FleetMetrics,
    reconciler: ReconcilerMetrics,
    output: OutputMetrics,
    safety: SafetyMetrics,
    saga: SagaMetrics,
    traces: TraceMetrics,
    run_lock_fallbacks: Counter,
}

/// What is counted only when somebody asks.
pub(crate) struct CurrentCounts {
    pub now: Millis,
    pub unconfirmed: usize,
    pub workers: usize,
    pub live_jobs: usize,
    pub messages_lost: u64,
    pub tasks: usize,
    pub stale_jobs: BTreeMap<State, u64>,
    pub traces: TraceCounts,
}

/// The metrics in the order in which they are listed.
struct MetricsPage(Registry);

impl MetricsPage {
    fn list<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        self.list_as(name, help, M::default())
    }

    fn list_as<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut page = MetricsPage(Registry::with_prefix("cordum_scheduler"));
        let latency: fn() -> Histogram = || Histogram::new(LATENCY_SECONDS);
        let per_topic = Family::new_with_constructor(latency);
        let missed = "Jobs that should have been looked at and were not";
        let lock_wait = "How long a decision waited for another about the same job";
        let metrics = Self {
            totals: Totals::default(),
            topics: Mutex::default(),
            jobs_received: page.list("jobs_received", "Jobs that were asked for"),
            jobs_dispatched: page.list("jobs_dispatched", "Attempts that were given to workers"),
            jobs_completed: page.list("jobs_completed", "Jobs that ended"),
            attempts_lost: page.list("attempts_lost", "Attempts that were lost and queued again"),
            safety_denied: page.list("safety_denied", "Jobs that policy denied"),
            safety_unavailable: page
                .list("safety_unavailable", "Questions to the safety kernel that had no answer"),
            dispatch_latency: page.list_as("dispatch_latency_seconds", "From submit to dispatch", per_topic),
            job_lock_wait: page.list_as("job_lock_wait_seconds", lock_wait, latency()),
            active_goroutines: page.list("active_goroutines", "Tasks that run"),
            stale_jobs: page.list("stale_jobs", missed),
            orphan_replayed: page.list("orphan_replayed", "Jobs that stood still and were moved on"),
            validation_rejections: page.list("validation_rejections", "Packets that were refused"),
            packets_unproven: page.list(
                "packets_unproven",
                "Packets of workers that were not signed by them, where signatures are asked for",
            ),
            sign_ins_failed: page.list("sign_ins_failed", "Sign-ins at the console with a wrong key"),
            limited: page.list("limited", "Jobs and calls that a limit held back"),
            quotas: QuotaMetrics::list(&mut page),
            workers: page.list("workers", "Workers that are known"),
            live_jobs: page.list("live_jobs", "Jobs that have not ended"),
            messages_lost: page.list(
                "messages_lost",
                "Messages, beats mostly, that were lost because the server did not keep up",
            ),
            fleet: FleetMetrics::list(&mut page),
            reconciler: ReconcilerMetrics::list(&mut page),
            output: OutputMetrics::list(&mut page),
            safety: SafetyMetrics::list(&mut page),
            saga: SagaMetrics::list(&mut page),
            traces: TraceMetrics::list(&mut page),
            run_lock_fallbacks: page
                .list("workflow_lock_fallback", "Runs that went on without their lock, the store being away"),
            registry: Registry::default(),
        };
        for limit in Limit::ALL {
            drop(metrics.limited.get_or_create(&limit.label()));
        }
        Self { registry: page.0, ..metrics }
    }
}

impl Metrics {
    /// The page, in the `OpenMetrics` text format.
    pub(crate) fn page(&self, now: &CurrentCounts) -> String {
        self.workers.set(now.workers as i64);
        self.fleet.look(now);
        self.traces.look(now.traces);
        self.live_jobs.set(now.live_jobs as i64);
        self.messages_lost.set(now.messages_lost as i64);
        self.active_goroutines.set(now.tasks as i64);
        for state in State::ALL.iter().filter(|state| !state.is_terminal()) {
            // A timer that is late, or one that is lost: the same job may be both.
            let late = now.stale_jobs.get(state).copied().unwrap_or(0);
            let stale = late.max(self.reconciler.found(*state));
            self.stale_jobs.get_or_create(&StateLabel { state: state.to_string() }).set(stale as i64);
        }
        let mut page = String::new();
        match prometheus_client::encoding::text::encode(&mut page, &self.registry) {
            Ok(()) => page,
            Err(error) => format!("# {error}\n"),
        }
    }

    /// How often the reconciler had to act.
    pub fn net_acted(&self) -> u64 {
        self.reconciler.acted()
    }

    pub(crate) fn fleet(&self) -> &FleetMetrics {
        &self.fleet
    }

    pub(crate) fn reconciler(&self) -> &ReconcilerMetrics {
        &self.reconciler
    }

    pub(crate) fn safety(&self) -> &SafetyMetrics {
        &self.safety
    }

    pub(crate) fn saga(&self) -> &SagaMetrics {
        &self.saga
    }

    pub(crate) fn run_lock_fallbacks(&self) -> Counter {
        self.run_lock_fallbacks.clone()
    }

    pub(crate) fn received(&self, topic: &Topic) {
        self.totals.received.inc();
        self.jobs_received.get_or_create(&self.label(topic)).inc();
    }

    pub(crate) fn safety_unavailable(&self, topic: &Topic) {
        self.safety_unavailable.get_or_create(&self.label(topic)).inc();
    }

    pub(crate) fn waited_for_lock(&self, seconds: f64) {
        self.job_lock_wait.observe(seconds);
    }

    pub(crate) fn rejected(&self) {
        self.validation_rejections.inc();
    }

    /// A worker's packet is not proven to be its own.
    pub(crate) fn unproven(&self, mode: &'static str) {
        self.packets_unproven.get_or_create(&ModeLabel { mode }).inc();
    }

    pub(crate) fn sign_in_failed(&self) {
        self.sign_ins_failed.inc();
    }

    /// The reconciler saw to a job that no timer did.
    pub(crate) fn caught(&self, sweep: Sweep, topic: &Topic) {
        self.reconciler.caught(sweep);
        if sweep == Sweep::Replayer {
            self.orphan_replayed.get_or_create(&self.label(topic)).inc();
        }
    }

    pub(crate) fn output_checked(&self, topic: &Topic, stage: Stage, decision: OutputDecision, seconds: f64) {
        self.output.checked(self.label(topic), stage, decision, seconds);
    }

    pub(crate) fn failed_open(&self, topic: &Topic) {
        self.safety.failed_open(&self.label(topic));
    }

    pub(crate) fn output_skipped(&self, topic: &Topic) {
        self.output.skipped(&self.label(topic));
    }

    pub(crate) fn limited(&self, limit: Limit) {
        self.limited.get_or_create(&limit.label()).inc();
    }

    /// A tenant was refused something, and this says what and why.
    pub(crate) fn over_quota(&self, over: OverQuota) -> OverQuota {
        self.quotas.exceeded(over.quota);
        over
    }

    /// The same, where one more was asked for.
    pub(crate) fn check_quota(&self, quota: TenantQuota, has: u64, max: u64) -> Result<(), OverQuota> {
        quota.check(has, max).map_err(|over| self.over_quota(over))
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
    pub(crate) fn observe(&self, before: Option<State>, job: &Job) {
        let label = self.label(&job.request.topic);
        let last = job.marks.last().map(|mark| mark.event);
        match &job.phase {
            Phase::Dispatched(attempt) if last == Some(Event::Assign) => {
                self.jobs_dispatched.get_or_create(&label).inc();
                let waited = attempt.dispatched_at.since(job.created_at) as f64 / 1000.0;
                self.totals.dispatched(waited);
                self.dispatch_latency.get_or_create(&label).observe(waited);
            }
            Phase::Scheduled { .. } if last == Some(Event::LoseWorker) => {
                self.attempts_lost.get_or_create(&label).inc();
            }
            // A job ends once, whatever becomes of its result afterwards.
            Phase::Ended(ending) if before.is_none_or(|before| !before.is_terminal()) => {
                if ending.reason == Some(Reason::SafetyDenied) {
                    self.safety_denied.get_or_create(&label).inc();
                }
                self.totals.ended(ending.state);
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
            &self.attempts_lost,
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
        self.output.begin(label);
        self.safety.begin(label);
    }
}
