//! The audit trail of all replicas, sealed into chains.
//!
//! An entry needs the hash of the one before it, so transactions append one at a time: appending or pruning first
//! takes a PostgreSQL lock, which is released with the transaction, even when its client is killed.

mod pages;

use super::database::Database;
use super::text::{held, told};
use crate::{AuditQuery, ChainPage, Ledger, Origin, Page, StoreError};
use reveille_core::audit::{Draft, Entry, Hash, Link};
use reveille_core::id::{JobId, TenantId};
use reveille_core::time::Millis;
use sqlx::postgres::{PgConnection, PgRow, Postgres};
use sqlx::{Connection, Result, Row, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the lock, which may be any number that nobody else locks in the same database.
const SEALING: i64 = i64::from_be_bytes(*b"reveille");

/// A handle; clones share one pool.
#[derive(Clone)]
pub struct PostgresLedger {
    database: Database,
}

impl PostgresLedger {
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait::async_trait]
impl Ledger for PostgresLedger {
    async fn seal(&self, drafts: Vec<(Origin, Draft)>) -> std::result::Result<(), StoreError> {
        if drafts.is_empty() {
            return Ok(());
        }
        let drafts = drafts.into_iter().map(Unsealed::encode).collect::<std::result::Result<Vec<_>, _>>()?;
        let drafts = &drafts[..];
        self.database.insist(|| async |connection| seal(connection, drafts).await).await
    }

    async fn audit(&self, query: &AuditQuery) -> std::result::Result<Page<Entry>, StoreError> {
        self.database.ask(async |connection| pages::list(connection, query).await).await
    }

    async fn chain(
        &self,
        tenant: &TenantId,
        after: u64,
        limit: usize,
    ) -> std::result::Result<ChainPage, StoreError> {
        self.database.ask(async |connection| pages::chain(connection, tenant, after, limit).await).await
    }

    async fn chains(
        &self,
        after: Option<&TenantId>,
        limit: usize,
    ) -> std::result::Result<Vec<TenantId>, StoreError> {
        self.database.ask(async |connection| pages::chains(connection, after, limit).await).await
    }

    async fn prune(&self, before: Millis, limit: usize) -> std::result::Result<u64, StoreError> {
        self.database.insist(|| async move |connection: &mut _| prune(connection, before, limit).await).await
    }
}

struct Unsealed {
    origin: Origin,
    draft: Draft,
    json: String,
}

impl Unsealed {
    fn encode((origin, draft): (Origin, Draft)) -> std::result::Result<Self, StoreError> {
        let json = serde_json::to_string(&draft)
            .map_err(|error| StoreError::Refused(format!("an entry has no JSON: {error}")))?;
        Ok(Self { origin, draft, json })
    }
}

/// A transaction during which no other appends or prunes.
async fn alone(connection: &mut PgConnection) -> Result<Transaction<'_, Postgres>> {
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(SEALING).execute(&mut *transaction).await?;
    Ok(transaction)
}

async fn seal(connection: &mut PgConnection, drafts: &[Unsealed]) -> Result<()> {
    let mut transaction = alone(connection).await?;
    let mut known = known(&mut transaction, drafts).await?;
    let fresh: Vec<_> = drafts.iter().filter(|line| known.insert(line.origin)).collect();
    let mut heads = heads(&mut transaction, &fresh).await?;
    let mut entries = Vec::with_capacity(fresh.len());
    for line in fresh {
        let head = heads.entry(line.draft.tenant.clone()).or_default();
        let before = std::mem::replace(head, head.next(&line.draft));
        entries.push(SealedEntry { line, before, place: *head });
    }
    append(&mut transaction, &entries).await?;
    put_heads(&mut transaction, &heads).await?;
    transaction.commit().await
}

/// Which of them were sealed before.
async fn known(connection: &mut PgConnection, drafts: &[Unsealed]) -> Result<BTreeSet<Origin>> {
    let origins: Vec<_> = drafts.iter().map(|line| line.origin.0).collect();
    let known = sqlx::query_scalar::<_, [u8; 16]>("SELECT origin FROM audit WHERE origin = ANY($1)");
    Ok(known.bind(origins).fetch_all(connection).await?.into_iter().map(Origin).collect())
}

/// Where the chains end. The recorded heads and the entries agree, unless someone else wrote to the tables. Then a
/// chain continues after the higher number, so that nobody is held up; the inconsistency is for a check to find.
async fn heads(connection: &mut PgConnection, fresh: &[&Unsealed]) -> Result<BTreeMap<TenantId, Link>> {
    let tenants: BTreeSet<_> = fresh.iter().map(|line| held(line.draft.tenant.as_str())).collect();
    let rows = sqlx::query(
        "SELECT tenant, head_seq, head_hash FROM audit_chains WHERE tenant = ANY($1)
         UNION ALL
         SELECT asked.tenant, newest.seq, newest.event_hash
         FROM UNNEST($1::text[]) AS asked (tenant)
         CROSS JOIN LATERAL (SELECT seq, event_hash FROM audit WHERE audit.tenant = asked.tenant
                             ORDER BY seq DESC LIMIT 1) AS newest",
    );
    let mut heads = BTreeMap::new();
    for row in rows.bind(tenants.into_iter().collect::<Vec<_>>()).fetch_all(connection).await? {
        let found = link(&row, 1)?;
        let head: &mut Link = heads.entry(TenantId::known(told(row.try_get(0)?))).or_default();
        if found.seq > head.seq {
            *head = found;
        }
    }
    Ok(heads)
}

struct SealedEntry<'d> {
    line: &'d Unsealed,
    before: Link,
    place: Link,
}

async fn append(connection: &mut PgConnection, entries: &[SealedEntry<'_>]) -> Result<()> {
    fn column<'e, T>(entries: &'e [SealedEntry<'_>], value: impl Fn(&'e SealedEntry<'_>) -> T) -> Vec<T> {
        entries.iter().map(value).collect()
    }
    sqlx::query(
        "INSERT INTO audit (origin, tenant, seq, at, event_type, severity, job_id, draft, prev_hash, event_hash)
         SELECT origin, tenant, seq, at, event_type, severity, job_id, draft, prev_hash, event_hash
         FROM UNNEST($1::bytea[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[],
                     $8::text[], $9::bytea[], $10::bytea[])
              WITH ORDINALITY AS line (origin, tenant, seq, at, event_type, severity, job_id, draft, prev_hash,
                                       event_hash, number)
         ORDER BY number",
    )
    .bind(column(entries, |entry| entry.line.origin.0))
    .bind(column(entries, |entry| held(entry.line.draft.tenant.as_str())))
    .bind(column(entries, |entry| entry.place.seq as i64))
    .bind(column(entries, |entry| entry.line.draft.at.0))
    .bind(column(entries, |entry| entry.line.draft.event_type.as_str()))
    .bind(column(entries, |entry| entry.line.draft.severity.as_str()))
    .bind(column(entries, |entry| entry.line.draft.job_id.as_ref().map(JobId::as_str).map(held)))
    .bind(column(entries, |entry| entry.line.json.as_str()))
    .bind(column(entries, |entry| entry.before.hash.0))
    .bind(column(entries, |entry| entry.place.hash.0))
    .execute(connection)
    .await?;
    Ok(())
}

async fn put_heads(connection: &mut PgConnection, heads: &BTreeMap<TenantId, Link>) -> Result<()> {
    sqlx::query(
        "INSERT INTO audit_chains (tenant, head_seq, head_hash, boundary_seq, boundary_hash)
         SELECT tenant, seq, hash, 0, $4
         FROM UNNEST($1::text[], $2::bigint[], $3::bytea[]) AS head (tenant, seq, hash)
         ON CONFLICT (tenant) DO UPDATE SET head_seq = excluded.head_seq, head_hash = excluded.head_hash",
    )
    .bind(heads.keys().map(|tenant| held(tenant.as_str())).collect::<Vec<_>>())
    .bind(heads.values().map(|head| head.seq as i64).collect::<Vec<_>>())
    .bind(heads.values().map(|head| head.hash.0).collect::<Vec<_>>())
    .bind(Hash::default().0)
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes the oldest entries, up to the last one that is old enough.
async fn prune(connection: &mut PgConnection, before: Millis, limit: usize) -> Result<u64> {
    let mut transaction = alone(connection).await?;
    let last: Option<i64> = sqlx::query_scalar(
        "SELECT max(id) FROM (SELECT id, at FROM audit ORDER BY id LIMIT $2) AS oldest WHERE at < $1",
    )
    .bind(before.0)
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .fetch_one(&mut *transaction)
    .await?;
    let boundaries = sqlx::query(
        "UPDATE audit_chains SET boundary_seq = gone.seq, boundary_hash = gone.event_hash
         FROM (SELECT DISTINCT ON (tenant) tenant, seq, event_hash FROM audit
               WHERE id <= $1 ORDER BY tenant, id DESC) AS gone
         WHERE audit_chains.tenant = gone.tenant",
    );
    boundaries.bind(last).execute(&mut *transaction).await?;
    let gone = sqlx::query("DELETE FROM audit WHERE id <= $1").bind(last).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(gone.rows_affected())
}

/// A number and the hash in the column after it.
fn link(row: &PgRow, column: usize) -> Result<Link> {
    Ok(Link { seq: row.try_get::<i64, _>(column)? as u64, hash: Hash(row.try_get(column + 1)?) })
}

#[cfg(test)]
mod tests {
    use super::{PostgresLedger, alone, pages};
    use crate::postgres::{Database, PostgresOptions};
    use crate::suite::audit::whole;
    use crate::suite::ledger::{Sealing, numbered, sealed};
    use crate::{AuditOrder, AuditQuery, Ledger};
    use reveille_core::audit::EventType;
    use reveille_core::id::{JobId, TenantId};
    use reveille_test_servers::{Postgres, Wire};
    use sqlx::postgres::PgConnection;
    use sqlx::{AssertSqlSafe, Connection, Execute, Row};
    use tokio::sync::oneshot;

    async fn ledger(url: &str) -> PostgresLedger {
        PostgresLedger::new(Database::open(&PostgresOptions::new(url)).await.unwrap())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_replica_that_stands_still_while_it_seals_does_not_hold_up_the_others_for_long() {
        let server = Postgres::start();
        let url = server.database();
        let wire = Wire::to(server.port()).await;
        let stopped = ledger(&wire.address_of(&url)).await;
        let (locked, is_locked) = oneshot::channel();
        let sealing = tokio::spawn(async move {
            let seal = async |connection: &mut _| {
                let _transaction = alone(connection).await?;
                locked.send(()).unwrap();
                std::future::pending::<sqlx::Result<()>>().await
            };
            stopped.database.ask(seal).await
        });
        is_locked.await.unwrap();
        wire.hush();
        let other = ledger(&url).await;
        while let Err(error) = other.seal(vec![numbered("still", 1)]).await {
            assert!(error.is_transient(), "{error}");
        }
        assert_eq!(sealed(&other, "still").await, ["1"]);
        whole(&Sealing::over(&other), "still", 1).await;
        sealing.abort();
    }

    #[tokio::test]
    async fn every_list_can_be_read_in_order_from_an_index() {
        let server = Postgres::start();
        let url = server.database();
        ledger(&url).await;
        let mut session = PgConnection::connect(&url).await.unwrap();
        let settings = "SET enable_seqscan = off; SET enable_bitmapscan = off";
        sqlx::raw_sql(settings).execute(&mut session).await.unwrap();
        let all = AuditQuery::default();
        let one = AuditQuery { tenant: Some(TenantId::known("t")), ..all.clone() };
        let job = AuditQuery { job_id: Some(JobId::known("j")), ..all.clone() };
        let rare = AuditQuery { event_type: Some(EventType::Auth), ..all.clone() };
        for (query, expected) in
            [(all, "audit_pkey"), (one, "audit_of_tenant"), (job, "audit_of_job"), (rare, "audit_rare")]
        {
            for order in [AuditOrder::NewestFirst, AuditOrder::OldestFirst] {
                let mut listing = pages::listing(&AuditQuery { order, ..query.clone() });
                let sql = format!("EXPLAIN {}", listing.sql().as_str());
                let values = listing.build().take_arguments().unwrap().unwrap();
                let rows =
                    sqlx::query_with(AssertSqlSafe(sql), values).fetch_all(&mut session).await.unwrap();
                let plan: Vec<_> = rows.iter().map(|row| row.get::<String, _>(0)).collect();
                let plan = plan.join("\n");
                assert!(plan.contains(expected) && !plan.contains("Sort"), "{plan}");
            }
        }
    }
}
