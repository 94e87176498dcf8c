//! The ledger without a disk.

use super::audit_trail::MemoryTrail;
use crate::query::page_len;
use crate::{AuditQuery, ChainPage, Ledger, Origin, Page, StoreError};
use reveille_core::audit::{Draft, Entry};
use reveille_core::id::TenantId;
use reveille_core::time::Millis;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle; clones share one ledger.
#[derive(Clone, Default)]
pub struct MemoryLedger {
    sealed: Arc<Mutex<SealedTrail>>,
}

#[derive(Default)]
struct SealedTrail {
    entries: MemoryTrail,
    /// Where each entry stands among all.
    origins: BTreeMap<Origin, u64>,
}

impl MemoryLedger {
    pub fn new() -> Self {
        Self::default()
    }

    fn sealed(&self) -> MutexGuard<'_, SealedTrail> {
        self.sealed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Ledger for MemoryLedger {
    async fn seal(&self, drafts: Vec<(Origin, Draft)>) -> Result<(), StoreError> {
        let mut sealed = self.sealed();
        for (origin, draft) in drafts {
            if !sealed.origins.contains_key(&origin) {
                sealed.entries.append(vec![draft]);
                let position = sealed.entries.newest();
                sealed.origins.insert(origin, position);
            }
        }
        Ok(())
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
        Ok(self.sealed().entries.list(query))
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError> {
        Ok(self.sealed().entries.chain(tenant, after, page_len(limit)))
    }

    async fn chains(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError> {
        Ok(self.sealed().entries.chains(after, page_len(limit)))
    }

    async fn prune(&self, before: Millis, limit: usize) -> Result<u64, StoreError> {
        let mut sealed = self.sealed();
        let gone = sealed.entries.prune(before, limit);
        let oldest = sealed.entries.oldest().unwrap_or(u64::MAX);
        sealed.origins.retain(|_, position| *position >= oldest);
        Ok(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;

    #[tokio::test]
    async fn the_memory_ledger_keeps_the_promises_of_the_port() {
        let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
        suite::ledger::run(&ledger).await;
    }
}
