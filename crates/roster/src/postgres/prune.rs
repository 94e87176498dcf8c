//! Taking out what is long over.
//!
//! Presence has no index by time, because every beat would have to change it. So a look through the
//! table finds who is gone, and then they are removed by key, in the order in which beats take rows too.

use super::contract_number;
use reveille_core::presence::Contract;
use reveille_core::time::Millis;
use sqlx::Result;
use sqlx::postgres::PgConnection;

type PostgresMemberKey = (i16, String, String);

/// Whatever is removed before something fails is gone; who asks again goes on from there.
pub(super) async fn prune(
    connection: &mut PgConnection,
    seen_before: Millis,
    events_before: Millis,
    limit: usize,
) -> Result<u64> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let unseen = unseen(connection, seen_before, limit).await?;
    let gone = remove_unseen(connection, unseen, seen_before).await?;
    Ok(gone + remove_old(connection, events_before, limit).await?)
}

async fn unseen(
    connection: &mut PgConnection,
    seen_before: Millis,
    limit: i64,
) -> Result<Vec<PostgresMemberKey>> {
    sqlx::query_as(
        "SELECT contract, tenant, id FROM presence
         WHERE last_seen < $1
           AND NOT (contract = $2 AND EXISTS (SELECT 1 FROM workspaces WHERE workspaces.id = presence.id))
         ORDER BY last_seen, contract, tenant, id LIMIT $3",
    )
    .bind(seen_before.0)
    .bind(contract_number(Contract::Molecule))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Whoever was seen meanwhile stays.
async fn remove_unseen(
    connection: &mut PgConnection,
    unseen: Vec<PostgresMemberKey>,
    seen_before: Millis,
) -> Result<u64> {
    let (mut contracts, mut tenants, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for (contract, tenant, id) in unseen {
        contracts.push(contract);
        tenants.push(tenant);
        ids.push(id);
    }
    let gone = sqlx::query(
        "DELETE FROM presence USING (
             SELECT contract, tenant, id FROM presence
             WHERE (contract, tenant, id) IN (SELECT * FROM UNNEST($1::smallint[], $2::text[], $3::text[]))
               AND last_seen < $4
             ORDER BY contract, tenant, id FOR UPDATE) AS unseen
         WHERE (presence.contract, presence.tenant, presence.id) = (unseen.contract, unseen.tenant, unseen.id)
           AND presence.last_seen < $4",
    )
    .bind(contracts)
    .bind(tenants)
    .bind(ids)
    .bind(seen_before.0)
    .execute(connection)
    .await?;
    Ok(gone.rows_affected())
}

async fn remove_old(connection: &mut PgConnection, before: Millis, limit: i64) -> Result<u64> {
    let statements = [
        "DELETE FROM structure_events WHERE id IN (
             SELECT id FROM structure_events WHERE created_at < $1 ORDER BY created_at, id LIMIT $2)",
        "DELETE FROM delegations WHERE NOT open AND updated_at < $1 AND id IN (
             SELECT id FROM delegations WHERE NOT open AND updated_at < $1 ORDER BY updated_at, id LIMIT $2)",
    ];
    let mut gone = 0;
    for statement in statements {
        let done = sqlx::query(statement).bind(before.0).bind(limit).execute(&mut *connection).await?;
        gone += done.rows_affected();
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PostgresOptions, PostgresRoster};
    use reveille_test_servers::Postgres;
    use sqlx::{Connection, Row};

    #[tokio::test]
    async fn whoever_is_seen_between_the_look_and_the_removal_stays() {
        let server = Postgres::start();
        let url = server.database();
        PostgresRoster::open(&PostgresOptions::new(&url)).await.unwrap();
        let mut session = PgConnection::connect(&url).await.unwrap();
        let insert = "INSERT INTO presence VALUES (2, 't', 'a', 1, ''), (2, 't', 'b', 1, '')";
        sqlx::raw_sql(insert).execute(&mut session).await.unwrap();
        let found = unseen(&mut session, Millis(5), 10).await.unwrap();
        assert_eq!(found.len(), 2);
        sqlx::raw_sql("UPDATE presence SET last_seen = 5 WHERE id = 'a'")
            .execute(&mut session)
            .await
            .unwrap();
        assert_eq!(remove_unseen(&mut session, found, Millis(5)).await.unwrap(), 1);
        let left = sqlx::query("SELECT id FROM presence").fetch_one(&mut session).await.unwrap();
        assert_eq!(left.get::<&str, _>(0), "a");
    }
}
