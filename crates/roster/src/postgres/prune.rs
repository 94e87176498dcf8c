//! Taking out what is long over.
//!
//! Presence has no index by time, because every beat would have to change it. So a look through the
//! table finds who is gone, and then they are removed by key, in the order in which beats take rows too.

use super::contract_number;
use reveille_core::presence::Contract;
use reveille_core::time::Millis;
use sqlx::Result;
use sqlx::postgres::PgConnection;

type Unseen = (i16, String, String);

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

pub(super) async fn unseen(
    connection: &mut PgConnection,
    seen_before: Millis,
    limit: i64,
) -> Result<Vec<Unseen>> {
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
pub(super) async fn remove_unseen(
    connection: &mut PgConnection,
    unseen: Vec<Unseen>,
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
