//! The replicas that share a store: which are alive, and which jobs belong to which.
//!
//! A live job belongs to the replica that committed it last: that one runs its timer and sends what it owes. When a
//! replica falls silent the others take over its jobs. Should two act for one job all the same, the commit decides
//! between them.

use crate::{Page, StoreError};
use reveille_core::id::JobId;
use reveille_core::job::Job;
use std::sync::Arc;

/// How often a replica beats.
pub const BEAT_MS: i64 = 1_000;
/// How long a silent replica still counts as alive.
pub const BEAT_TTL_MS: i64 = 3_000;

/// What a replica learns when it beats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// Whether nobody can have considered it dead since its last beat.
    pub was_here: bool,
    /// Replicas that have fallen silent and may have left jobs behind.
    pub silent: Vec<String>,
    /// Replicas that are alive, including this one.
    pub here: Vec<String>,
}

/// The port. Liveness goes by one clock for all, the store's: a replica that has beaten within [`BEAT_TTL_MS`] is
/// alive, and nobody takes its jobs. A job of a silent replica is adopted by exactly one other, however many try. A
/// store with one process needs none of this.
#[async_trait::async_trait]
pub trait Membership: Send + Sync + 'static {
    /// The name of this start of this replica, as the others know it; nothing where there are no others.
    #[expect(clippy::unnecessary_literal_bound, reason = "those that have a name keep it")]
    fn name(&self) -> &str {
        ""
    }

    /// Whether others may work on the same jobs.
    fn is_shared(&self) -> bool {
        !self.name().is_empty()
    }

    /// Announces that this replica is alive, with a description for operators.
    async fn beat(&self, _about: &str) -> Result<Members, StoreError> {
        Ok(Members { was_here: true, silent: Vec::new(), here: Vec::new() })
    }

    /// Takes over at most `limit` jobs of a silent replica, and returns which. None means that it is back; an empty
    /// list, that it has none left.
    async fn adopt(&self, _silent: &str, _limit: usize) -> Result<Option<Vec<Arc<Job>>>, StoreError> {
        Ok(None)
    }

    /// The live jobs of this replica, in the order of their creation, after `cursor`.
    async fn owned(&self, _cursor: Option<u64>, _limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        Ok(Page { items: Vec::new(), next: None })
    }

    /// The owner of a live job.
    async fn owner(&self, _job: &JobId) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
}
