//! What one tenant may have at once. Each quota has a name, which answers, metrics and reasons tell, so that whoever is
//! refused knows which setting to ask for. Where a quota is counted is the business of whoever keeps the thing.

mod stored_bytes;

pub use stored_bytes::{Charge, StoredBytes};

use crate::words::words;

words! {
    /// The quotas of a tenant, by their names.
    TenantQuota {
        /// Agents and credentialed CAP workers in the fleet.
        Members = "members",
        /// Workspaces, retired ones too for as long as they are remembered.
        Workspaces = "workspaces",
        /// Bytes of inputs and results that have not expired.
        BlobBytes = "blob_bytes",
        /// Open streams and sockets of events.
        Subscribers = "subscribers",
        /// Runs that are under way, those of subworkflow steps too.
        Runs = "runs",
        /// Jobs that wait for a person.
        Approvals = "approvals",
    }
}

/// A tenant has as much of something as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tenant has reached its quota of {quota}, which is {max}")]
pub struct OverQuota {
    pub quota: TenantQuota,
    pub max: u64,
}

impl TenantQuota {
    /// Refuses one more, if the tenant has `has` of it already.
    pub fn check(self, has: u64, max: u64) -> Result<(), OverQuota> {
        if has < max { Ok(()) } else { Err(OverQuota { quota: self, max }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_is_given_and_the_next_refusal_names_the_quota() {
        assert_eq!(TenantQuota::Runs.check(1, 2), Ok(()));
        let refused = TenantQuota::Runs.check(2, 2).unwrap_err();
        assert_eq!(refused.to_string(), "the tenant has reached its quota of runs, which is 2");
        assert_eq!(TenantQuota::Approvals.check(0, 0).unwrap_err().quota, TenantQuota::Approvals);
    }
}
