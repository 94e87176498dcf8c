//! The Roster port: who may call, who was there, and how the fleet is built up; and its adapters.
//!
//! The engine holds working copies of nearly all of this in memory. The roster is what a restart finds:
//! keys and tenants, sessions that were ended, presence rows, workspaces, structure events, delegations, drains.

pub mod change;
mod ended;
mod generations;
pub mod key;
mod memory;
mod postgres;
mod role;
mod sqlite;
#[cfg(any(test, feature = "suite"))]
pub mod suite;

pub use change::{AHEAD_MS, Change, PresenceKey, PresenceRow, StructureEvent, StructureEventQuery, Tenant};
pub use ended::EndedSessions;
pub use generations::Generations;
pub use key::{KeyHash, KeyRecord, PublicKey, Scope};
pub use memory::MemoryRoster;
pub use postgres::{PostgresOptions, PostgresRoster, examine};
pub use role::{Reach, Role, RoleGrant};
pub use sqlite::SqliteRoster;

use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::presence::Drain;
use reveille_core::presence::delegation::Delegation;
use reveille_core::presence::workspace::Workspace;
use reveille_core::time::Millis;
use reveille_store::StoreError;
use reveille_store::postgres::DatabaseError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterError {
    #[error("the roster is not available: {0}")]
    Unavailable(String),
    /// Says what is full.
    #[error("{0}")]
    Full(&'static str),
    #[error("the roster holds something unreadable: {0}")]
    Corrupt(String),
    /// Writing it again would be refused again.
    #[error("the roster refuses a change: {0}")]
    Refused(String),
    #[error(
        "a newer version of Reveille wrote this roster \
         (it has schema {found}, this version knows up to {known})"
    )]
    Newer { found: u64, known: u64 },
}

impl RosterError {
    /// Whether the same call may work later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Full(_))
    }
}

impl From<DatabaseError> for RosterError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Store(error) => error.into(),
            DatabaseError::Newer { found, known } => Self::Newer { found, known },
        }
    }
}

impl From<StoreError> for RosterError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full(what) => Self::Full(what),
            StoreError::Unavailable(what) => Self::Unavailable(what),
            StoreError::Corrupt(what) => Self::Corrupt(what),
            StoreError::Refused(what) => Self::Refused(what),
        }
    }
}

/// The port.
///
/// What was written is durable when [`Roster::write`] returns and survives kill -9. Reads see every
/// write that was answered before they began. A row that cannot be read is left out and logged; it hides
/// no other, and a page with one is as long as any.
#[async_trait::async_trait]
pub trait Roster: Send + Sync + 'static {
    /// Makes all of the changes, in this order, or none of them. Each is an upsert or a removal, so
    /// that writing a change again does no harm. The one thing that is refused is a key with the secret
    /// of another key.
    async fn write(&self, changes: Vec<Change>) -> Result<(), RosterError>;

    /// Every key, revoked ones too, by id.
    async fn keys(&self) -> Result<Vec<KeyRecord>, RosterError>;

    /// Sessions that were ended, by key and session.
    async fn ended_sessions(&self) -> Result<Vec<EndedSessions>, RosterError>;

    /// Every tenant that ever had a key or a workspace, by id.
    async fn tenants(&self) -> Result<Vec<Tenant>, RosterError>;

    /// Presence rows in the order of their keys, after `after`; at most `limit`.
    async fn presence(
        &self,
        after: Option<PresenceKey>,
        limit: usize,
    ) -> Result<Vec<PresenceRow>, RosterError>;

    /// Workspaces in the order of their ids, after `after`; at most `limit`. Removed ones are there too.
    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<Workspace>, RosterError>;

    /// A tenant's structure events (or one workspace's), newest first.
    async fn events(&self, query: &StructureEventQuery) -> Result<Vec<StructureEvent>, RosterError>;

    async fn delegation(&self, id: &JobId) -> Result<Option<Delegation>, RosterError>;

    /// What a workspace has delegated, newest first; at most `limit`.
    async fn delegations_of(
        &self,
        source: &WorkspaceId,
        limit: usize,
    ) -> Result<Vec<Delegation>, RosterError>;

    /// Delegations that are jobs and have not ended, by id, after `after`; at most `limit`.
    async fn open_delegations(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<Delegation>, RosterError>;

    /// Every drain: workers before pools, by name.
    async fn drains(&self) -> Result<Vec<Drain>, RosterError>;

    /// How often keys, ended sessions, workspaces and drains have changed.
    async fn generations(&self) -> Result<Generations, RosterError>;

    /// Removes presence rows last seen before `seen_before`, except those of workspaces that are there;
    /// and events from before `events_before`, and delegations not touched since then that are not open;
    /// at most `limit` of each. Says how many rows went.
    async fn prune(
        &self,
        seen_before: Millis,
        events_before: Millis,
        limit: usize,
    ) -> Result<u64, RosterError>;
}

/// Whether a delegation is a job of ours that has not ended.
fn is_open(given: &Delegation) -> bool {
    given.is_job && !given.status.is_final()
}
