//! The statements that write a stage, each over arrays with one element for each row.

use super::batch::{
    BatchStage, BeatRow, DelegationRow, EventRow, KeyChange, PostgresKey, SessionChange, WorkspaceRow,
};
use super::contract_number;
use crate::{AHEAD_MS, PresenceKey};
use reveille_core::presence::{Contract, Drained};
use reveille_store::postgres::text::held;
use sqlx::Result;
use sqlx::postgres::PgConnection;
use std::collections::BTreeMap;

pub(super) async fn write(connection: &mut PgConnection, stage: &BatchStage) -> Result<()> {
    for change in &stage.keys {
        match change {
            KeyChange::Put(key) => put_key(connection, key).await?,
            KeyChange::Revoke { id, at, by } => revoke(connection, id, *at, by).await?,
            KeyChange::Used(used) => use_keys(connection, used).await?,
            KeyChange::Replace { id, by, expires_at } => replace(connection, id, by, *expires_at).await?,
        }
    }
    for change in &stage.sessions {
        match change {
            SessionChange::End { key, session, until } => {
                end_sessions(connection, key, session, *until).await?;
            }
            SessionChange::Forget { over_by } => forget_sessions(connection, *over_by).await?,
        }
    }
    know(connection, &stage.tenants).await?;
    for round in &stage.presence.0 {
        see(connection, round).await?;
    }
    for round in &stage.workspaces.0 {
        put_workspaces(connection, round).await?;
    }
    for round in &stage.events.0 {
        append(connection, round).await?;
    }
    for round in &stage.delegations.0 {
        put_delegations(connection, round).await?;
    }
    for (what, record) in &stage.drains {
        drain(connection, what, record.as_deref()).await?;
    }
    purge(connection, &stage.purges).await
}

async fn put_key(connection: &mut PgConnection, key: &PostgresKey) -> Result<()> {
    sqlx::query(
        "INSERT INTO keys (id, hash, record, revoked_at, revoked_by, last_used_at, replaced_by, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (id) DO UPDATE
         SET hash = excluded.hash, record = excluded.record, revoked_at = excluded.revoked_at,
             revoked_by = excluded.revoked_by, last_used_at = excluded.last_used_at,
             replaced_by = excluded.replaced_by, expires_at = excluded.expires_at",
    )
    .bind(&key.id)
    .bind(key.hash)
    .bind(&key.record)
    .bind(key.revoked_at)
    .bind(&key.revoked_by)
    .bind(key.last_used_at)
    .bind(&key.replaced_by)
    .bind(key.expires_at)
    .execute(connection)
    .await?;
    Ok(())
}

async fn revoke(connection: &mut PgConnection, id: &str, at: i64, by: &str) -> Result<()> {
    sqlx::query("UPDATE keys SET revoked_at = $2, revoked_by = $3 WHERE id = $1 AND revoked_at IS NULL")
        .bind(id)
        .bind(at)
        .bind(by)
        .execute(connection)
        .await?;
    Ok(())
}

async fn replace(connection: &mut PgConnection, id: &str, by: &str, expires_at: i64) -> Result<()> {
    sqlx::query(
        "UPDATE keys SET replaced_by = $2, expires_at = least(expires_at, $3)
         WHERE id = $1 AND replaced_by IS NULL",
    )
    .bind(id)
    .bind(by)
    .bind(expires_at)
    .execute(connection)
    .await?;
    Ok(())
}

async fn end_sessions(connection: &mut PgConnection, key: &str, session: &str, until: i64) -> Result<()> {
    sqlx::query(
        "INSERT INTO ended_sessions (key_id, session_id, until) VALUES ($1, $2, $3)
         ON CONFLICT (key_id, session_id) DO UPDATE
         SET until = greatest(ended_sessions.until, excluded.until)",
    )
    .bind(key)
    .bind(session)
    .bind(until)
    .execute(&mut *connection)
    .await?;
    if session.is_empty() {
        sqlx::query("DELETE FROM ended_sessions WHERE key_id = $1 AND session_id <> '' AND until <= $2")
            .bind(key)
            .bind(until)
            .execute(connection)
            .await?;
    }
    Ok(())
}

async fn forget_sessions(connection: &mut PgConnection, over_by: i64) -> Result<()> {
    sqlx::query("DELETE FROM ended_sessions WHERE until <= $1").bind(over_by).execute(connection).await?;
    Ok(())
}

/// An update takes rows in any order it likes; so they are locked first, in that of their ids.
async fn use_keys(connection: &mut PgConnection, used: &BTreeMap<String, i64>) -> Result<()> {
    sqlx::query(
        "UPDATE keys SET last_used_at = greatest(keys.last_used_at, locked.at)
         FROM (SELECT keys.id, used.at FROM UNNEST($1::text[], $2::bigint[]) AS used (id, at)
               JOIN keys ON keys.id = used.id ORDER BY keys.id FOR NO KEY UPDATE OF keys) AS locked
         WHERE keys.id = locked.id",
    )
    .bind(column(used.keys(), String::as_str))
    .bind(column(used.values(), |at| *at))
    .execute(connection)
    .await?;
    Ok(())
}

async fn know(connection: &mut PgConnection, tenants: &BTreeMap<String, i64>) -> Result<()> {
    if tenants.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO tenants (id, created_at) SELECT * FROM UNNEST($1::text[], $2::bigint[])
         ON CONFLICT DO NOTHING",
    )
    .bind(column(tenants.keys(), String::as_str))
    .bind(column(tenants.values(), |at| *at))
    .execute(connection)
    .await?;
    Ok(())
}

async fn see(connection: &mut PgConnection, beats: &BTreeMap<PresenceKey, BeatRow>) -> Result<()> {
    sqlx::query(
        "INSERT INTO presence (contract, tenant, id, last_seen, about)
         SELECT * FROM UNNEST($1::smallint[], $2::text[], $3::text[], $4::bigint[], $5::text[])
         ON CONFLICT (contract, tenant, id) DO UPDATE
         SET last_seen = excluded.last_seen, about = excluded.about
         WHERE excluded.last_seen >= presence.last_seen OR presence.last_seen > excluded.last_seen + $6",
    )
    .bind(column(beats.keys(), |key| contract_number(key.contract)))
    .bind(column(beats.keys(), |key| held(key.tenant.as_str())))
    .bind(column(beats.keys(), |key| held(&key.id)))
    .bind(column(beats.values(), |beat| beat.last_seen))
    .bind(column(beats.values(), |beat| beat.about.as_str()))
    .bind(AHEAD_MS)
    .execute(connection)
    .await?;
    Ok(())
}

async fn put_workspaces(connection: &mut PgConnection, lines: &BTreeMap<String, WorkspaceRow>) -> Result<()> {
    sqlx::query(
        "INSERT INTO workspaces (id, tenant, record)
         SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[])
         ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, record = excluded.record",
    )
    .bind(column(lines.keys(), String::as_str))
    .bind(column(lines.values(), |line| line.tenant.as_str()))
    .bind(column(lines.values(), |line| line.record.as_str()))
    .execute(connection)
    .await?;
    Ok(())
}

async fn append(connection: &mut PgConnection, lines: &BTreeMap<String, EventRow>) -> Result<()> {
    sqlx::query(
        "INSERT INTO structure_events (id, tenant, workspace, created_at, record)
         SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
         ON CONFLICT DO NOTHING",
    )
    .bind(column(lines.keys(), String::as_str))
    .bind(column(lines.values(), |line| line.tenant.as_str()))
    .bind(column(lines.values(), |line| line.workspace.as_str()))
    .bind(column(lines.values(), |line| line.created_at))
    .bind(column(lines.values(), |line| line.record.as_str()))
    .execute(connection)
    .await?;
    Ok(())
}

async fn put_delegations(
    connection: &mut PgConnection,
    lines: &BTreeMap<String, DelegationRow>,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO delegations (id, tenant, source, created_at, updated_at, open, record)
         SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[],
                              $6::boolean[], $7::text[])
         ON CONFLICT (id) DO UPDATE
         SET source = excluded.source, created_at = excluded.created_at,
             updated_at = excluded.updated_at, open = excluded.open, record = excluded.record
         WHERE delegations.tenant = excluded.tenant",
    )
    .bind(column(lines.keys(), String::as_str))
    .bind(column(lines.values(), |line| line.tenant.as_str()))
    .bind(column(lines.values(), |line| line.source.as_str()))
    .bind(column(lines.values(), |line| line.created_at))
    .bind(column(lines.values(), |line| line.updated_at))
    .bind(column(lines.values(), |line| line.open))
    .bind(column(lines.values(), |line| line.record.as_str()))
    .execute(connection)
    .await?;
    Ok(())
}

async fn drain(connection: &mut PgConnection, what: &Drained, record: Option<&str>) -> Result<()> {
    let (kind, name) = match what {
        Drained::Worker(id) => ("worker", id.as_str()),
        Drained::Pool(id) => ("pool", id.as_str()),
    };
    let statement = if record.is_some() {
        "INSERT INTO drains (kind, name, record) VALUES ($1, $2, $3)
         ON CONFLICT (kind, name) DO UPDATE SET record = excluded.record"
    } else {
        "DELETE FROM drains WHERE kind = $1 AND name = $2"
    };
    let query = sqlx::query(statement).bind(kind).bind(held(name));
    match record {
        Some(record) => query.bind(record).execute(connection).await?,
        None => query.execute(connection).await?,
    };
    Ok(())
}

/// The workspaces go last: they know the tenants that their presence rows are found by.
async fn purge(connection: &mut PgConnection, ids: &[String]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "DELETE FROM presence USING workspaces
         WHERE workspaces.id = ANY($1) AND presence.contract = $2
           AND presence.tenant = workspaces.tenant AND presence.id = workspaces.id",
    )
    .bind(ids)
    .bind(contract_number(Contract::Molecule))
    .execute(&mut *connection)
    .await?;
    for statement in [
        "DELETE FROM structure_events WHERE workspace = ANY($1)",
        "DELETE FROM workspaces WHERE id = ANY($1)",
    ] {
        sqlx::query(statement).bind(ids).execute(&mut *connection).await?;
    }
    Ok(())
}

/// One value of every row.
fn column<'a, R: 'a, T>(rows: impl Iterator<Item = &'a R>, value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.map(value).collect()
}
