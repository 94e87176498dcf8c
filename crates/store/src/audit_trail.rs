//! The store's audit trail: entries are appended, listed, checked and, long after, pruned. They are never changed.

use crate::StoreError;
use crate::locks::Lock;
use crate::query::{PAGE_LEN_MAX, Page};
use reveille_core::audit::{Bounds, Draft, Entry, EventType, Severity, Verification, Verifier};
use reveille_core::id::{JobId, TenantId};
use reveille_core::time::Millis;

/// Which entries to list. Filters are applied before the limit, so a page is short only when it is the
/// last.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    /// None means every tenant, in the order in which things were recorded.
    pub tenant: Option<TenantId>,
    pub order: AuditOrder,
    pub event_type: Option<EventType>,
    pub severity: Option<Severity>,
    pub job_id: Option<JobId>,
    /// Both ends are inclusive.
    pub from: Option<Millis>,
    pub to: Option<Millis>,
    /// Where the page before ended. It counts in a tenant's own numbers if a tenant is named, so it is valid only for
    /// the same query.
    pub cursor: Option<u64>,
    pub limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditOrder {
    #[default]
    NewestFirst,
    OldestFirst,
}

impl AuditQuery {
    /// Whether an entry belongs on the list, regardless of the cursor.
    pub(crate) fn matches(&self, Entry { draft, .. }: &Entry) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| *tenant == draft.tenant)
            && self.event_type.is_none_or(|event_type| event_type == draft.event_type)
            && self.severity.is_none_or(|severity| severity == draft.severity)
            && self.job_id.as_ref().is_none_or(|id| Some(id) == draft.job_id.as_ref())
            && self.from.is_none_or(|from| draft.at >= from)
            && self.to.is_none_or(|to| draft.at <= to)
    }
}

/// A piece of one tenant's chain, with the bounds that the chain had at the same moment.
#[derive(Debug, Clone, Default)]
pub struct ChainPage {
    pub bounds: Bounds,
    pub entries: Vec<Entry>,
}

/// The audit trail. What a commit records ([`Step`](crate::Step)) is appended by the commit itself; an entry exists
/// if, and only if, what it records does. Every tenant's entries are numbered from one, without a gap.
#[async_trait::async_trait]
pub trait AuditTrail: Send + Sync {
    /// Appends entries that belong to no job, all or nothing.
    async fn record(&self, drafts: Vec<Draft>) -> Result<(), StoreError>;

    /// The same while a lock is held. Says no, and appends nothing, once it has lapsed.
    async fn record_under(&self, lock: &Lock, drafts: Vec<Draft>) -> Result<bool, StoreError>;

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError>;

    /// A tenant's entries after number `after`, oldest first, for a [`Verifier`].
    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError>;

    /// The tenants that have a chain, also one of which everything was pruned, in the order of their names' bytes: at
    /// most `limit`, after `after`.
    async fn chains(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError>;

    /// Removes at most `limit` entries that were recorded before `before`, oldest first, and remembers where each
    /// chain now begins. An entry is at least as old as every one that came after it, whatever a clock said. Returns
    /// how many were removed.
    async fn prune_audit(&self, before: Millis, limit: usize) -> Result<u64, StoreError>;
}

/// Checks a tenant's chain page by page, from its oldest entry on. After about `entries_max` it stops.
pub async fn verify_chain(
    trail: &(impl AuditTrail + ?Sized),
    tenant: &TenantId,
    entries_max: u64,
) -> Result<Verification, StoreError> {
    let mut verifier = Verifier::default();
    let mut next = Some(0);
    while let Some(after) = next.filter(|_| verifier.looked_at() < entries_max) {
        let page = trail.chain(tenant, after, PAGE_LEN_MAX).await?;
        verifier.page(&page.bounds, &page.entries);
        next = verifier.next_after();
    }
    Ok(verifier.finish())
}
