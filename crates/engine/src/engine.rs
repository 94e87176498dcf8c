//! The engine: its parts, and how it starts and stops.

use crate::calls::Calls;
use crate::chorus::Chorus;
use crate::clerk::{AtStart, Clerk};
use crate::clock::{Clock, Rng};
use crate::delegate::Ladder;
use crate::doubts::Doubts;
use crate::events::Events;
use crate::flows::Runs;
use crate::keys::Keys;
use crate::known::Known;
use crate::lease::Post;
use crate::letters::Letters;
use crate::metrics::Metrics;
use crate::net::Net;
use crate::presence::Listening;
use crate::replica::Replica;
use crate::rules::Rules;
use crate::safety::Safety;
use crate::scribe::{Note, Scribe};
use crate::settings::Settings;
use crate::timers::Timers;
use crate::trouble::Trouble;
use crate::turns::{Turn, Turns};
use crate::waiters::Waiters;
use crate::warm;
use crate::workspaces::Workspaces;
use reveille_a2a::A2aClient;
use reveille_bus::{Bus, BusError};
use reveille_core::id::{JobId, RunId};
use reveille_core::placement::Placement;
use reveille_core::policy::Windows;
use reveille_core::time::Millis;
use reveille_kernel::Kernel;
use reveille_roster::{Generations, Roster, RosterError};
use reveille_store::workflows::WorkflowStore;
use reveille_store::{Store, StoreError};
use reveille_traces::Traces;
use rustc_hash::FxHashSet;
use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a stop waits for the collector; spans are not worth more.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// What an engine is made of.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub roster: Arc<dyn Roster>,
    /// Workflows and their runs.
    pub flows: Arc<dyn WorkflowStore>,
    pub bus: Arc<dyn Bus>,
    pub courier: Arc<dyn A2aClient>,
    /// Who judges instead of the policy file, if somebody does.
    pub kernel: Option<Arc<dyn Kernel>>,
    pub traces: Arc<dyn Traces>,
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<dyn Rng>,
    pub rules: Rules,
    pub settings: Settings,
}

/// A handle; clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

pub struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) roster: Arc<dyn Roster>,
    pub(crate) flows: Arc<dyn WorkflowStore>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) courier: Arc<dyn A2aClient>,
    pub(crate) traces: Arc<dyn Traces>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) rng: Arc<dyn Rng>,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) keys: Keys,
    pub(crate) calls: Calls,
    pub(crate) timers: Timers,
    pub(crate) turns: Turns,
    pub(crate) waiters: Waiters<JobId>,
    pub(crate) runs: Runs,
    pub(crate) run_waiters: Waiters<RunId>,
    pub(crate) doubts: Doubts,
    pub(crate) known: Known,
    pub(crate) trouble: Trouble,
    pub(crate) listening: Mutex<Listening>,
    pub(crate) events: Arc<Events>,
    pub(crate) chorus: Chorus,
    /// The changes of the roster that the copies here have.
    pub(crate) followed: tokio::sync::Mutex<Generations>,
    /// How often something was drained here, or put back into service.
    pub(crate) drain_changes: AtomicU64,
    pub(crate) scribe: Scribe,
    pub(crate) clerk: Clerk,
    pub(crate) workspaces: Workspaces,
    pub(crate) ladder: Ladder,
    pub(crate) letters: Letters,
    pub(crate) safety: Safety,
    pub(crate) replica: Replica,
    /// Of whoever writes the worker snapshot. Taken for a whole write: two of ours must not overlap either.
    pub(crate) snapshot_post: tokio::sync::Mutex<Post>,
    /// How often things were asked lately, for policy.
    pub(crate) windows: Mutex<Windows>,
    rules: RwLock<Arc<Rules>>,
    placement: Mutex<Placement>,
    /// Attempts that were sent before everything was picked up.
    pub(crate) sent_early: Mutex<FxHashSet<(JobId, u32)>>,
    recovered: AtomicBool,
    draining: AtomicBool,
    tasks: TaskTracker,
    killed: CancellationToken,
}

impl Deref for Engine {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Engine {
    /// Starts working. What the store still owes is picked up behind the open doors.
    pub async fn start(parts: Parts) -> Result<Self, StartError> {
        let generations = parts.roster.generations().await?;
        let keys = Keys::load(&*parts.roster).await?;
        let workspaces = Workspaces::load(&*parts.roster).await?;
        let (scribe, inbox) = Scribe::new();
        let (clerk, errands) = Clerk::new();
        let (replica, unsent) = Replica::new(parts.store.name().to_owned());
        let (events, unsaid) = if parts.store.is_shared() {
            let (events, unsaid) = Events::shared(parts.store.name());
            (events, Some(unsaid))
        } else {
            (Events::new(parts.rng.next_u64()), None)
        };
        let windows = if parts.store.is_shared() { Windows::shared() } else { Windows::default() };
        let mut placement = Placement::new(parts.settings.ttls);
        if !parts.bus.shows_listeners() {
            placement.try_topics();
        }
        // Until the recovery has found what is at workers.
        placement.begin_recount();
        let placement = Mutex::new(placement);
        let killed = CancellationToken::new();
        let engine = Self(Arc::new(Inner {
            store: parts.store,
            roster: parts.roster,
            flows: parts.flows,
            bus: parts.bus,
            courier: parts.courier,
            traces: parts.traces,
            clock: parts.clock,
            rng: parts.rng,
            settings: parts.settings,
            metrics: Metrics::default(),
            keys,
            calls: Calls::default(),
            timers: Timers::default(),
            turns: Turns::default(),
            waiters: Waiters::default(),
            runs: Runs::default(),
            run_waiters: Waiters::default(),
            doubts: Doubts::default(),
            known: Known::default(),
            trouble: Trouble::default(),
            listening: Mutex::default(),
            events: Arc::new(events),
            chorus: Chorus::default(),
            followed: tokio::sync::Mutex::new(generations),
            drain_changes: AtomicU64::new(0),
            scribe,
            clerk,
            workspaces,
            ladder: Ladder::default(),
            letters: Letters::default(),
            safety: Safety::new(parts.kernel),
            replica,
            snapshot_post: tokio::sync::Mutex::new(warm::post(killed.clone())),
            windows: Mutex::new(windows),
            rules: RwLock::default(),
            placement,
            sent_early: Mutex::default(),
            recovered: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            tasks: TaskTracker::new(),
            killed,
        }));
        engine.metrics.fleet.started(engine.now());
        engine.put_in_force(parts.rules);
        let snapshot = engine.rules().policy.snapshot().to_owned();
        let at_start = AtStart { snapshot, keys: engine.list_keys() };
        let hydrated_at = Instant::now();
        engine.hydrate().await?;
        engine.load_ladder().await?;
        engine.spawn(engine.clone().write_roster(inbox));
        engine.spawn(engine.clone().write_trail(errands, at_start));
        engine.appear().await?;
        engine.hear_others().await?;
        engine.spawn(engine.clone().send_words(unsent));
        if let Some(unsaid) = unsaid {
            engine.spawn(engine.clone().follow_roster());
            engine.spawn(engine.clone().read_news());
            engine.spawn(engine.clone().say_news(unsaid));
            engine.spawn(engine.clone().tell_the_untold());
        }
        engine.listen().await?;
        engine.spawn(engine.clone().watch_listeners());
        engine.spawn(engine.clone().tick(hydrated_at));
        engine.spawn(engine.clone().recover());
        engine.spawn(engine.clone().recover_runs());
        engine.spawn(engine.clone().time_runs());
        engine.spawn(engine.clone().watch_runs());
        engine.spawn(engine.clone().keep(Net::Reconciler));
        engine.spawn(engine.clone().keep(Net::Replayer));
        engine.spawn(engine.clone().finish_ladder());
        engine.spawn(engine.clone().write_snapshots());
        engine.spawn(engine.clone().end_drains());
        engine.spawn(engine.clone().clean_up());
        Ok(engine)
    }

    /// Takes no more work, finishes what was begun, and stops.
    pub async fn drain(&self, patience: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        // Whoever waits for a job to end is told how it stands; it can ask again after the restart.
        self.waiters.wake_all();
        self.run_waiters.wake_all();
        self.tasks.close();
        // What runs for ever ends with the token; the rest gets its time first.
        let settled = async {
            while self.turns.busy() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(patience, settled).await;
        // The next start finds the fleet as it was a moment ago.
        let last_words = async {
            let _ = self.write_down(Note::default()).await;
            self.finish_records().await;
            let _ = self.write_snapshot().await;
            self.snapshot_post.lock().await.leave().await;
        };
        let _ = tokio::time::timeout(patience, last_words).await;
        self.traces.finish(patience.min(LAST_SPANS)).await;
        self.killed.cancel();
        self.tasks.wait().await;
    }

    /// Stops between any two steps, as kill -9 would.
    pub fn kill(&self) {
        self.killed.cancel();
    }

    /// Is cancelled when the engine ends.
    pub(crate) fn end(&self) -> CancellationToken {
        self.killed.clone()
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Whether everything that was owed at the start has been picked up.
    pub fn is_recovered(&self) -> bool {
        self.recovered.load(Ordering::Relaxed)
    }

    pub(crate) fn set_recovered(&self) {
        self.recovered.store(true, Ordering::Relaxed);
    }

    pub(crate) fn tasks_len(&self) -> usize {
        self.tasks.len()
    }

    /// Waits until nothing else is decided about the job.
    pub(crate) async fn turn(&self, job: &JobId) -> Turn<'_> {
        let asked = Instant::now();
        let turn = self.turns.take(job).await;
        self.metrics.waited_for_turn(asked.elapsed().as_secs_f64());
        turn
    }

    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub fn flows(&self) -> &Arc<dyn WorkflowStore> {
        &self.flows
    }

    pub fn events(&self) -> &Arc<Events> {
        &self.events
    }

    pub fn rules(&self) -> Arc<Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on these rules hold. Jobs that wait for a worker are routed anew, and those that wait for a
    /// person are judged anew; what policy has already allowed stays allowed.
    pub fn use_rules(&self, rules: Rules) {
        let before = self.put_in_force(rules);
        self.record_reload(before.policy.snapshot(), self.rules().policy.snapshot());
        // Until everything is picked up, the recovery looks after it.
        if self.is_recovered() {
            self.spawn(self.clone().review_approvals());
        }
    }

    /// Returns what held before.
    fn put_in_force(&self, rules: Rules) -> Arc<Rules> {
        let rules = Arc::new(rules);
        let mut in_force = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *in_force, rules.clone());
        drop(in_force);
        let mut placement = self.placement();
        placement.limit_tenants(rules.policy.tenant_limits());
        placement.reroute(rules.routing.clone());
        let matches = placement.matches(self.now());
        drop(placement);
        self.assign_all(matches);
        before
    }

    /// Placement, for a few lines at a time and never over an await.
    pub(crate) fn placement(&self) -> MutexGuard<'_, Placement> {
        self.placement.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task that ends with the engine. In a box it is moved once, and not by all that is around it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let (task, killed) = (Box::pin(task), self.killed.clone());
        self.tasks.spawn(async move {
            killed.run_until_cancelled(task).await;
        });
    }

    /// Runs to its end even if whoever asked goes away meanwhile: what is committed must be acted on.
    pub(crate) async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let (tell, told) = oneshot::channel();
        let work = Box::pin(work);
        self.spawn(async move {
            let _ = tell.send(work.await);
        });
        match told.await {
            Ok(answer) => answer,
            // The engine was killed; as with kill -9, nobody is left to answer.
            Err(_) => std::future::pending().await,
        }
    }

    /// A new id: ordered by time, unguessable enough to be shared.
    pub fn new_job_id(&self) -> JobId {
        JobId::known(self.new_uuid())
    }

    pub(crate) fn new_uuid(&self) -> String {
        let (high, low) = (self.rng.next_u64().to_be_bytes(), self.rng.next_u64().to_be_bytes());
        let mut random = [0; 10];
        random[..8].copy_from_slice(&high);
        random[8..].copy_from_slice(&low[..2]);
        uuid::Builder::from_unix_timestamp_millis(self.now().0.max(0) as u64, &random).into_uuid().to_string()
    }
}

/// Why the engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Roster(#[from] RosterError),
    #[error(transparent)]
    Bus(#[from] BusError),
}
