//! How the engine starts and stops: which tasks run, and in which order they begin and end.

use super::wiring::{Joined, wire};
use super::{Engine, Parts, Rooms, StartError};
use crate::cluster::PeerMessage;
use crate::intake::Intake;
use crate::janitor::Janitor;
use crate::observe::audit_writer::AtStart;
use crate::observe::metrics::Sweep;
use crate::roster::{Refresh, RosterHints};
use crate::tick;
use crate::workflows::Workflows;
use reveille_roster::Roster;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a stop waits for the collector; spans are not worth more.
const LAST_SPANS: Duration = Duration::from_secs(3);

impl Engine {
    /// Starts working. What the store still owes is picked up behind the open doors.
    pub async fn start(parts: Parts) -> Result<Self, StartError> {
        let (rooms, pending) = wire(&parts).await?;
        let engine = Self(Arc::new(rooms));
        engine.metrics().fleet().started(engine.now());
        engine.put_in_force(parts.rules);
        let snapshot = engine.rules().policy.snapshot().to_owned();
        let at_start = AtStart { snapshot, keys: engine.access().list_keys() };
        let hydrated_at = Instant::now();
        engine.fleet().hydrate().await?;
        engine.delegations().load().await?;
        let (runtime, store) = (engine.runtime(), engine.store());
        let hints = pending.joined.is_some().then(|| {
            let index = pending.workspace_index;
            let (hints, task) =
                RosterHints::new(store.clone(), Box::new(move |id| Some(index.find(id)?.url.clone())));
            runtime.spawn(task);
            hints
        });
        runtime.spawn(pending.roster_task.run(hints));
        runtime.spawn(engine.audit().clone().run(pending.audit_writes, at_start));
        let shared = pending.joined.as_ref().map(|joined| joined.shared.clone());
        if let Some(joined) = pending.joined {
            engine.join(joined, parts.roster.clone()).await?;
        }
        engine.intake().listen().await?;
        runtime.spawn(engine.fleet().clone().watch_listeners());
        runtime.spawn(tick::run(engine.clone(), hydrated_at));
        match shared {
            None => runtime.spawn(engine.jobs().clone().recover()),
            Some(shared) => runtime.spawn(engine.jobs().clone().join_cluster(shared)),
        }
        runtime.spawn(engine.workflows().clone().recover());
        runtime.spawn(engine.workflows().clone().run_timers());
        runtime.spawn(engine.workflows().clone().watch());
        runtime.spawn(engine.jobs().clone().reconcile(Sweep::Reconciler));
        runtime.spawn(engine.jobs().clone().reconcile(Sweep::Replayer));
        runtime.spawn(engine.delegations().clone().recover());
        runtime.spawn(engine.fleet().snapshots().clone().run());
        runtime.spawn(engine.fleet().clone().end_overdue_drains());
        let janitor = Janitor {
            runtime: runtime.clone(),
            access: engine.access().clone(),
            fleet: engine.fleet().clone(),
            store: store.clone(),
            workflows: parts.workflows,
            roster: parts.roster,
        };
        runtime.spawn(janitor.run());
        runtime.spawn(engine.jobs().clone().tend_blob_quota());
        Ok(engine)
    }

    fn intake(&self) -> Intake {
        Intake {
            runtime: self.runtime().clone(),
            observe: self.observe().clone(),
            access: self.access().clone(),
            jobs: self.jobs().clone(),
            fleet: self.fleet().clone(),
            store: self.store().clone(),
            bus: self.bus().clone(),
        }
    }

    /// Starts what only one of several servers does.
    async fn join(&self, joined: Joined, roster: Arc<dyn Roster>) -> Result<(), StartError> {
        let Joined { shared, messages, unlogged, generations } = joined;
        let runtime = self.runtime();
        shared.appear().await?;
        let (jobs, fleet, workspaces, workflows, peers) = (
            self.jobs().clone(),
            self.fleet().clone(),
            self.workspaces().clone(),
            Workflows::clone(self.workflows()),
            shared.clone(),
        );
        let receive = move |message: &PeerMessage| match message {
            PeerMessage::Job(job) => jobs.on_peer_job(&peers, job),
            PeerMessage::Agent { tenant, beat } => fleet.on_peer_agent(tenant, beat),
            PeerMessage::Pulse { workspace, pulse } => {
                workspaces.on_peer_pulse(workspace, (**pulse).clone());
            }
            PeerMessage::Run(run) => workflows.on_peer_run(run),
            PeerMessage::Counted(counted) => jobs.policy().on_peer_counted(counted.clone()),
        };
        shared.receive_peer_messages(receive).await?;
        runtime.spawn(shared.clone().send_peer_messages(messages));
        let refresh = Arc::new(Refresh {
            roster,
            observe: self.observe().clone(),
            keys: Arc::new(self.access().clone()),
            sessions: self.access().ended_sessions(),
            workspaces: Arc::new(self.workspaces().clone()),
            drains: Arc::new(self.fleet().clone()),
            seen: tokio::sync::Mutex::new(generations),
        });
        runtime.spawn(refresh.clone().run());
        runtime.spawn(shared.clone().follow_event_log(move || {
            let refresh = refresh.clone();
            async move { refresh.refresh().await }
        }));
        runtime.spawn(shared.clone().append_events(unlogged));
        runtime.spawn(shared.announce_overdue());
        Ok(())
    }

    /// Takes no more work, finishes what was begun, and stops.
    pub async fn drain(&self, patience: Duration) {
        let Rooms { audit, jobs, workflows, fleet, writer, .. } = &*self.0;
        self.runtime().begin_drain();
        // Whoever waits for a job to end is told how it stands; it can ask again after the restart.
        jobs.wake_all();
        workflows.wake_all();
        // What runs for ever ends with the token; the rest gets its time first.
        let decided = async {
            while jobs.decisions() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(patience, decided).await;
        // The next start finds the fleet as it was a moment ago.
        let last_writes = async {
            let _ = writer.flush().await;
            audit.finish().await;
            let _ = fleet.snapshots().write().await;
            fleet.snapshots().leave().await;
        };
        let _ = tokio::time::timeout(patience, last_writes).await;
        self.observe().flush_traces(patience.min(LAST_SPANS)).await;
        self.kill();
        self.runtime().join().await;
    }
}
