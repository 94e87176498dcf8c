//! The engine: the rooms, and what belongs to none of them. Nothing is decided here.

mod start;
mod wiring;

use crate::access::Access;
use crate::base::Base;
use crate::clock::{Clock, Rng};
use crate::cluster::Cluster;
use crate::delegations::Delegations;
use crate::fleet::Fleet;
use crate::fleet::workspaces::Workspaces;
use crate::jobs::Jobs;
use crate::observe::Observe;
use crate::observe::audit_writer::AuditWriter;
use crate::observe::checkpoints::{BadSigningKey, Checkpoints};
use crate::observe::events::{Audience, EventId, Events, Reader, SubscribeError};
use crate::observe::metrics::Metrics;
use crate::placement::PlacementTable;
use crate::roster::RosterWriter;
use crate::rules::{BadFile, Rules};
use crate::runtime::Runtime;
use crate::settings::Settings;
use crate::workflows::Workflows;
use reveille_a2a::A2aClient;
use reveille_bus::{Bus, BusError};
use reveille_core::time::Millis;
use reveille_kernel::Kernel;
use reveille_oidc::Oidc;
use reveille_roster::{Roster, RosterError};
use reveille_store::workflows::WorkflowStore;
use reveille_store::{Store, StoreError};
use reveille_traces::Traces;
use std::sync::Arc;

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
    /// Who vouches for people, if somebody does.
    pub oidc: Option<Oidc>,
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
    base: Base,
    audit: AuditWriter,
    checkpoints: Checkpoints,
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

impl Engine {
    /// Stops between any two steps, as kill -9 would.
    pub fn kill(&self) {
        self.0.base.runtime.kill();
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
        &*self.0.base.cluster
    }

    pub fn events(&self) -> &Arc<Events> {
        self.0.base.observe.events()
    }

    /// Reads events on from `after`, or from now on, if one more may.
    pub fn subscribe(&self, audience: Audience, after: Option<EventId>) -> Result<Reader, SubscribeError> {
        self.0.base.observe.subscribe(audience, after)
    }

    pub fn metrics(&self) -> &Metrics {
        self.0.base.observe.metrics()
    }

    pub fn audit(&self) -> &AuditWriter {
        &self.0.audit
    }

    pub fn checkpoints(&self) -> &Checkpoints {
        &self.0.checkpoints
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.base.runtime
    }

    pub(crate) fn observe(&self) -> &Observe {
        &self.0.base.observe
    }

    pub(crate) fn placement(&self) -> &PlacementTable {
        &self.0.base.placement
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    pub(crate) fn bus(&self) -> &Arc<dyn Bus> {
        &self.0.bus
    }

    // What belongs to no room.

    pub fn now(&self) -> Millis {
        self.0.base.runtime.now()
    }

    pub fn settings(&self) -> &Settings {
        self.0.base.runtime.settings()
    }

    pub fn rules(&self) -> Arc<Rules> {
        self.0.base.runtime.rules()
    }

    pub fn is_draining(&self) -> bool {
        self.0.base.runtime.is_draining()
    }

    /// Whether everything that was owed at the start has been picked up.
    pub fn is_recovered(&self) -> bool {
        self.0.base.runtime.is_recovered()
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
            self.0.base.runtime.spawn(self.jobs().clone().review_approvals());
        }
    }

    /// Says that a file was read again and is not used.
    pub fn refuse_rules(&self, bad: &BadFile) {
        self.0.audit.refuse_rules(bad);
    }

    /// Returns what held before.
    fn put_in_force(&self, rules: Rules) -> Arc<Rules> {
        let rules = Arc::new(rules);
        let before = self.0.base.runtime.set_rules(rules.clone());
        let matches = {
            let mut table = self.0.base.placement.lock();
            table.limit_tenants(rules.policy.tenant_limits());
            table.reroute(rules.routing.clone());
            table.reserve_waiting(self.now())
        };
        self.jobs().assign_all(matches);
        before
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
    #[error(transparent)]
    SigningKey(#[from] BadSigningKey),
}
