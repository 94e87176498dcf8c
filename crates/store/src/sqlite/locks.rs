//! Locks as rows. A row exists while a lock is held; SQLite gives every new one a number that it never used before
//! (`AUTOINCREMENT`), and that is the fence.

use super::file::SqliteFile;
use crate::locks::until_max;
use crate::{HeldLock, Lock, StoreError};
use reveille_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, params};

pub(super) async fn take(
    file: &SqliteFile,
    name: &str,
    now: Millis,
    ttl_ms: i64,
) -> Result<Option<Lock>, StoreError> {
    let (key, until, until_max) = (name.to_owned(), now + ttl_ms, until_max(now, ttl_ms));
    let insert = "INSERT INTO locks (name, until) VALUES (?1, ?2) ON CONFLICT DO NOTHING RETURNING fence";
    // Fences begin at 1.
    let fence = file.write(move |connection| {
        let lapse = "DELETE FROM locks WHERE name = ?1 AND (until <= ?2 OR until > ?3)";
        connection.prepare_cached(lapse)?.execute(params![key, now.0, until_max.0])?;
        let mut insert = connection.prepare_cached(insert)?;
        let fence = insert.query_row(params![key, until.0], |row| row.get::<_, i64>(0)).optional()?;
        Ok(fence.unwrap_or(0) as u64)
    });
    let fence = fence.await?;
    Ok((fence > 0).then(|| Lock { name: name.to_owned(), fence }))
}

pub(super) async fn renew(
    file: &SqliteFile,
    lock: &Lock,
    now: Millis,
    ttl_ms: i64,
) -> Result<bool, StoreError> {
    let (lock, until) = (lock.clone(), now + ttl_ms);
    let rows = file.write(move |connection| {
        let sql = "UPDATE locks SET until = ?1 WHERE fence = ?2 AND name = ?3 AND until > ?4";
        let mut renew = connection.prepare_cached(sql)?;
        Ok(renew.execute(params![until.0, lock.fence as i64, lock.name, now.0])? as u64)
    });
    Ok(rows.await? > 0)
}

/// For what is written under a lock, in the same transaction.
pub(super) fn is_held(connection: &Connection, lock: &Lock, now: Millis) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM locks WHERE fence = ?1 AND name = ?2 AND until > ?3";
    connection.prepare_cached(sql)?.exists(params![lock.fence as i64, lock.name, now.0])
}

pub(super) async fn give_back(file: &SqliteFile, lock: &Lock, now: Millis) -> Result<bool, StoreError> {
    let lock = lock.clone();
    let rows = file.write(move |connection| {
        let sql = "DELETE FROM locks WHERE fence = ?1 AND name = ?2 AND until > ?3";
        let mut give_back = connection.prepare_cached(sql)?;
        Ok(give_back.execute(params![lock.fence as i64, lock.name, now.0])? as u64)
    });
    Ok(rows.await? > 0)
}

/// Only one process has the file, so holders have no name.
pub(super) async fn list(file: &SqliteFile, now: Millis, limit: usize) -> Result<Vec<HeldLock>, StoreError> {
    file.read(move |connection| {
        let sql = "SELECT name, until FROM locks WHERE until > ?1 ORDER BY until, name LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let held = statement.query_map(params![now.0, limit as i64], |row| {
            Ok(HeldLock { name: row.get(0)?, holder: String::new(), until: Millis(row.get(1)?) })
        })?;
        Ok(held.collect::<rusqlite::Result<Vec<_>>>()?)
    })
    .await
}
