//! The reading side of the ledger.

use super::link;
use crate::postgres::rows::{readable, record, unreadable};
use crate::postgres::text::{held, told};
use crate::{AuditOrder, AuditQuery, ChainPage, Page, page_len};
use reveille_core::audit::{Bounds, Draft, Entry, EventType, Hash, Severity};
use reveille_core::id::{JobId, TenantId};
use reveille_core::time::Millis;
use sqlx::postgres::{PgConnection, PgRow, Postgres};
use sqlx::{Connection, QueryBuilder, Result, Row};

const COLUMNS: &str = "tenant, seq, at, event_type, severity, job_id, draft, prev_hash, event_hash, id";

/// One page of entries.
pub(super) async fn list(connection: &mut PgConnection, query: &AuditQuery) -> Result<Page<Entry>> {
    let rows = listing(query).build().fetch_all(connection).await?;
    let number = if query.tenant.is_some() { "seq" } else { "id" };
    let numbered = rows.iter().map(|row| Ok((row.try_get::<i64, _>(number)?.max(0) as u64, entry(row))));
    let page = Page::take(page_len(query.limit), numbered.collect::<Result<Vec<_>>>()?.into_iter());
    Ok(Page { items: readable(page.items.into_iter()), next: page.next })
}

/// A piece of a chain and its bounds, both as of one moment.
pub(super) async fn chain(
    connection: &mut PgConnection,
    tenant: &TenantId,
    after: u64,
    limit: usize,
) -> Result<ChainPage> {
    let mut moment = connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let bounds = sqlx::query(
        "SELECT boundary_seq, boundary_hash, head_seq, head_hash FROM audit_chains WHERE tenant = $1",
    );
    let bounds = bounds.bind(held(tenant.as_str())).fetch_optional(&mut *moment).await?;
    let bounds = match bounds {
        Some(row) => Bounds { boundary: link(&row, 0)?, head: link(&row, 2)? },
        None => Bounds::default(),
    };
    let mut newer = QueryBuilder::<Postgres>::new("SELECT ");
    newer.push(COLUMNS).push(" FROM audit WHERE tenant = ").push_bind(held(tenant.as_str()));
    newer.push(" AND seq > ").push_bind(i64::try_from(after).unwrap_or(i64::MAX));
    newer.push(" ORDER BY seq LIMIT ").push_bind(page_len(limit) as i64);
    let rows = newer.build().fetch_all(&mut *moment).await?;
    moment.commit().await?;
    Ok(ChainPage { bounds, entries: readable(rows.iter().map(entry)) })
}

/// Names in the order of their bytes, whatever the database sorts by otherwise.
pub(super) async fn chains(
    connection: &mut PgConnection,
    after: Option<&TenantId>,
    limit: usize,
) -> Result<Vec<TenantId>> {
    let names = sqlx::query_scalar::<_, String>(
        "SELECT tenant FROM audit_chains WHERE tenant COLLATE \"C\" > $1 ORDER BY tenant COLLATE \"C\" LIMIT $2",
    );
    let names = names.bind(held(after.map_or("", |after| after.as_str()))).bind(page_len(limit) as i64);
    let names = names.fetch_all(connection).await?;
    names.into_iter().map(|name| read(&told(name), |name| TenantId::parse(name).ok())).collect()
}

/// The statement, for one row more than a page holds. As with SQLite, what is rare is looked for where
/// it is rare: by job, or by kind; otherwise by number.
pub(in crate::postgres) fn listing(query: &AuditQuery) -> QueryBuilder<Postgres> {
    let mut listing = QueryBuilder::new("SELECT ");
    let number = if query.tenant.is_some() { "seq" } else { "id" };
    listing.push(COLUMNS).push(" FROM audit WHERE ").push(number);
    let direction = match query.order {
        AuditOrder::NewestFirst => {
            let before = query.cursor.and_then(|cursor| i64::try_from(cursor).ok()).unwrap_or(i64::MAX);
            listing.push(" < ").push_bind(before);
            " DESC"
        }
        AuditOrder::OldestFirst => {
            let after = query.cursor.map_or(0, |cursor| i64::try_from(cursor).unwrap_or(i64::MAX));
            listing.push(" > ").push_bind(after);
            " ASC"
        }
    };
    if let Some(tenant) = &query.tenant {
        listing.push(" AND tenant = ").push_bind(held(tenant.as_str()));
    }
    if let Some(event_type) = query.event_type {
        listing.push(" AND event_type = ").push_bind(event_type.as_str());
    }
    if let Some(severity) = query.severity {
        listing.push(" AND severity = ").push_bind(severity.as_str());
    }
    if let Some(job) = &query.job_id {
        listing.push(" AND job_id = ").push_bind(held(job.as_str()));
    }
    if let Some(from) = query.from {
        listing.push(" AND at >= ").push_bind(from.0);
    }
    if let Some(to) = query.to {
        listing.push(" AND at <= ").push_bind(to.0);
    }
    let is_rare = query.event_type.is_some_and(|event_type| event_type != EventType::Decision);
    if is_rare {
        // A partial index is used by a statement that repeats its condition.
        listing.push(" AND event_type <> 'safety.decision'");
    }
    let order = if is_rare || query.job_id.is_some() { "id" } else { number };
    listing.push(" ORDER BY ").push(order).push(direction);
    listing.push(" LIMIT ").push_bind(page_len(query.limit) as i64 + 1);
    listing
}

fn entry(row: &PgRow) -> Result<Entry> {
    let written: Draft = record(row, 6)?;
    let job_id = row.try_get::<Option<String>, _>(5)?;
    let draft = Draft {
        tenant: read(&told(row.try_get(0)?), |id| TenantId::parse(id).ok())?,
        at: Millis(row.try_get(2)?),
        event_type: read(row.try_get(3)?, EventType::parse)?,
        severity: read(row.try_get(4)?, Severity::parse)?,
        job_id: job_id.map(|id| read(&told(id), |id| JobId::parse(id).ok())).transpose()?,
        ..written
    };
    let seq = row.try_get::<i64, _>(1)?.max(0) as u64;
    Ok(Entry { seq, draft, prev_hash: Hash(row.try_get(7)?), event_hash: Hash(row.try_get(8)?) })
}

fn read<T>(word: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    parse(word).ok_or_else(|| unreadable(format!("an entry has {word:?} in it")))
}
