//! The replicas that share a store: who is here, and whose jobs are whose.
//!
//! A live job belongs to the replica that committed it last: that one has its timer and sends what it owes.
//! When a replica falls silent the others take its jobs over. Should two act for one job all the same, the
//! commit tells them apart.

use crate::{Page, StoreError};
use bytes::Bytes;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::job::Job;
use std::sync::Arc;
use std::time::Duration;

/// How often a replica says that it is here.
pub const BEAT_MS: i64 = 1_000;
/// How long one that says nothing still counts as here.
pub const BEAT_TTL_MS: i64 = 3_000;

/// How long a hint lasts: seed 003 has a workspace beat every 30 s and count as gone after two.
pub(crate) const HINT_TTL_MS: i64 = 60_000;
/// How much of what those who watch were told is kept; a little more stays.
pub const EVENT_LOG_KEPT_MAX: usize = 65_536;
/// And how large it may grow. What is large goes earlier.
pub const EVENT_LOG_BYTES_MAX: usize = 64 << 20;
/// How much of it is read at once.
pub const EVENT_LOG_LEN_MAX: usize = 2_000;

/// What those who watch were told, in the one order that it has for all replicas. Places grow, and are never
/// used again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventPage {
    pub items: Vec<(u64, Bytes)>,
    /// The oldest and the newest place that is kept; nothing if none is.
    pub kept: Option<(u64, u64)>,
}

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

/// The port. A store that has one process needs none of it.
#[async_trait::async_trait]
pub trait Replicas: Send + Sync + 'static {
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

    /// Leaves a word for others to read of workspaces that were heard, and where each takes messages. It is only a
    /// hint: nobody here reads it.
    async fn hint(&self, _heard: &[(WorkspaceId, Option<String>)]) -> Result<(), StoreError> {
        Ok(())
    }

    /// What was told after a place, as soon as there is something, and after `wait` in any case. What a step
    /// tells ([`Step::telling`](crate::Step::telling)) is there when the step counts, and only then.
    async fn read_events(&self, _after: u64, _wait: Duration) -> Result<EventPage, StoreError> {
        Ok(EventPage::default())
    }

    /// Tells what belongs to no step. `batch` numbers what one replica tells: said again, it is told once.
    async fn append_events(&self, _batch: u64, _items: &[Bytes]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whose a live job is.
    async fn owner(&self, _job: &JobId) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
}
