//! The roster in PostgreSQL, for any number of replicas.
//!
//! A batch is one transaction. Nothing is cached here; the engine has its own copy of what it often
//! needs, and [`Generations`] tell it when another replica has changed it. The store's audit trail is in the
//! same database and shares the pool: [`PostgresRoster::ledger`].

mod batch;
mod checks;
mod prune;
mod queries;
mod statements;

pub use checks::examine;
pub use reveille_store::postgres::PostgresOptions;

use crate::{
    Change, EndedSessions, Generations, KeyRecord, PresenceKey, PresenceRow, Roster, RosterError,
    StructureEvent, StructureEventQuery, Tenant,
};
use batch::PostgresBatch;
use reveille_core::id::{JobId, WorkspaceId};
use reveille_core::presence::delegation::Delegation;
use reveille_core::presence::workspace::Workspace;
use reveille_core::presence::{Contract, Drain};
use reveille_core::time::Millis;
use reveille_store::postgres::{Database, PostgresLedger};

/// A handle; clones share one pool.
#[derive(Clone)]
pub struct PostgresRoster {
    database: Database,
}

impl PostgresRoster {
    /// Connects, and makes the tables or brings them up to date. Tables of a newer version are left as
    /// they are.
    pub async fn open(options: &PostgresOptions) -> Result<Self, RosterError> {
        Ok(Self { database: Database::open(options).await? })
    }

    /// The audit trail of all replicas, in the same database and on the same pool.
    pub fn ledger(&self) -> PostgresLedger {
        PostgresLedger::new(self.database.clone())
    }
}

/// A contract as it is stored. The numbers sort as contracts do, which is what pages count in.
fn contract_number(contract: Contract) -> i16 {
    match contract {
        Contract::Cap => 1,
        Contract::VoiceGateway => 2,
        Contract::Molecule => 3,
    }
}

#[async_trait::async_trait]
impl Roster for PostgresRoster {
    async fn write(&self, changes: Vec<Change>) -> Result<(), RosterError> {
        if changes.is_empty() {
            return Ok(());
        }
        let batch = &PostgresBatch::fold(changes)?;
        Ok(self.database.insist(|| async |connection| batch.write(connection).await).await?)
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, RosterError> {
        Ok(self.database.ask(queries::keys).await?)
    }

    async fn ended_sessions(&self) -> Result<Vec<EndedSessions>, RosterError> {
        Ok(self.database.ask(queries::ended_sessions).await?)
    }

    async fn tenants(&self) -> Result<Vec<Tenant>, RosterError> {
        Ok(self.database.ask(queries::tenants).await?)
    }

    async fn presence(
        &self,
        after: Option<PresenceKey>,
        limit: usize,
    ) -> Result<Vec<PresenceRow>, RosterError> {
        let query = async |connection: &mut _| queries::presence(connection, after.as_ref(), limit).await;
        Ok(self.database.ask(query).await?)
    }

    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<Workspace>, RosterError> {
        let query = async |connection: &mut _| queries::workspaces(connection, after.as_ref(), limit).await;
        Ok(self.database.ask(query).await?)
    }

    async fn events(&self, query: &StructureEventQuery) -> Result<Vec<StructureEvent>, RosterError> {
        Ok(self.database.ask(async |connection| queries::events(connection, query).await).await?)
    }

    async fn delegation(&self, id: &JobId) -> Result<Option<Delegation>, RosterError> {
        Ok(self.database.ask(async |connection| queries::delegation(connection, id).await).await?)
    }

    async fn delegations_of(
        &self,
        source: &WorkspaceId,
        limit: usize,
    ) -> Result<Vec<Delegation>, RosterError> {
        let query = async |connection: &mut _| queries::delegations_of(connection, source, limit).await;
        Ok(self.database.ask(query).await?)
    }

    async fn open_delegations(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<Delegation>, RosterError> {
        let query =
            async |connection: &mut _| queries::open_delegations(connection, after.as_ref(), limit).await;
        Ok(self.database.ask(query).await?)
    }

    async fn drains(&self) -> Result<Vec<Drain>, RosterError> {
        Ok(self.database.ask(queries::drains).await?)
    }

    async fn generations(&self) -> Result<Generations, RosterError> {
        Ok(self.database.ask(queries::generations).await?)
    }

    async fn prune(
        &self,
        seen_before: Millis,
        events_before: Millis,
        limit: usize,
    ) -> Result<u64, RosterError> {
        let prune = || {
            async move |connection: &mut _| prune::prune(connection, seen_before, events_before, limit).await
        };
        Ok(self.database.insist(prune).await?)
    }
}
