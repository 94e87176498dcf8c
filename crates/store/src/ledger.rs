//! The Ledger port: where the audit trail of a shared store is kept for good.
//!
//! The commit puts its entries into an outbox that is part of it. Sealing gives them their numbers and hashes and
//! keeps them; only then do they leave the outbox. Whoever dies in between seals them again, and an entry that
//! was sealed before is known by its origin.

use crate::memory::Entries;
use crate::query::page_len;
use crate::{AuditQuery, ChainPage, Page, StoreError};
use reveille_core::audit::{Draft, Entry};
use reveille_core::id::TenantId;
use reveille_core::time::Millis;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tells one entry from every other, whoever seals it and how often.
pub type Origin = [u8; 16];

/// The port.
#[async_trait::async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Appends entries in this order, all of them or none; those whose origin is known are left out.
    async fn seal(&self, drafts: Vec<(Origin, Draft)>) -> Result<(), StoreError>;

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError>;

    /// As [`Trail::chain`](crate::Trail::chain).
    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError>;

    /// As [`Trail::prune_audit`](crate::Trail::prune_audit).
    async fn prune(&self, before: Millis, limit: usize) -> Result<u64, StoreError>;
}

/// A ledger that lasts as long as the process.
#[derive(Default)]
pub struct MemoryLedger(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    known: BTreeSet<Origin>,
    entries: Entries,
}

impl MemoryLedger {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Ledger for MemoryLedger {
    async fn seal(&self, drafts: Vec<(Origin, Draft)>) -> Result<(), StoreError> {
        let mut pages = self.pages();
        for (origin, draft) in drafts {
            if pages.known.insert(origin) {
                pages.entries.append(vec![draft]);
            }
        }
        Ok(())
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
        Ok(self.pages().entries.list(query))
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError> {
        Ok(self.pages().entries.chain(tenant, after, page_len(limit)))
    }

    async fn prune(&self, before: Millis, limit: usize) -> Result<u64, StoreError> {
        Ok(self.pages().entries.prune(before, limit))
    }
}
