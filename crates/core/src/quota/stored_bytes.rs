//! How many bytes of inputs and results each tenant has stored, by when they expire.
//!
//! Everything that is stored expires, so a count that only ever adds, and forgets what has expired, comes right by itself:
//! what is deleted or overwritten earlier counts until it would have expired, and never longer. Moments are rounded up to
//! [`STEP_MS`], so that a tenant costs a few numbers however much it stores.

use super::{OverQuota, TenantQuota};
use crate::id::TenantId;
use crate::time::Millis;
use std::collections::BTreeMap;

/// What expires within the same ten minutes is counted together, and as long as the last of it.
const STEP_MS: i64 = 10 * 60 * 1000;

#[derive(Debug, Default)]
pub struct StoredBytes {
    of_tenant: BTreeMap<TenantId, TenantBytes>,
}

#[derive(Debug, Default)]
struct TenantBytes {
    total: u64,
    by_expiry: BTreeMap<i64, u64>,
}

/// Something that a tenant stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    pub tenant: TenantId,
    pub len: u64,
    pub expires_at: Millis,
}

impl StoredBytes {
    /// Counts what is about to be stored, unless the tenant would have more than `max` with it.
    pub fn charge(&mut self, charge: &Charge, max: u64, now: Millis) -> Result<(), OverQuota> {
        let total = self.total_of(&charge.tenant, now);
        if total.saturating_add(charge.len) > max {
            return Err(OverQuota { quota: TenantQuota::BlobBytes, max });
        }
        self.count(charge, now);
        Ok(())
    }

    /// Counts what is stored whether or not it fits.
    pub fn count(&mut self, charge: &Charge, now: Millis) {
        if charge.expires_at <= now || charge.len == 0 {
            return;
        }
        let bytes = self.of_tenant.entry(charge.tenant.clone()).or_default();
        bytes.total = bytes.total.saturating_add(charge.len);
        let step = bytes.by_expiry.entry(step(charge.expires_at)).or_default();
        *step = step.saturating_add(charge.len);
    }

    /// It was not stored after all.
    pub fn take_back(&mut self, charge: &Charge) {
        let Some(bytes) = self.of_tenant.get_mut(&charge.tenant) else { return };
        let Some(step) = bytes.by_expiry.get_mut(&step(charge.expires_at)) else { return };
        let len = charge.len.min(*step);
        *step -= len;
        bytes.total -= len;
    }

    /// What a tenant has stored that has not expired.
    pub fn total_of(&mut self, tenant: &TenantId, now: Millis) -> u64 {
        let Some(bytes) = self.of_tenant.get_mut(tenant) else { return 0 };
        bytes.forget_expired(now);
        bytes.total
    }

    /// Forgets what has expired of all tenants.
    pub fn forget_expired(&mut self, now: Millis) {
        self.of_tenant.retain(|_, bytes| {
            bytes.forget_expired(now);
            bytes.total > 0
        });
    }
}

impl TenantBytes {
    fn forget_expired(&mut self, now: Millis) {
        while let Some(first) = self.by_expiry.first_entry().filter(|first| *first.key() <= now.0) {
            self.total -= first.remove();
        }
    }
}

/// The end of the ten minutes that a moment is in.
fn step(expires_at: Millis) -> i64 {
    (expires_at.0 / STEP_MS).saturating_add(1).saturating_mul(STEP_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(tenant: &str, len: u64, expires_at: i64) -> Charge {
        Charge { tenant: TenantId::known(tenant), len, expires_at: Millis(expires_at) }
    }

    #[test]
    fn what_expires_makes_room_and_tenants_have_each_their_own() {
        let mut stored = StoredBytes::default();
        let (acme, now) = (TenantId::known("acme"), Millis(0));
        assert_eq!(stored.charge(&charge("acme", 60, STEP_MS), 100, now), Ok(()));
        assert_eq!(stored.charge(&charge("acme", 40, 5 * STEP_MS), 100, now), Ok(()));
        let over = stored.charge(&charge("acme", 1, STEP_MS), 100, now).unwrap_err();
        assert_eq!((over.quota, over.max), (TenantQuota::BlobBytes, 100));
        assert_eq!(stored.charge(&charge("zeta", 100, STEP_MS), 100, now), Ok(()));
        assert_eq!(stored.total_of(&acme, Millis(2 * STEP_MS - 1)), 100, "moments are rounded up");
        assert_eq!(stored.total_of(&acme, Millis(2 * STEP_MS)), 40);
        stored.forget_expired(Millis(6 * STEP_MS));
        assert!(stored.of_tenant.is_empty());
    }

    #[test]
    fn what_was_not_stored_does_not_count_and_what_must_be_counts_beyond_the_quota() {
        let mut stored = StoredBytes::default();
        let (acme, now) = (TenantId::known("acme"), Millis(0));
        let whole = charge("acme", 100, STEP_MS);
        assert_eq!(stored.charge(&whole, 100, now), Ok(()));
        stored.take_back(&whole);
        stored.take_back(&charge("nobody", 1, STEP_MS));
        assert_eq!(stored.total_of(&acme, now), 0);
        stored.count(&charge("acme", 300, STEP_MS), now);
        stored.count(&charge("acme", 300, -1), now);
        assert_eq!(stored.total_of(&acme, now), 300);
        assert!(stored.charge(&charge("acme", 0, STEP_MS), 100, now).is_err());
    }

    #[test]
    fn a_tenant_that_stores_without_end_costs_a_few_numbers() {
        let mut stored = StoredBytes::default();
        for at in 0..100_000 {
            stored.count(&charge("acme", 10, at * 10 + 24 * 3_600_000), Millis(at * 10));
        }
        assert!(stored.of_tenant[&TenantId::known("acme")].by_expiry.len() < 10);
    }
}
