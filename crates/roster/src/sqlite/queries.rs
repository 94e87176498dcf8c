//! The reading side of the tables. Each statement is read in order from an index.

use super::contract_number;
use crate::{
    EndedSessions, Generations, KeyRecord, PresenceKey, PresenceRow, StructureEvent, StructureEventQuery,
    Tenant,
};
use reveille_core::id::{JobId, KeyId, SessionId, TenantId, WorkspaceId};
use reveille_core::presence::delegation::Delegation;
use reveille_core::presence::workspace::Workspace;
use reveille_core::presence::{Contract, Drain};
use reveille_core::time::Millis;
use reveille_store::StoreError;
use rusqlite::{Connection, Params, Row, params};
use serde::de::DeserializeOwned;

const PRESENCE: &str = "
    SELECT contract, tenant, id, last_seen, about FROM presence
    WHERE (contract, tenant, id) > (?1, ?2, ?3) ORDER BY contract, tenant, id";
const WORKSPACES: &str = "SELECT record FROM workspaces WHERE id > ?1 ORDER BY id";
const EVENTS_OF_TENANT: &str = "
    SELECT record FROM structure_events INDEXED BY events_of_tenant
    WHERE tenant = ?1 ORDER BY created_at DESC, id DESC";
const EVENTS_OF_WORKSPACE: &str = "
    SELECT record FROM structure_events INDEXED BY events_of_workspace
    WHERE tenant = ?1 AND workspace = ?2 ORDER BY created_at DESC, id DESC";
const DELEGATIONS_OF: &str = "
    SELECT record FROM delegations INDEXED BY delegations_of_source
    WHERE source = ?1 ORDER BY created_at DESC, id DESC";
const DELEGATIONS_OPEN: &str = "
    SELECT record FROM delegations INDEXED BY delegations_open WHERE open = 1 AND id > ?1 ORDER BY id";

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn keys(connection: &Connection) -> Result<Vec<KeyRecord>> {
    records(connection, "SELECT record FROM keys ORDER BY id", [], usize::MAX)
}

pub(super) fn ended_sessions(connection: &Connection) -> Result<Vec<EndedSessions>> {
    let all = "SELECT key_id, session_id, until FROM ended_sessions ORDER BY key_id, session_id";
    readable(connection, all, [], usize::MAX, |row| {
        let session: String = row.get(1)?;
        Ok(EndedSessions {
            key: KeyId::known(row.get::<_, String>(0)?),
            session: (!session.is_empty()).then(|| SessionId::known(session)),
            until: Millis(row.get(2)?),
        })
    })
}

pub(super) fn tenants(connection: &Connection) -> Result<Vec<Tenant>> {
    let mut statement = connection.prepare_cached("SELECT id, created_at FROM tenants ORDER BY id")?;
    let tenants = statement.query_map([], |row| {
        Ok(Tenant { id: TenantId::known(row.get::<_, String>(0)?), created_at: Millis(row.get(1)?) })
    })?;
    Ok(tenants.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn presence(
    connection: &Connection,
    after: Option<&PresenceKey>,
    limit: usize,
) -> Result<Vec<PresenceRow>> {
    let (contract, tenant, id) = after
        .map_or((0, "", ""), |key| (contract_number(key.contract), key.tenant.as_str(), key.id.as_str()));
    readable(connection, PRESENCE, params![contract, tenant, id], limit, presence_row)
}

fn presence_row(row: &Row<'_>) -> Result<PresenceRow> {
    let number: u8 = row.get(0)?;
    let contract = Contract::ALL.into_iter().find(|contract| contract_number(*contract) == number);
    let contract = contract.ok_or_else(|| StoreError::Corrupt(format!("contract {number} is unknown")))?;
    let key = PresenceKey { contract, tenant: TenantId::known(row.get::<_, String>(1)?), id: row.get(2)? };
    Ok(PresenceRow { key, last_seen: Millis(row.get(3)?), about: record(row, 4)? })
}

pub(super) fn workspaces(
    connection: &Connection,
    after: Option<&WorkspaceId>,
    limit: usize,
) -> Result<Vec<Workspace>> {
    records(connection, WORKSPACES, [after.map_or("", WorkspaceId::as_str)], limit)
}

pub(super) fn events(connection: &Connection, query: &StructureEventQuery) -> Result<Vec<StructureEvent>> {
    let tenant = query.tenant.as_str();
    match &query.workspace {
        Some(workspace) => {
            records(connection, EVENTS_OF_WORKSPACE, params![tenant, workspace.as_str()], query.limit)
        }
        None => records(connection, EVENTS_OF_TENANT, [tenant], query.limit),
    }
}

/// One that cannot be read is an error here: whoever asks must not take it for one that is not there.
pub(super) fn delegation(connection: &Connection, id: &JobId) -> Result<Option<Delegation>> {
    let mut statement = connection.prepare_cached("SELECT record FROM delegations WHERE id = ?1")?;
    let mut rows = statement.query([id.as_str()])?;
    rows.next()?.map(|row| record(row, 0)).transpose()
}

pub(super) fn delegations_of(
    connection: &Connection,
    source: &WorkspaceId,
    limit: usize,
) -> Result<Vec<Delegation>> {
    records(connection, DELEGATIONS_OF, [source.as_str()], limit)
}

pub(super) fn open_delegations(
    connection: &Connection,
    after: Option<&JobId>,
    limit: usize,
) -> Result<Vec<Delegation>> {
    records(connection, DELEGATIONS_OPEN, [after.map_or("", JobId::as_str)], limit)
}

pub(super) fn drains(connection: &Connection) -> Result<Vec<Drain>> {
    let workers_first = "SELECT record FROM drains ORDER BY kind DESC, name";
    records(connection, workers_first, [], usize::MAX)
}

pub(super) fn generations(connection: &Connection) -> Result<Generations> {
    let mut statement = connection.prepare_cached("SELECT what, n FROM generations")?;
    let mut rows = statement.query([])?;
    let mut generations = Generations::default();
    while let Some(row) = rows.next()? {
        if let Some(generation) = generations.named(&row.get::<_, String>(0)?) {
            *generation = row.get::<_, i64>(1)? as u64;
        }
    }
    Ok(generations)
}

/// The records in the first column, at most `limit`.
fn records<T: DeserializeOwned>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    limit: usize,
) -> Result<Vec<T>> {
    readable(connection, sql, values, limit, |row| record(row, 0))
}

/// Takes rows until there are `limit` that can be read. The limit is not in the statement, so that one
/// row that cannot be read does not make a page look like the last.
fn readable<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    limit: usize,
    read: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut items = Vec::new();
    while items.len() < limit
        && let Some(row) = rows.next()?
    {
        match read(row) {
            Ok(item) => items.push(item),
            Err(error) => tracing::error!(%error, "left out of a list"),
        }
    }
    Ok(items)
}

fn record<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T> {
    let text = row.get_ref(column)?.as_str().map_err(|error| StoreError::Corrupt(error.to_string()))?;
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("a record: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;

    #[test]
    fn every_list_is_read_in_order_from_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        schema::open(&connection).unwrap();
        let check = |sql: &str, expected: &str| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let values = vec!["1"; statement.parameter_count()];
            let plan = statement.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3));
            let plan = plan.unwrap().collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ");
            assert!(plan.contains(expected), "{plan}");
            assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN"), "{plan}");
        };
        check(PRESENCE, "PRIMARY KEY ((contract,tenant,id)>(?,?,?))");
        check(WORKSPACES, "(id>?)");
        check(EVENTS_OF_TENANT, "events_of_tenant (tenant=?)");
        check(EVENTS_OF_WORKSPACE, "events_of_workspace (workspace=? AND tenant=?)");
        check(DELEGATIONS_OF, "delegations_of_source (source=?)");
        check(DELEGATIONS_OPEN, "delegations_open (id>?)");
    }
}
