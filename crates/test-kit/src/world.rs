//! What outlives a server.

use crate::clock::TestClock;
use crate::server::{EngineBuilder, TestServer};
use reveille_core::id::TenantId;
use reveille_core::policy::{Document, Policy};
use reveille_engine::{Clock, Rules};
use reveille_roster::MemoryRoster;
use reveille_store::MemoryStore;
use reveille_store::workflows::MemoryWorkflows;
use serde_json::Value;
use std::sync::Arc;

/// A clock, and everything that is kept; clones are the same world.
#[derive(Clone)]
pub struct TestWorld {
    pub clock: Arc<TestClock>,
    pub store: MemoryStore,
    pub roster: MemoryRoster,
    pub workflows: MemoryWorkflows,
}

impl Default for TestWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl TestWorld {
    pub fn new() -> Self {
        Self::with_clock(TestClock::default())
    }

    pub fn with_clock(clock: TestClock) -> Self {
        let clock = Arc::new(clock);
        let now = clock.clone();
        Self {
            clock,
            store: MemoryStore::new(Arc::new(move || now.now())),
            roster: MemoryRoster::default(),
            workflows: MemoryWorkflows::default(),
        }
    }

    /// An engine on all of this, on a bus of its own and under the rules that hold without any file.
    pub fn engine(&self) -> EngineBuilder {
        EngineBuilder::on(self)
    }

    pub async fn start(&self) -> TestServer {
        self.engine().start().await
    }
}

pub fn tenant() -> TenantId {
    TenantId::known("default")
}

/// A policy whose snapshot is its content.
pub fn policy(document: Value) -> Policy {
    let source = document.to_string();
    let document: Document = serde_json::from_value(document).unwrap();
    Policy::new(document, source.as_bytes()).unwrap()
}

pub fn rules(document: Value) -> Rules {
    Rules { policy: policy(document), ..Rules::default() }
}
