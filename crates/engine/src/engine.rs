//! The engine: its rooms, wired together once, and how it starts and stops. Nothing is decided here.

use crate::access::{Access, KeyIndex};
use crate::clock::{Clock, Rng};
use crate::cluster::{Alone, Cluster, PeerMessage, PeerMessages, Shared};
use crate::delegations::{DelegationParts, Delegations};
use crate::fleet::workspaces::{WorkspaceHook, WorkspaceIndex, WorkspaceParts, Workspaces};
use crate::fleet::{Departures, Fleet, FleetParts, SnapshotWriter};
use crate::intake::Intake;
use crate::janitor::Janitor;
use crate::jobs::{DelegationHook, JobParts, Jobs, RunHook};
use crate::locks::SharedLocks;
use crate::observe::Observe;
use crate::observe::audit_writer::{AtStart, AuditWriter};
use crate::observe::events::{Events, Unlogged};
use crate::observe::metrics::{Metrics, Sweep};
use crate::placement::PlacementTable;
use crate::roster::{Hints, Refresh, RosterWriter};
use crate::rules::{BadFile, Rules};
use crate::runtime::Runtime;
use crate::settings::Settings;
use crate::tick;
use crate::workflows::{WorkflowParts, Workflows};
use reveille_a2a::A2aClient;
use reveille_bus::{Bus, BusError};
use reveille_core::placement::Placement;
use reveille_core::time::Millis;
use reveille_kernel::Kernel;
use reveille_roster::{Generations, Roster, RosterError};
use reveille_store::workflows::WorkflowStore;
use reveille_store::{Store, StoreError};
use reveille_traces::Traces;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a stop waits for the collector; spans are not worth more.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// What an engine is made of.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub roster: Arc<dyn Roster>,
    /// Workflows and their runs.
    pub workflows: Arc<dyn WorkflowStore>,
    pub bus: Arc<dyn Bus>,
    pub a2a: Arc<dyn A2aClient>,
    /// Who decides instead of the policy file, if somebody does.
    pub kernel: Option<Arc<dyn Kernel>>,
    pub traces: Arc<dyn Traces>,
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<dyn Rng>,
    pub rules: Rules,
    pub settings: Settings,
}

/// A handle; clones are the same engine. What it can do is in its rooms.
#[derive(Clone)]
pub struct Engine(Arc<Rooms>);

struct Rooms {
    runtime: Runtime,
    observe: Observe,
    audit: AuditWriter,
    cluster: Arc<dyn Cluster>,
    placement: PlacementTable,
    access: Access,
    jobs: Jobs,
    workspaces: Workspaces,
    fleet: Fleet,
    delegations: Arc<Delegations>,
    workflows: Arc<Workflows>,
    writer: RosterWriter,
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
}

/// One of several servers: what its tasks need.
struct Joined {
    shared: Arc<Shared>,
    messages: PeerMessages,
    unlogged: Unlogged,
    generations: Generations,
}

impl Engine {
    /// Starts working. What the store still owes is picked up behind the open doors.
    pub async fn start(parts: Parts) -> Result<Self, StartError> {
        let Parts { store, roster, workflows, bus, a2a, kernel, traces, clock, rng, rules, settings } = parts;
        let generations = roster.generations().await?;
        let keys = Arc::new(KeyIndex::load(&*roster).await?);
        let index = Arc::new(WorkspaceIndex::load(&*roster).await?);
        let runtime = Runtime::new(clock, rng, settings);
        let (events, unlogged) = if store.is_shared() {
            let (events, unlogged) = Events::shared(store.name());
            (events, Some(unlogged))
        } else {
            (Events::new(runtime.random()), None)
        };
        let observe = Observe::new(runtime.clone(), events, traces);
        let (cluster, joined): (Arc<dyn Cluster>, _) = match unlogged {
            None => (Arc::new(Alone::new(runtime.clone(), observe.clone())), None),
            Some(unlogged) => {
                let (shared, messages) =
                    Shared::new(runtime.clone(), observe.clone(), store.clone(), bus.clone());
                (shared.clone(), Some(Joined { shared, messages, unlogged, generations }))
            }
        };
        let placement = PlacementTable::new(new_table(&runtime, &*bus));
        let (audit, audit_writes) = AuditWriter::new(runtime.clone(), observe.clone(), store.clone());
        let (writer, roster_task) =
            RosterWriter::new(runtime.clone(), observe.clone(), placement.clone(), roster.clone());
        let access = Access::new(
            runtime.clone(),
            observe.clone(),
            roster.clone(),
            writer.clone(),
            audit.clone(),
            keys.clone(),
        );
        let jobs = Jobs::new(JobParts {
            runtime: runtime.clone(),
            observe: observe.clone(),
            cluster: cluster.clone(),
            placement: placement.clone(),
            keys,
            store: store.clone(),
            bus: bus.clone(),
            kernel,
        });
        let departures = Departures {
            runtime: runtime.clone(),
            observe: observe.clone(),
            cluster: cluster.clone(),
            jobs: jobs.clone(),
        };
        let workspaces = Workspaces::new(WorkspaceParts {
            departures: departures.clone(),
            placement: placement.clone(),
            locks: SharedLocks::new(&store),
            roster: roster.clone(),
            writer: writer.clone(),
            a2a: a2a.clone(),
            index: index.clone(),
        });
        let snapshots = SnapshotWriter::new(
            runtime.clone(),
            observe.clone(),
            cluster.clone(),
            placement.clone(),
            store.clone(),
        );
        let fleet = Fleet::new(FleetParts {
            departures,
            placement: placement.clone(),
            workspaces: workspaces.clone(),
            snapshots,
            roster: roster.clone(),
            writer: writer.clone(),
            bus: bus.clone(),
        });
        let delegations = Arc::new(Delegations::new(DelegationParts {
            runtime: runtime.clone(),
            observe: observe.clone(),
            cluster: cluster.clone(),
            placement: placement.clone(),
            jobs: jobs.clone(),
            workspaces: workspaces.clone(),
            store: store.clone(),
            a2a,
            roster: roster.clone(),
            writer: writer.clone(),
        }));
        let runs = workflows;
        let workflows = Arc::new(Workflows::new(WorkflowParts {
            runtime: runtime.clone(),
            observe: observe.clone(),
            cluster: cluster.clone(),
            jobs: jobs.clone(),
            store: runs.clone(),
            locks: store.clone(),
            bus: bus.clone(),
        }));
        let (run_hook, delegation_hook) =
            (workflows.clone() as Arc<dyn RunHook>, delegations.clone() as Arc<dyn DelegationHook>);
        jobs.set_hooks(&run_hook, &delegation_hook);
        workspaces.set_hook(&(delegations.clone() as Arc<dyn WorkspaceHook>));
        let engine = Self(Arc::new(Rooms {
            runtime,
            observe,
            audit,
            cluster,
            placement,
            access,
            jobs,
            workspaces,
            fleet,
            delegations,
            workflows,
            writer,
            store,
            bus,
        }));
        engine.metrics().fleet().started(engine.now());
        engine.put_in_force(rules);
        let snapshot = engine.rules().policy.snapshot().to_owned();
        let at_start = AtStart { snapshot, keys: engine.access().list_keys() };
        let hydrated_at = Instant::now();
        engine.fleet().hydrate().await?;
        engine.delegations().load().await?;
        let Rooms { runtime, jobs, workflows, store, bus, .. } = &*engine.0;
        let hints = joined.is_some().then(|| {
            let url_of = move |id: &_| Some(index.find(id)?.url.clone());
            let (hints, task) = Hints::new(store.clone(), Box::new(url_of));
            runtime.spawn(task);
            hints
        });
        runtime.spawn(roster_task.run(hints));
        runtime.spawn(engine.0.audit.clone().run(audit_writes, at_start));
        match joined {
            Some(joined) => engine.join(joined, roster.clone()).await?,
            None => runtime.spawn(jobs.clone().recover()),
        }
        let intake = Intake {
            runtime: runtime.clone(),
            observe: engine.0.observe.clone(),
            jobs: jobs.clone(),
            fleet: engine.fleet().clone(),
            store: store.clone(),
            bus: bus.clone(),
        };
        intake.listen().await?;
        runtime.spawn(engine.fleet().clone().watch_listeners());
        runtime.spawn(tick::run(engine.clone(), hydrated_at));
        runtime.spawn(Workflows::clone(workflows).recover());
        runtime.spawn(Workflows::clone(workflows).run_timers());
        runtime.spawn(Workflows::clone(workflows).watch());
        runtime.spawn(jobs.clone().reconcile(Sweep::Reconciler));
        runtime.spawn(jobs.clone().reconcile(Sweep::Replayer));
        runtime.spawn(engine.delegations().clone().recover());
        runtime.spawn(engine.fleet().snapshots().clone().run());
        runtime.spawn(engine.fleet().clone().end_overdue_drains());
        let janitor = Janitor {
            runtime: runtime.clone(),
            access: engine.access().clone(),
            fleet: engine.fleet().clone(),
            store: store.clone(),
            workflows: runs,
            roster,
        };
        runtime.spawn(janitor.run());
        Ok(engine)
    }

    /// Starts what only one of several servers does.
    async fn join(&self, joined: Joined, roster: Arc<dyn Roster>) -> Result<(), StartError> {
        let Joined { shared, messages, unlogged, generations } = joined;
        let Rooms { runtime, observe, jobs, fleet, workspaces, workflows, .. } = &*self.0;
        shared.appear().await?;
        let (peer_jobs, peer_fleet, peer_workspaces, peer_runs, peers) =
            (jobs.clone(), fleet.clone(), workspaces.clone(), Workflows::clone(workflows), shared.clone());
        let receive = move |message: &PeerMessage| match message {
            PeerMessage::Job(job) => peer_jobs.on_peer_job(&peers, job),
            PeerMessage::Agent { tenant, beat } => peer_fleet.on_peer_agent(tenant, beat),
            PeerMessage::Pulse { workspace, pulse } => {
                peer_workspaces.on_peer_pulse(workspace, (**pulse).clone());
            }
            PeerMessage::Run(run) => peer_runs.on_peer_run(run),
            PeerMessage::Counted(counted) => peer_jobs.policy().on_peer_counted(counted.clone()),
        };
        shared.receive_peer_messages(receive).await?;
        runtime.spawn(shared.clone().send_peer_messages(messages));
        let refresh = Arc::new(Refresh {
            roster,
            observe: observe.clone(),
            keys: Arc::new(self.0.access.clone()),
            workspaces: Arc::new(workspaces.clone()),
            drains: Arc::new(fleet.clone()),
            seen: tokio::sync::Mutex::new(generations),
        });
        runtime.spawn(refresh.clone().run());
        runtime.spawn(shared.clone().follow_event_log(move || {
            let refresh = refresh.clone();
            async move { refresh.refresh().await }
        }));
        runtime.spawn(shared.clone().append_events(unlogged));
        runtime.spawn(shared.clone().announce_overdue());
        runtime.spawn(jobs.clone().join_cluster(shared));
        Ok(())
    }

    /// Takes no more work, finishes what was begun, and stops.
    pub async fn drain(&self, patience: Duration) {
        let Rooms { runtime, observe, audit, jobs, workflows, fleet, writer, .. } = &*self.0;
        runtime.begin_drain();
        // Whoever waits for a job to end is told how it stands; it can ask again after the restart.
        jobs.wake_all();
        workflows.wake_all();
        // What runs for ever ends with the token; the rest gets its time first.
        let settled = async {
            while jobs.decisions() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(patience, settled).await;
        // The next start finds the fleet as it was a moment ago.
        let last_writes = async {
            let _ = writer.flush().await;
            audit.finish().await;
            let _ = fleet.snapshots().write().await;
            fleet.snapshots().leave().await;
        };
        let _ = tokio::time::timeout(patience, last_writes).await;
        observe.flush_traces(patience.min(LAST_SPANS)).await;
        runtime.kill();
        runtime.join().await;
    }

    /// Stops between any two steps, as kill -9 would.
    pub fn kill(&self) {
        self.0.runtime.kill();
    }

    // The rooms.

    pub fn jobs(&self) -> &Jobs {
        &self.0.jobs
    }

    pub fn fleet(&self) -> &Fleet {
        &self.0.fleet
    }

    pub fn workspaces(&self) -> &Workspaces {
        &self.0.workspaces
    }

    pub fn delegations(&self) -> &Delegations {
        &self.0.delegations
    }

    pub fn workflows(&self) -> &Workflows {
        &self.0.workflows
    }

    pub fn access(&self) -> &Access {
        &self.0.access
    }

    pub fn cluster(&self) -> &dyn Cluster {
        &*self.0.cluster
    }

    pub fn events(&self) -> &Arc<Events> {
        self.0.observe.events()
    }

    pub fn metrics(&self) -> &Metrics {
        self.0.observe.metrics()
    }

    pub fn audit(&self) -> &AuditWriter {
        &self.0.audit
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    pub(crate) fn observe(&self) -> &Observe {
        &self.0.observe
    }

    pub(crate) fn placement(&self) -> &PlacementTable {
        &self.0.placement
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    pub(crate) fn bus(&self) -> &Arc<dyn Bus> {
        &self.0.bus
    }

    // What belongs to no room.

    pub fn now(&self) -> Millis {
        self.0.runtime.now()
    }

    pub fn settings(&self) -> &Settings {
        self.0.runtime.settings()
    }

    pub fn rules(&self) -> Arc<Rules> {
        self.0.runtime.rules()
    }

    pub fn is_draining(&self) -> bool {
        self.0.runtime.is_draining()
    }

    /// Whether everything that was owed at the start has been picked up.
    pub fn is_recovered(&self) -> bool {
        self.0.runtime.is_recovered()
    }

    /// What this server is called among several.
    pub fn name(&self) -> &str {
        self.0.store.name()
    }

    /// From now on these rules hold. Jobs that wait for a worker are routed anew, and those that wait for a
    /// person are judged anew; what policy has already allowed stays allowed.
    pub fn use_rules(&self, rules: Rules) {
        let before = self.put_in_force(rules);
        self.0.audit.record_reload(before.policy.snapshot(), self.rules().policy.snapshot());
        // Until everything is picked up, the recovery looks after it.
        if self.is_recovered() {
            self.0.runtime.spawn(self.jobs().clone().review_approvals());
        }
    }

    /// Says that a file was read again and is not used.
    pub fn refuse_rules(&self, bad: &BadFile) {
        self.0.audit.refuse_rules(bad);
    }

    /// Returns what held before.
    fn put_in_force(&self, rules: Rules) -> Arc<Rules> {
        let rules = Arc::new(rules);
        let before = self.0.runtime.set_rules(rules.clone());
        let matches = {
            let mut table = self.0.placement.lock();
            table.limit_tenants(rules.policy.tenant_limits());
            table.reroute(rules.routing.clone());
            table.matches(self.now())
        };
        self.jobs().assign_all(matches);
        before
    }
}

fn new_table(runtime: &Runtime, bus: &dyn Bus) -> Placement {
    let mut table = Placement::new(runtime.settings().ttls);
    if !bus.shows_listeners() {
        table.try_topics();
    }
    // Until the recovery has found what is at workers.
    table.begin_recount();
    table
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
