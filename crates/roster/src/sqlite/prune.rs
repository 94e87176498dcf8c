//! Taking out what is long over.
//!
//! Presence has no index by time, because every beat would have to change it. So a reader looks through
//! the table for who is gone, and the writer, which everybody waits for, only removes by key.

use super::contract_number;
use crate::RosterError;
use reveille_core::presence::Contract;
use reveille_core::time::Millis;
use reveille_store::{SqliteFile, StoreError};
use rusqlite::{Connection, params};

type SqliteMemberKey = (u8, String, String);

pub(super) async fn prune(
    file: &SqliteFile,
    seen_before: Millis,
    events_before: Millis,
    limit: usize,
) -> Result<u64, RosterError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let unseen = file.read(move |connection| unseen(connection, seen_before, limit)).await?;
    let gone = file.write(move |connection| {
        let rows = remove_unseen(connection, &unseen, seen_before)?;
        Ok((rows + remove_old(connection, events_before, limit)?) as u64)
    });
    Ok(gone.await?)
}

fn unseen(
    connection: &Connection,
    seen_before: Millis,
    limit: i64,
) -> Result<Vec<SqliteMemberKey>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT contract, tenant, id FROM presence
         WHERE last_seen < ?1
           AND NOT (contract = ?2 AND EXISTS (SELECT 1 FROM workspaces WHERE workspaces.id = presence.id))
         ORDER BY last_seen, contract, tenant, id LIMIT ?3",
    )?;
    let values = params![seen_before.0, contract_number(Contract::Molecule), limit];
    let unseen = statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(unseen.collect::<rusqlite::Result<_>>()?)
}

/// Whoever was seen meanwhile stays.
fn remove_unseen(
    connection: &Connection,
    unseen: &[SqliteMemberKey],
    seen_before: Millis,
) -> rusqlite::Result<usize> {
    let mut statement = connection.prepare_cached(
        "DELETE FROM presence WHERE contract = ?1 AND tenant = ?2 AND id = ?3 AND last_seen < ?4",
    )?;
    unseen.iter().try_fold(0, |rows, (contract, tenant, id)| {
        Ok(rows + statement.execute(params![contract, tenant, id, seen_before.0])?)
    })
}

fn remove_old(connection: &Connection, before: Millis, limit: i64) -> rusqlite::Result<usize> {
    let mut events = connection.prepare_cached(
        "DELETE FROM structure_events WHERE id IN (
             SELECT id FROM structure_events INDEXED BY events_by_time
             WHERE created_at < ?1 ORDER BY created_at, id LIMIT ?2)",
    )?;
    let mut delegations = connection.prepare_cached(
        "DELETE FROM delegations WHERE id IN (
             SELECT id FROM delegations INDEXED BY delegations_over
             WHERE open = 0 AND updated_at < ?1 ORDER BY updated_at, id LIMIT ?2)",
    )?;
    Ok(events.execute(params![before.0, limit])? + delegations.execute(params![before.0, limit])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;

    #[test]
    fn whoever_is_seen_between_the_look_and_the_removal_stays() {
        let connection = Connection::open_in_memory().unwrap();
        schema::open(&connection).unwrap();
        connection
            .execute_batch("INSERT INTO presence VALUES (2, 't', 'a', 1, ''), (2, 't', 'b', 1, '')")
            .unwrap();
        let found = unseen(&connection, Millis(5), 10).unwrap();
        assert_eq!(found.len(), 2);
        connection.execute("UPDATE presence SET last_seen = 5 WHERE id = 'a'", []).unwrap();
        assert_eq!(remove_unseen(&connection, &found, Millis(5)).unwrap(), 1);
        let left: String = connection.query_row("SELECT id FROM presence", [], |row| row.get(0)).unwrap();
        assert_eq!(left, "a");
    }
}
