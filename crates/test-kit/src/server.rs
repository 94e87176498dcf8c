//! An engine by builder, and what is around one that runs. The only place where a test names the engine's parts.

use crate::worker::{TestWorker, beat, idle, introduce};
use crate::world::{TestWorld, policy, tenant};
use reveille_a2a::{A2aClient, AddressRules, HttpA2aClient};
use reveille_bus::{Bus, LocalBus};
use reveille_core::fleet::WorkerGrant;
use reveille_core::id::{KeyId, TenantId};
use reveille_core::policy::Policy;
use reveille_engine::{Engine, NewKey, Parts, Rules, SeededRng, Settings};
use reveille_kernel::Kernel;
use reveille_oidc::Oidc;
use reveille_roster::Scope;
use reveille_store::Store;
use reveille_store::workflows::WorkflowStore;
use reveille_traces::{Nowhere, Traces};
use serde_json::Value;
use std::ops::Deref;
use std::sync::Arc;

/// Parts of an engine, each of them something unless a test wants something else.
pub struct EngineBuilder {
    parts: Parts,
    bus: LocalBus,
}

impl EngineBuilder {
    pub(crate) fn on(world: &TestWorld) -> Self {
        let bus = LocalBus::default();
        let parts = Parts {
            store: Arc::new(world.store.clone()),
            roster: Arc::new(world.roster.clone()),
            workflows: Arc::new(world.workflows.clone()),
            bus: Arc::new(bus.clone()),
            a2a: Arc::new(HttpA2aClient::new(AddressRules::default())),
            kernel: None,
            oidc: None,
            traces: Arc::new(Nowhere),
            clock: world.clock.clone(),
            rng: Arc::new(SeededRng::new(1)),
            rules: Rules::default(),
            settings: Settings::default(),
        };
        Self { parts, bus }
    }

    /// With something between the engine and the world's store.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.parts.store = store;
        self
    }

    pub fn workflows(mut self, workflows: Arc<dyn WorkflowStore>) -> Self {
        self.parts.workflows = workflows;
        self
    }

    /// On a bus that others are on too.
    pub fn local_bus(mut self, bus: &LocalBus) -> Self {
        self.parts.bus = Arc::new(bus.clone());
        self.bus = bus.clone();
        self
    }

    /// On a bus of some other kind. The server's own bus is then nobody's.
    pub fn bus(mut self, bus: Arc<dyn Bus>) -> Self {
        self.parts.bus = bus;
        self
    }

    pub fn a2a(mut self, client: Arc<dyn A2aClient>) -> Self {
        self.parts.a2a = client;
        self
    }

    /// Agents may be at addresses of these networks.
    pub fn networks(self, networks: &[String]) -> Self {
        let rules = AddressRules::parse(networks).unwrap();
        self.a2a(Arc::new(HttpA2aClient::new(rules)))
    }

    pub fn loopback_agents(self) -> Self {
        self.networks(&["loopback".to_owned()])
    }

    pub fn kernel(mut self, kernel: Arc<dyn Kernel>) -> Self {
        self.parts.kernel = Some(kernel);
        self
    }

    /// This provider vouches for people.
    pub fn oidc(mut self, oidc: Oidc) -> Self {
        self.parts.oidc = Some(oidc);
        self
    }

    pub fn traces(mut self, traces: Arc<dyn Traces>) -> Self {
        self.parts.traces = traces;
        self
    }

    pub fn seed(mut self, seed: u64) -> Self {
        self.parts.rng = Arc::new(SeededRng::new(seed));
        self
    }

    pub fn rules(mut self, rules: Rules) -> Self {
        self.parts.rules = rules;
        self
    }

    pub fn policy(mut self, policy: Policy) -> Self {
        self.parts.rules.policy = policy;
        self
    }

    pub fn policy_of(self, document: Value) -> Self {
        self.policy(policy(document))
    }

    pub fn settings(mut self, settings: Settings) -> Self {
        self.parts.settings = settings;
        self
    }

    pub async fn start(self) -> TestServer {
        TestServer { engine: Engine::start(self.parts).await.unwrap(), bus: self.bus }
    }
}

/// An engine that runs, and its bus.
#[derive(Clone)]
pub struct TestServer {
    pub engine: Engine,
    pub bus: LocalBus,
}

impl Deref for TestServer {
    type Target = Engine;
    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl TestServer {
    /// A worker of the default tenant that listens, takes these topics and has beaten once.
    pub async fn hire(&self, name: &str, topics: &[&str], capacity: u32) -> TestWorker {
        let worker = TestWorker::listen(&self.bus, name).await;
        introduce(self, &tenant(), name, topics);
        beat(self, &tenant(), name, idle(capacity));
        worker
    }

    /// Somebody of a tenant, with a key of their own; returns its secret.
    pub async fn key(&self, name: &str, tenant: &str, scopes: &[Scope]) -> String {
        create_key(self, name, tenant, scopes).await
    }
}

/// A worker's key of a tenant, with what it may serve; the id of the key.
pub async fn worker_key(engine: &Engine, name: &str, tenant: &str, grant: WorkerGrant) -> KeyId {
    let new = NewKey {
        name: name.to_owned(),
        tenant: TenantId::known(tenant),
        scopes: vec![Scope::Worker],
        worker: Some(grant),
        expires_at: None,
        created_by: "test".to_owned(),
        issued_by: None,
        project_ids: None,
    };
    engine.access().create_key(new).await.unwrap().0.id
}

pub async fn create_key(engine: &Engine, name: &str, tenant: &str, scopes: &[Scope]) -> String {
    let new = NewKey {
        name: name.to_owned(),
        tenant: TenantId::known(tenant),
        scopes: scopes.to_vec(),
        worker: None,
        expires_at: None,
        created_by: "test".to_owned(),
        issued_by: None,
        project_ids: None,
    };
    engine.access().create_key(new).await.unwrap().1
}
