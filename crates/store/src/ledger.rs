//! Where the audit trail of many replicas is kept, if not in the store itself.
//!
//! A commit leaves its audit entries in an outbox, without a place in any chain. A sealer moves them to the ledger,
//! which assigns their number and hash. The sealer may die at any moment, and there may be several: an entry is
//! identified by its [`Origin`], so that sealing it again does no harm.

use crate::{AuditQuery, ChainPage, Page, StoreError};
use reveille_core::audit::{Draft, Entry};
use reveille_core::id::TenantId;
use reveille_core::time::Millis;

/// Identifies an entry before it has a place: random, and drawn once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(pub [u8; 16]);

/// The port. What was sealed survives kill -9. Every tenant's entries are numbered from one, without a gap,
/// however many seal at once. Reads see everything that was sealed before they began.
#[async_trait::async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Appends to the chains of the drafts' tenants, in this order, all or nothing. Entries sealed before are
    /// skipped. An origin is remembered for as long as its entry is kept.
    async fn seal(&self, drafts: Vec<(Origin, Draft)>) -> Result<(), StoreError>;

    /// As [`AuditTrail::audit`](crate::AuditTrail::audit).
    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError>;

    /// As [`AuditTrail::chain`](crate::AuditTrail::chain).
    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError>;

    /// As [`AuditTrail::chains`](crate::AuditTrail::chains).
    async fn chains(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError>;

    /// As [`AuditTrail::prune_audit`](crate::AuditTrail::prune_audit).
    async fn prune(&self, before: Millis, limit: usize) -> Result<u64, StoreError>;
}
