//! The reading side of the tables.

use super::listing::listing;
use super::rows::{job, store_error};
use crate::query::page_len;
use crate::{BlobKey, JobQuery, Page, StoreError, StoredBlob};
use bytes::Bytes;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::Job;
use reveille_core::time::Millis;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use std::sync::Arc;

pub(super) fn job_by_id(connection: &Connection, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
    let record = connection
        .query_row("SELECT record FROM jobs WHERE id = ?1", [id.as_str()], |row| row.get::<_, String>(0))
        .optional()
        .map_err(|error| store_error(&error))?;
    record.map(|record| job(&record)).transpose()
}

pub(super) fn holder_of_key(
    connection: &Connection,
    tenant: &TenantId,
    key: &str,
) -> Result<Option<JobId>, StoreError> {
    let sql = "SELECT id FROM jobs WHERE tenant = ?1 AND idempotency_key = ?2";
    let found = connection.query_row(sql, [tenant.as_str(), key], |row| row.get::<_, String>(0)).optional();
    let found = found.map_err(|error| store_error(&error))?;
    found.map(|id| JobId::parse(&id).map_err(|error| StoreError::Corrupt(error.to_string()))).transpose()
}

pub(super) fn jobs(connection: &Connection, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
    let (sql, values) = listing(query);
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(params_from_iter(values), |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get::<_, Option<String>>(1)?))
    })?;
    let mut trouble = Ok(());
    let rows = rows.map_while(|row| row.map_err(|error| trouble = Err(store_error(&error))).ok());
    let page = Page::look(page_len(query.limit), query.look_through, rows);
    trouble.map(|()| readable(&page, job))
}

pub(super) fn live(
    connection: &Connection,
    cursor: Option<u64>,
    limit: usize,
) -> Result<Page<Arc<Job>>, StoreError> {
    let sql = "SELECT seq, record FROM jobs INDEXED BY jobs_live WHERE live = 1 AND seq > ?1
               ORDER BY seq LIMIT ?2";
    let len = page_len(limit);
    let after = cursor.map_or(0, |cursor| i64::try_from(cursor).unwrap_or(i64::MAX));
    let values = vec![Value::from(after), Value::from(len as i64 + 1)];
    page(connection, sql, values, len, job)
}

/// The value and when it expires; the caller checks whether it has.
pub(super) fn blob(connection: &Connection, key: &BlobKey) -> Result<Option<(Bytes, Millis)>, StoreError> {
    connection
        .query_row("SELECT value, expires_at FROM blobs WHERE key = ?1", [key.as_str()], |row| {
            Ok((Bytes::from(row.get::<_, Vec<u8>>(0)?), Millis(row.get(1)?)))
        })
        .optional()
        .map_err(|error| store_error(&error))
}

pub(super) fn blob_expiry(connection: &Connection, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
    connection
        .query_row("SELECT expires_at FROM blobs WHERE key = ?1", params![key.as_str()], |row| row.get(0))
        .optional()
        .map(|expires_at| expires_at.map(Millis))
        .map_err(|error| store_error(&error))
}

/// What clients store, in the order of the keys. The length is read without the value.
pub(super) fn stored_blobs(
    connection: &Connection,
    after: Option<&BlobKey>,
    limit: usize,
) -> Result<Vec<StoredBlob>, StoreError> {
    let read = || {
        let mut statement = connection.prepare_cached(
            "SELECT key, length(value), expires_at FROM blobs WHERE key > ?1 ORDER BY key LIMIT ?2",
        )?;
        let rows = statement.query_map(params![after.map_or("", BlobKey::as_str), limit as i64], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, Millis(row.get(2)?)))
        })?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    let rows = read().map_err(|error| store_error(&error))?;
    let stored = rows.into_iter().filter_map(|(key, len, expires_at)| {
        Some(StoredBlob { key: BlobKey::parse(&key).ok()?, len: len as usize, expires_at })
    });
    Ok(stored.collect())
}

pub(super) fn page<T>(
    connection: &Connection,
    sql: &str,
    values: Vec<Value>,
    len: usize,
    read: impl Fn(&str) -> Result<T, StoreError>,
) -> Result<Page<T>, StoreError> {
    let rows = || {
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map(params_from_iter(values), |row| {
            Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?))
        })?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    let rows = rows().map_err(|error| store_error(&error))?;
    Ok(readable(&Page::take(len, rows.into_iter()), read))
}

/// One unreadable record must not hide all others, or keep them from recovery.
fn readable<T>(page: &Page<String>, read: impl Fn(&str) -> Result<T, StoreError>) -> Page<T> {
    let read = |record: &String| {
        read(record).inspect_err(|error| tracing::error!(%error, "left out of a page")).ok()
    };
    Page { items: page.items.iter().filter_map(read).collect(), next: page.next }
}
