//! The reading side of the tables. Each statement can be read in order from an index.

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
use reveille_store::postgres::rows::{readable, record, unreadable};
use reveille_store::postgres::text::{held, told};
use serde::de::DeserializeOwned;
use sqlx::postgres::{PgArguments, PgConnection, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{Result, Row};

const PRESENCE: &str = "
    SELECT contract, tenant, id, last_seen, about FROM presence
    WHERE (contract, tenant, id) > ($1, $2, $3) ORDER BY contract, tenant, id LIMIT $4";
const WORKSPACES: &str = "SELECT record, id FROM workspaces WHERE id > $1 ORDER BY id LIMIT $2";
const EVENTS_OF_TENANT: &str = "
    SELECT record, created_at, id FROM structure_events
    WHERE tenant = $1 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4";
const EVENTS_OF_WORKSPACE: &str = "
    SELECT record, created_at, id FROM structure_events
    WHERE tenant = $1 AND workspace = $5 AND (created_at, id) < ($2, $3)
    ORDER BY created_at DESC, id DESC LIMIT $4";
const DELEGATIONS_OF: &str = "
    SELECT record, created_at, id FROM delegations
    WHERE source = $1 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4";
const DELEGATIONS_OPEN: &str =
    "SELECT record, id FROM delegations WHERE open AND id > $1 ORDER BY id LIMIT $2";

/// Rows in one answer of PostgreSQL's, which is in memory as a whole.
const ROWS_MAX: usize = 10_000;

type Statement = Query<'static, Postgres, PgArguments>;

pub(super) async fn keys(connection: &mut PgConnection) -> Result<Vec<KeyRecord>> {
    let all =
        "SELECT record, revoked_at, revoked_by, last_used_at, replaced_by, expires_at FROM keys ORDER BY id";
    let rows = sqlx::query(all).fetch_all(connection).await?;
    Ok(readable(rows.iter().map(|row| {
        let written: KeyRecord = record(row, 0)?;
        Ok(KeyRecord {
            revoked_at: row.try_get::<Option<i64>, _>(1)?.map(Millis),
            revoked_by: told(row.try_get(2)?),
            last_used_at: row.try_get::<Option<i64>, _>(3)?.map(Millis),
            replaced_by: row.try_get::<Option<String>, _>(4)?.map(|by| KeyId::known(told(by))),
            expires_at: row
                .try_get::<Option<i64>, _>(5)?
                .map(Millis)
                .into_iter()
                .chain(written.expires_at)
                .min(),
            ..written
        })
    })))
}

pub(super) async fn ended_sessions(connection: &mut PgConnection) -> Result<Vec<EndedSessions>> {
    let all = "SELECT key_id, session_id, until FROM ended_sessions ORDER BY key_id, session_id";
    let rows = sqlx::query(all).fetch_all(connection).await?;
    let ended = |row: &PgRow| {
        let session: String = row.try_get(1)?;
        Ok(EndedSessions {
            key: KeyId::known(told(row.try_get(0)?)),
            session: (!session.is_empty()).then(|| SessionId::known(told(session))),
            until: Millis(row.try_get(2)?),
        })
    };
    rows.iter().map(ended).collect()
}

pub(super) async fn tenants(connection: &mut PgConnection) -> Result<Vec<Tenant>> {
    let rows = sqlx::query("SELECT id, created_at FROM tenants ORDER BY id").fetch_all(connection).await?;
    let tenant = |row: &PgRow| {
        Ok(Tenant { id: TenantId::known(told(row.try_get(0)?)), created_at: Millis(row.try_get(1)?) })
    };
    rows.iter().map(tenant).collect()
}

pub(super) async fn presence(
    connection: &mut PgConnection,
    after: Option<&PresenceKey>,
    limit: usize,
) -> Result<Vec<PresenceRow>> {
    let first = after.map_or((0, String::new(), String::new()), |key| {
        (contract_number(key.contract), held(key.tenant.as_str()).into_owned(), held(&key.id).into_owned())
    });
    let ask = |(contract, tenant, id): &(i16, String, String), len| {
        sqlx::query(PRESENCE).bind(contract).bind(tenant).bind(id).bind(len)
    };
    let place = |row: &PgRow| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
    page(connection, limit, first, ask, place, presence_row).await
}

fn presence_row(row: &PgRow) -> Result<PresenceRow> {
    let number: i16 = row.try_get(0)?;
    let contract = Contract::ALL.into_iter().find(|contract| contract_number(*contract) == number);
    let contract = contract.ok_or_else(|| unreadable(format!("contract {number} is unknown")))?;
    let tenant = TenantId::known(told(row.try_get(1)?));
    let key = PresenceKey { contract, tenant, id: told(row.try_get(2)?) };
    Ok(PresenceRow { key, last_seen: Millis(row.try_get(3)?), about: record(row, 4)? })
}

pub(super) async fn workspaces(
    connection: &mut PgConnection,
    after: Option<&WorkspaceId>,
    limit: usize,
) -> Result<Vec<Workspace>> {
    by_id(connection, WORKSPACES, after.map_or("", WorkspaceId::as_str), limit).await
}

pub(super) async fn events(
    connection: &mut PgConnection,
    query: &StructureEventQuery,
) -> Result<Vec<StructureEvent>> {
    let tenant = held(query.tenant.as_str());
    match &query.workspace {
        Some(workspace) => {
            let workspace = held(workspace.as_str());
            let ask = |statement: Statement| statement.bind(&*workspace);
            newest_first(connection, EVENTS_OF_WORKSPACE, &tenant, query.limit, ask).await
        }
        None => newest_first(connection, EVENTS_OF_TENANT, &tenant, query.limit, |statement| statement).await,
    }
}

/// One that cannot be read is an error here: whoever asks must not take it for one that is not there.
pub(super) async fn delegation(connection: &mut PgConnection, id: &JobId) -> Result<Option<Delegation>> {
    let one = sqlx::query("SELECT record FROM delegations WHERE id = $1").bind(held(id.as_str()));
    one.fetch_optional(connection).await?.map(|row| record(&row, 0)).transpose()
}

pub(super) async fn delegations_of(
    connection: &mut PgConnection,
    source: &WorkspaceId,
    limit: usize,
) -> Result<Vec<Delegation>> {
    let source = held(source.as_str());
    newest_first(connection, DELEGATIONS_OF, &source, limit, |statement| statement).await
}

pub(super) async fn open_delegations(
    connection: &mut PgConnection,
    after: Option<&JobId>,
    limit: usize,
) -> Result<Vec<Delegation>> {
    by_id(connection, DELEGATIONS_OPEN, after.map_or("", JobId::as_str), limit).await
}

pub(super) async fn drains(connection: &mut PgConnection) -> Result<Vec<Drain>> {
    let workers_first = "SELECT record FROM drains ORDER BY kind DESC, name";
    let rows = sqlx::query(workers_first).fetch_all(connection).await?;
    Ok(readable(rows.iter().map(|row| record(row, 0))))
}

pub(super) async fn generations(connection: &mut PgConnection) -> Result<Generations> {
    let mut generations = Generations::default();
    for row in sqlx::query("SELECT what, n FROM generations").fetch_all(connection).await? {
        if let Some(generation) = generations.named(row.try_get(0)?) {
            *generation = row.try_get::<i64, _>(1)? as u64;
        }
    }
    Ok(generations)
}

/// Records after an id, in the order of ids.
async fn by_id<T: DeserializeOwned>(
    connection: &mut PgConnection,
    statement: &'static str,
    after: &str,
    limit: usize,
) -> Result<Vec<T>> {
    let ask = |id: &String, len| sqlx::query(statement).bind(id).bind(len);
    let first = held(after).into_owned();
    page(connection, limit, first, ask, |row| row.try_get(1), |row| record(row, 0)).await
}

/// Somebody's records by the time they were made, and by id within a millisecond.
async fn newest_first<T: DeserializeOwned>(
    connection: &mut PgConnection,
    statement: &'static str,
    whose: &str,
    limit: usize,
    and: impl Fn(Statement) -> Statement,
) -> Result<Vec<T>> {
    let ask =
        |(at, id): &(i64, String), len| and(sqlx::query(statement).bind(whose).bind(at).bind(id).bind(len));
    let place = |row: &PgRow| Ok((row.try_get(1)?, row.try_get(2)?));
    page(connection, limit, (i64::MAX, String::new()), ask, place, |row| record(row, 0)).await
}

/// Asks until there are `limit` rows that can be read, or no more: one that cannot be read does not make a
/// page look like the last.
async fn page<P, T>(
    connection: &mut PgConnection,
    limit: usize,
    first: P,
    ask: impl Fn(&P, i64) -> Statement,
    place: impl Fn(&PgRow) -> Result<P>,
    read: impl Fn(&PgRow) -> Result<T>,
) -> Result<Vec<T>> {
    let (mut items, mut after) = (Vec::new(), first);
    while items.len() < limit {
        let len = (limit - items.len()).min(ROWS_MAX);
        let rows = ask(&after, len as i64).fetch_all(&mut *connection).await?;
        items.extend(readable(rows.iter().map(&read)));
        match rows.last() {
            Some(last) if rows.len() == len => after = place(last)?,
            _ => break,
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PostgresOptions, PostgresRoster};
    use reveille_test_servers::Postgres;
    use sqlx::{AssertSqlSafe, Connection};

    #[tokio::test]
    async fn every_list_can_be_read_in_order_from_an_index() {
        let server = Postgres::start();
        let url = server.database();
        PostgresRoster::open(&PostgresOptions::new(&url)).await.unwrap();
        let mut session = PgConnection::connect(&url).await.unwrap();
        // Small tables are quicker read as a whole. What we want to know is whether large ones need not be.
        sqlx::raw_sql("SET enable_seqscan = off; SET enable_bitmapscan = off")
            .execute(&mut session)
            .await
            .unwrap();
        let mut check = async |sql: &str, texts: &str, expected: &str| {
            let mut sql = format!("EXPLAIN {sql}");
            for (index, kind) in texts.chars().enumerate() {
                let value = if kind == 't' { "'x'" } else { "1" };
                sql = sql.replace(&format!("${}", index + 1), value);
            }
            let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut session).await.unwrap();
            let plan: Vec<_> = rows.iter().map(|row| row.get::<String, _>(0)).collect();
            let plan = plan.join("\n");
            assert!(plan.contains(expected) && !plan.contains("Sort") && !plan.contains("Filter"), "{plan}");
        };
        check(PRESENCE, "nttn", "presence_pkey").await;
        check(WORKSPACES, "tn", "workspaces_pkey").await;
        check(EVENTS_OF_TENANT, "tntn", "events_of_tenant").await;
        check(EVENTS_OF_WORKSPACE, "tntnt", "events_of_workspace").await;
        check(DELEGATIONS_OF, "tntn", "delegations_of_source").await;
        check(DELEGATIONS_OPEN, "tn", "delegations_open").await;
    }
}
