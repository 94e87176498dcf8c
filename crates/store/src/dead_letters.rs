//! Dead letters: jobs that ended in a way that someone should look at.

use crate::{Page, StoreError};
use reveille_core::id::{JobId, TenantId, Topic};
use reveille_core::job::DeadLetter;
use reveille_core::reason::Reason;
use reveille_core::time::Millis;
use std::collections::BTreeMap;

/// Dead letters by reason; a reason may have no code.
pub type DeadLetterCounts = BTreeMap<Option<Reason>, u64>;

/// Which dead letters to list; filters are applied before the limit.
#[derive(Debug, Clone, Default)]
pub struct DeadLetterQuery {
    /// None means every tenant.
    pub tenant: Option<TenantId>,
    pub job: Option<JobId>,
    pub reason: Option<Reason>,
    pub topic: Option<Topic>,
    /// Only those that died before this moment.
    pub before: Option<Millis>,
    /// Where the page before ended: only jobs that died earlier.
    pub cursor: Option<u64>,
    pub limit: usize,
}

impl DeadLetterQuery {
    /// Whether a letter belongs on the list, wherever the cursor stands.
    pub(crate) fn matches(&self, letter: &DeadLetter) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| *tenant == letter.tenant)
            && self.job.as_ref().is_none_or(|job| *job == letter.job_id)
            && self.reason.is_none_or(|reason| Some(reason) == letter.reason_code)
            && self.topic.as_ref().is_none_or(|topic| *topic == letter.topic)
            && self.before.is_none_or(|before| letter.created_at < before)
    }
}

/// The port. An entry is written and removed by the commit that ends or releases its job
/// ([`JobStore::commit`](crate::JobStore::commit)), and is pruned with its job. What was removed stays removed after
/// kill -9.
#[async_trait::async_trait]
pub trait DeadLetters: Send + Sync + 'static {
    /// One page of dead letters, newest first.
    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError>;

    /// How many dead letters a tenant has (all of them, if none is named) of each reason.
    async fn count_dead_letters(&self, tenant: Option<&TenantId>) -> Result<DeadLetterCounts, StoreError>;

    /// Removes a job from the dead letters; returns whether it was there.
    async fn remove_dead_letter(&self, job: &JobId) -> Result<bool, StoreError>;
}
