//! Who is in this world, who may do what, and what is seen of them on the way.

use super::World;
use crate::agents::SimAgent;
use crate::breakage::Breakage;
use crate::invariants::ServerMoment;
use crate::plan::WorkerPlan;
use crate::server::{Life, SimServer};
use crate::situations::Situation;
use crate::workers::SimWorker;
use crate::workspaces::SimWorkspace;
use reveille_bus::Message;
use reveille_core::id::{JobId, TenantId, WorkerId, WorkspaceId};
use reveille_core::job::Job;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::Engine;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::packet;
use std::sync::Arc;

impl World {
    pub fn server(&self, number: usize) -> &Arc<SimServer> {
        &self.servers[number]
    }

    pub fn servers(&self) -> &[Arc<SimServer>] {
        &self.servers
    }

    /// Any server that runs, for somebody who calls.
    pub fn engine(&self) -> Option<(Engine, Life)> {
        let up: Vec<_> = self.servers.iter().filter_map(|server| server.engine()).collect();
        match up.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(self.rng.pick(several).clone()),
        }
    }

    /// Whether there is something to connect to: one server alone is its own bus.
    pub fn bus_is_there(&self) -> bool {
        self.plan.is_shared() || self.servers[0].engine().is_some()
    }

    pub fn worker(&self, number: usize) -> &Arc<SimWorker> {
        &self.workers[number]
    }

    pub fn workers(&self) -> &[Arc<SimWorker>] {
        &self.workers
    }

    /// The third worker that dies with a job ends it, and nobody could foresee how a step ends. So of the careful
    /// ones one is unwell at a time, and none that has a step whose worker was lost before.
    pub fn is_spared(&self, worker: &SimWorker) -> bool {
        let (plan, now) = (&worker.plan, self.now());
        let is_unwell = |other: &&Arc<SimWorker>| {
            let is_drained = self.drains.of_worker(&other.plan.name).is_some();
            other.plan.careful && other.plan.name != plan.name && (is_drained || !other.is_well(now))
        };
        let has_a_lost_one = || {
            let is_at_it = |job: &Job| {
                let at = job.attempt().and_then(|attempt| attempt.worker.as_ref());
                job.workers_lost > 0 && at == Some(&plan.name)
            };
            self.live_jobs().iter().any(|job| is_at_it(job))
        };
        plan.careful && (self.workers.iter().any(|other| is_unwell(&other)) || has_a_lost_one())
    }

    pub fn agents(&self) -> &[Arc<SimAgent>] {
        &self.agents
    }

    pub fn workspaces(&self) -> &[Arc<SimWorkspace>] {
        &self.workspaces
    }

    pub fn workspace(&self, id: &WorkspaceId) -> Option<&Arc<SimWorkspace>> {
        self.workspaces.iter().find(|workspace| workspace.id == *id)
    }

    pub fn tenant_of_job(&self, id: &JobId) -> Option<TenantId> {
        self.ledger().job(id).map(|job| job.request.tenant.clone())
    }

    pub fn worker_plan(&self, name: &WorkerId) -> Option<&WorkerPlan> {
        self.plan.workers.iter().find(|plan| plan.name == *name)
    }

    /// Whether placement would take this worker for the job.
    pub fn can_be_given(&self, name: &WorkerId, request: &Request) -> bool {
        self.worker_plan(name).is_some_and(|plan| self.plan.may_take(plan, request))
    }

    pub fn job(&self, id: &JobId) -> Option<Arc<Job>> {
        self.ledger().job(id).cloned()
    }

    pub fn jobs(&self) -> Vec<Arc<Job>> {
        self.ledger().jobs().cloned().collect()
    }

    pub fn live_jobs(&self) -> Vec<Arc<Job>> {
        let ledger = self.ledger();
        ledger.live.iter().filter_map(|id| ledger.job(id).cloned()).collect()
    }

    pub fn deadline_since(&self, id: &JobId) -> Millis {
        self.ledger().deadline_since(id)
    }

    pub fn is_sent(&self, id: &JobId, attempt: u32) -> bool {
        self.ledger().is_sent(id, attempt)
    }

    /// Whom a message for this worker reaches.
    pub fn misrouted(&self, worker: usize) -> usize {
        let astray = self.breakage == Some(Breakage::Misroute) && self.rng.percent(5);
        if astray { (worker + 1) % self.workers.len() } else { worker }
    }

    /// Whether dead workers still beat in this broken world.
    pub fn beats_as_a_ghost(&self) -> bool {
        self.breakage == Some(Breakage::GhostBeats)
    }

    /// A dispatch packet is on its way out.
    pub fn dispatch_leaves(&self, life: &Life, payload: &[u8], to: Option<&WorkerId>) {
        let server = self.server(life.server);
        if to.is_some_and(|to| server.watched.is_known_from_the_snapshot_only(to)) {
            self.situations.record(Situation::GivenBeforeBeat);
        }
        match packet::decode(payload).ok().and_then(|packet| packet.payload) {
            Some(Payload::JobRequest(job)) => {
                let moment = ServerMoment {
                    now: self.now(),
                    went_on_at: server.went_on_at(),
                    is_shared: self.plan.is_shared(),
                };
                self.check(|ledger| ledger.dispatched(&job, to, moment));
            }
            _ => self.fail("something that is no job was sent to a worker"),
        }
    }

    /// A message reached a server that says that a worker is there.
    pub fn note_presence(&self, server: usize, message: &Message) {
        let (name, is_beat) = match packet::decode(&message.payload).ok().and_then(|packet| packet.payload) {
            Some(Payload::Heartbeat(beat)) => (beat.worker_id, true),
            Some(Payload::Handshake(handshake)) => (handshake.component_id, false),
            _ => return,
        };
        let name = WorkerId::known(name);
        let dead = self.workers.iter().any(|worker| worker.plan.name == name && !worker.is_alive());
        if dead && self.beats_as_a_ghost() {
            return;
        }
        let watched = &self.server(server).watched;
        if is_beat {
            watched.beaten(&name, self.now());
        } else {
            watched.heard(&name, self.now());
        }
        // The others may know it from the snapshot, or from its jobs.
        self.servers.iter().for_each(|server| server.watched.is_known_of(&name));
    }
}
