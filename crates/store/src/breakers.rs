//! What replicas jointly know about a service that may be down.

use crate::StoreError;
use reveille_core::breaker::Breaker;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Breakers by name. One that nobody has changed is closed.
#[async_trait::async_trait]
pub trait Breakers: Send + Sync + 'static {
    async fn breaker(&self, name: &str) -> Result<Breaker, StoreError>;

    /// Compare-and-swap; returns false, and changes nothing, if it no longer equals `before`.
    async fn swap_breaker(&self, name: &str, before: Breaker, after: Breaker) -> Result<bool, StoreError>;
}

/// The breakers of a store with one process: there is nobody to share them with, and a restart begins afresh.
#[derive(Default)]
pub(crate) struct InProcess(Mutex<BTreeMap<String, Breaker>>);

impl InProcess {
    pub fn get(&self, name: &str) -> Breaker {
        let breakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.get(name).copied().unwrap_or_default()
    }

    pub fn swap(&self, name: &str, before: Breaker, after: Breaker) -> bool {
        let mut breakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = breakers.get(name).copied().unwrap_or_default();
        if now == before {
            breakers.insert(name.to_owned(), after);
        }
        now == before
    }
}
