//! The replicas that share a store: who is here, and whose jobs are whose.
//!
//! A live job belongs to the replica that committed it last: that one has its timer and sends what it owes.
//! When a replica falls silent the others take its jobs over. Should two act for one job all the same, the
//! commit tells them apart.

use crate::{Page, StoreError};
use reveille_core::id::JobId;
use reveille_core::job::Job;
use std::sync::Arc;

/// How often a replica says that it is here.
pub const BEAT_MS: i64 = 1_000;
/// How long one that says nothing still counts as here.
pub const BEAT_TTL_MS: i64 = 3_000;

/// What a replica learns when it says that it is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// Whether nobody can have taken it for dead since its last beat.
    pub was_here: bool,
    /// Those who have fallen silent and may have left jobs behind.
    pub silent: Vec<String>,
    /// Those who are here, this one among them.
    pub here: Vec<String>,
}

/// The port. Who is here goes by one clock for all, that of the store: who has beaten within [`BEAT_TTL_MS`] is, and
/// nobody takes its jobs. A job of one that has fallen silent is adopted by one other, however many try. A store that
/// has one process needs none of it.
#[async_trait::async_trait]
pub trait Membership: Send + Sync + 'static {
    /// The name of this life of this replica, as the others know it; nothing where there are no others.
    #[expect(clippy::unnecessary_literal_bound, reason = "those that have a name keep it")]
    fn name(&self) -> &str {
        ""
    }

    /// Whether others may work on the same jobs.
    fn is_shared(&self) -> bool {
        !self.name().is_empty()
    }

    /// Says that this replica is here, and what it is, for operators to read.
    async fn beat(&self, _about: &str) -> Result<Members, StoreError> {
        Ok(Members { was_here: true, silent: Vec::new(), here: Vec::new() })
    }

    /// Takes over at most `limit` jobs of a replica that is silent, and says which. None means that it is
    /// back; an empty list, that it has none left.
    async fn adopt(&self, _silent: &str, _limit: usize) -> Result<Option<Vec<Arc<Job>>>, StoreError> {
        Ok(None)
    }

    /// The live jobs of this replica, in the order of their creation, after `cursor`.
    async fn owned(&self, _cursor: Option<u64>, _limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        Ok(Page { items: Vec::new(), next: None })
    }

    /// Whose a live job is.
    async fn owner(&self, _job: &JobId) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
}
