//! The promises of [`Ledger`]: what is sealed is in its chain once, in the order in which it came.

use super::{ManualClock, audit};
use crate::{AuditQuery, AuditTrail, ChainPage, Ledger, Lock, Origin, Page, StoreError};
use reveille_core::audit::{Draft, Entry, EventType};
use reveille_core::id::TenantId;
use reveille_core::time::Millis;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinSet;

const NOW: Millis = Millis(1_000_000);
const SEALERS: u64 = 8;

/// Runs every check, in order, on a ledger that nobody else writes to.
pub async fn run(ledger: &Arc<dyn Ledger>) {
    what_is_sealed_again_is_there_once(&**ledger).await;
    many_sealers_of_the_same_leave_neither_gap_nor_double(ledger).await;
    a_chain_goes_on_where_it_was_pruned(&**ledger).await;
    audit::of_any_trail(&Sealing::over(&**ledger), &ManualClock::new(NOW)).await;
}

/// An entry that says nothing but its number, and has that as its origin.
pub fn numbered(tenant: &str, number: u64) -> (Origin, Draft) {
    let mut origin = [0; 16];
    origin[8..].copy_from_slice(&number.to_be_bytes());
    for (byte, letter) in origin.iter_mut().zip(tenant.bytes().rev().take(8)) {
        *byte = letter;
    }
    (Origin(origin), Draft::new(TenantId::known(tenant), NOW, EventType::Auth, &number.to_string()))
}

pub async fn what_is_sealed_again_is_there_once(ledger: &dyn Ledger) {
    let one = |number| numbered("again", number);
    ledger.seal(Vec::new()).await.unwrap();
    ledger.seal(vec![one(7), one(3), one(7)]).await.unwrap();
    ledger.seal(vec![one(3), one(9), one(7), numbered("again-other", 1), one(1)]).await.unwrap();
    ledger.seal(vec![one(1)]).await.unwrap();
    assert_eq!(sealed(ledger, "again").await, ["7", "3", "9", "1"], "in the order in which they came");
    // What an origin was first sealed with stays.
    let (origin, draft) = one(7);
    ledger.seal(vec![(origin, Draft { reason: "another".to_owned(), ..draft })]).await.unwrap();
    let trail = Sealing::over(ledger);
    audit::whole(&trail, "again", 4).await;
    audit::whole(&trail, "again-other", 1).await;
    assert_eq!(audit::trail(&trail, "again").await[0].draft, one(7).1);
}

pub async fn many_sealers_of_the_same_leave_neither_gap_nor_double(ledger: &Arc<dyn Ledger>) {
    const BATCHES: u64 = 10;
    let tenants = ["rivals-a", "rivals-b"];
    let mut sealers = JoinSet::new();
    for sealer in 0..SEALERS {
        let ledger = Arc::clone(ledger);
        sealers.spawn(async move {
            for batch in 0..BATCHES {
                // Each has some that others have too, in an order of its own.
                let numbers = (0..20).map(|n| (batch * 10 + n * (sealer + 1)) % (BATCHES * 10));
                let drafts = numbers.map(|n| numbered(tenants[n as usize % 2], n));
                ledger.seal(drafts.collect()).await.unwrap();
            }
        });
    }
    sealers.join_all().await;
    let mut all = BTreeSet::new();
    for tenant in tenants {
        let actions = sealed(&**ledger, tenant).await;
        audit::whole(&Sealing::over(&**ledger), tenant, actions.len() as u64).await;
        let count = actions.len() + all.len();
        all.extend(actions);
        assert_eq!(all.len(), count, "nothing is sealed twice");
    }
    assert_eq!(all.len() as u64, BATCHES * 10);
}

pub async fn a_chain_goes_on_where_it_was_pruned(ledger: &dyn Ledger) {
    let one = |number| numbered("pruned-ledger", number);
    ledger.seal(vec![one(1), one(2)]).await.unwrap();
    while ledger.prune(NOW + 1, 100).await.unwrap() > 0 {}
    ledger.seal(vec![one(3), one(4), one(3)]).await.unwrap();
    let page = ledger.chain(&TenantId::known("pruned-ledger"), 0, 10).await.unwrap();
    assert_eq!((page.bounds.boundary.seq, page.bounds.head.seq), (2, 4));
    assert_eq!(page.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(page.entries[0].prev_hash, page.bounds.boundary.hash);
}

/// What a tenant's entries say, in their order.
pub async fn sealed(ledger: &dyn Ledger, tenant: &str) -> Vec<String> {
    let entries = audit::trail(&Sealing::over(ledger), tenant).await;
    entries.into_iter().map(|entry| entry.draft.action).collect()
}

/// A ledger as a trail: what is recorded is sealed at once, each under an origin of its own.
pub struct Sealing<'l> {
    ledger: &'l dyn Ledger,
    last: AtomicU64,
}

impl<'l> Sealing<'l> {
    pub fn over(ledger: &'l dyn Ledger) -> Self {
        Self { ledger, last: AtomicU64::new(0) }
    }
}

#[async_trait::async_trait]
impl AuditTrail for Sealing<'_> {
    /// Nobody holds a lock of a ledger.
    async fn record_under(&self, _: &Lock, _: Vec<Draft>) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn record(&self, drafts: Vec<Draft>) -> Result<(), StoreError> {
        let numbered = drafts.into_iter().map(|draft| {
            let number = self.last.fetch_add(1, Ordering::SeqCst);
            (numbered("recorded", number).0, draft)
        });
        self.ledger.seal(numbered.collect()).await
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
        self.ledger.audit(query).await
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError> {
        self.ledger.chain(tenant, after, limit).await
    }

    async fn chains(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError> {
        self.ledger.chains(after, limit).await
    }

    async fn prune_audit(&self, before: Millis, limit: usize) -> Result<u64, StoreError> {
        self.ledger.prune(before, limit).await
    }
}
