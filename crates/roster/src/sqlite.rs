//! The roster in tables of its own, in the store's file: one file, one writer, one sync.
//!
//! A batch is one change of the store's writer, so it is made whole or not at all. It is turned into
//! JSON before it gets to the writer's thread, which everybody shares. Nothing is cached here; the engine
//! has its own copy of what it often needs.

#![allow(clippy::doc_markdown, reason = "SQLite is a name, not code")]

mod batch;
mod prune;
mod queries;
mod schema;

use crate::{
    Change, EndedSessions, Generations, KeyRecord, PresenceKey, PresenceRow, Roster, RosterError,
    StructureEvent, StructureEventQuery, Tenant,
};
use batch::SqliteBatch;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::presence::delegation::Delegation;
use reveille_core::presence::workspace::Workspace;
use reveille_core::presence::{Contract, Drain};
use reveille_core::time::Millis;
use reveille_store::SqliteFile;

/// A handle; clones share one roster.
#[derive(Clone)]
pub struct SqliteRoster {
    file: SqliteFile,
}

impl SqliteRoster {
    /// Finds the roster's tables in the store's file, or makes them. Tables of a newer version are left
    /// as they are.
    pub async fn open(file: SqliteFile) -> Result<Self, RosterError> {
        let found = file.write(schema::open).await?;
        if found > schema::VERSION {
            return Err(RosterError::Newer { found, known: schema::VERSION });
        }
        Ok(Self { file })
    }
}

/// A contract as it is stored. The numbers sort as contracts do, which is what pages count in.
fn contract_number(contract: Contract) -> u8 {
    match contract {
        Contract::Cap => 1,
        Contract::VoiceGateway => 2,
        Contract::Molecule => 3,
    }
}

#[async_trait::async_trait]
impl Roster for SqliteRoster {
    async fn write(&self, changes: Vec<Change>) -> Result<(), RosterError> {
        if changes.is_empty() {
            return Ok(());
        }
        let batch = SqliteBatch::encode(changes)?;
        self.file.write(move |connection| batch.apply(connection)).await?;
        Ok(())
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, RosterError> {
        Ok(self.file.read(queries::keys).await?)
    }

    async fn ended_sessions(&self) -> Result<Vec<EndedSessions>, RosterError> {
        Ok(self.file.read(queries::ended_sessions).await?)
    }

    async fn tenants(&self) -> Result<Vec<Tenant>, RosterError> {
        Ok(self.file.read(queries::tenants).await?)
    }

    async fn presence(
        &self,
        after: Option<PresenceKey>,
        limit: usize,
    ) -> Result<Vec<PresenceRow>, RosterError> {
        let query = move |connection: &_| queries::presence(connection, after.as_ref(), limit);
        Ok(self.file.read(query).await?)
    }

    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<Workspace>, RosterError> {
        let query = move |connection: &_| queries::workspaces(connection, after.as_ref(), limit);
        Ok(self.file.read(query).await?)
    }

    async fn events(&self, query: &StructureEventQuery) -> Result<Vec<StructureEvent>, RosterError> {
        let query = query.clone();
        Ok(self.file.read(move |connection| queries::events(connection, &query)).await?)
    }

    async fn delegation(&self, id: &JobId) -> Result<Option<Delegation>, RosterError> {
        let id = id.clone();
        Ok(self.file.read(move |connection| queries::delegation(connection, &id)).await?)
    }

    async fn delegations_of(
        &self,
        source: &WorkspaceId,
        limit: usize,
    ) -> Result<Vec<Delegation>, RosterError> {
        let source = source.clone();
        let query = move |connection: &_| queries::delegations_of(connection, &source, limit);
        Ok(self.file.read(query).await?)
    }

    async fn open_delegations(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<Delegation>, RosterError> {
        let query = move |connection: &_| queries::open_delegations(connection, after.as_ref(), limit);
        Ok(self.file.read(query).await?)
    }

    async fn drains(&self) -> Result<Vec<Drain>, RosterError> {
        Ok(self.file.read(queries::drains).await?)
    }

    async fn generations(&self) -> Result<Generations, RosterError> {
        Ok(self.file.read(queries::generations).await?)
    }

    async fn prune(
        &self,
        seen_before: Millis,
        events_before: Millis,
        limit: usize,
    ) -> Result<u64, RosterError> {
        prune::prune(&self.file, seen_before, events_before, limit).await
    }
}
