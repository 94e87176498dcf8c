//! What the roster's tables look like.
//!
//! As in the store, a record is JSON, and beside it are the columns that queries filter or sort by. Beats
//! are by far the most frequent writes, so the table of presence has no index that a beat would change.

use rusqlite::{Connection, OptionalExtension, Result};

/// Counts changes of the tables below.
pub(super) const VERSION: u64 = 1;

/// Makes the tables if there are none; answers with the version of those that are there.
pub(super) fn open(connection: &Connection) -> Result<u64> {
    connection.execute_batch("CREATE TABLE IF NOT EXISTS roster_schema (version INTEGER NOT NULL)")?;
    let version = connection.query_row("SELECT version FROM roster_schema", [], |row| row.get::<_, i64>(0));
    if let Some(version) = version.optional()? {
        if version as u64 == VERSION {
            connection.execute_batch(LATER)?;
        }
        return Ok(version as u64);
    }
    connection.execute_batch(CREATE)?;
    connection.execute_batch(LATER)?;
    connection.execute("INSERT INTO roster_schema (version) VALUES (?1)", [VERSION as i64])?;
    Ok(VERSION)
}

/// Came later. Who does not know them can do without, so that they are no new version.
const LATER: &str = "
    CREATE TABLE IF NOT EXISTS generations (
        what TEXT NOT NULL PRIMARY KEY,
        n INTEGER NOT NULL
    ) WITHOUT ROWID;

    -- An empty session_id stands for every session of the key that would have ended no later.
    CREATE TABLE IF NOT EXISTS ended_sessions (
        key_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (key_id, session_id)
    ) WITHOUT ROWID;
";

/// The store of version 1 had the keys; they are taken over as they are, and their tenants with them.
const CREATE: &str = "
    CREATE TABLE IF NOT EXISTS keys (
        id TEXT NOT NULL PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        record TEXT NOT NULL
    );

    CREATE TABLE IF NOT EXISTS tenants (id TEXT NOT NULL PRIMARY KEY, created_at INTEGER NOT NULL);
    INSERT INTO tenants (id, created_at)
        SELECT record ->> '$.tenant', min(record ->> '$.created_at') FROM keys
        WHERE json_valid(record) AND record ->> '$.tenant' IS NOT NULL GROUP BY 1
        ON CONFLICT DO NOTHING;

    -- 1 is cap, 2 is voicegateway, 3 is molecule.
    CREATE TABLE IF NOT EXISTS presence (
        contract INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        last_seen INTEGER NOT NULL,
        about TEXT NOT NULL,
        PRIMARY KEY (contract, tenant, id)
    ) WITHOUT ROWID;

    CREATE TABLE IF NOT EXISTS workspaces (
        id TEXT NOT NULL PRIMARY KEY,
        tenant TEXT NOT NULL,
        record TEXT NOT NULL
    );

    CREATE TABLE IF NOT EXISTS structure_events (
        id TEXT NOT NULL PRIMARY KEY,
        tenant TEXT NOT NULL,
        workspace TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        record TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS events_of_tenant ON structure_events (tenant, created_at, id);
    CREATE INDEX IF NOT EXISTS events_of_workspace
        ON structure_events (workspace, tenant, created_at, id);
    CREATE INDEX IF NOT EXISTS events_by_time ON structure_events (created_at, id);

    -- open: it is a job of ours and has not ended.
    CREATE TABLE IF NOT EXISTS delegations (
        id TEXT NOT NULL PRIMARY KEY,
        tenant TEXT NOT NULL,
        source TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        open INTEGER NOT NULL,
        record TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS delegations_of_source ON delegations (source, created_at, id);
    CREATE INDEX IF NOT EXISTS delegations_open ON delegations (id) WHERE open = 1;
    CREATE INDEX IF NOT EXISTS delegations_over ON delegations (updated_at, id) WHERE open = 0;

    CREATE TABLE IF NOT EXISTS drains (
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (kind, name)
    ) WITHOUT ROWID;
";
