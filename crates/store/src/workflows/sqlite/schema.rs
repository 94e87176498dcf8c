//! The tables. A run is a row for its head and one for each of its parts.

use rusqlite::{Connection, OptionalExtension as _, Result};

pub const VERSION: u64 = 1;

/// Creates the tables if they do not exist, and returns their version.
pub fn open(connection: &Connection) -> Result<u64> {
    connection.execute_batch("CREATE TABLE IF NOT EXISTS flows_schema (version INTEGER NOT NULL)")?;
    let found = connection
        .query_row("SELECT version FROM flows_schema", [], |row| row.get::<_, i64>(0))
        .optional()?;
    if let Some(found) = found {
        return Ok(found as u64);
    }
    connection.execute_batch(CREATE)?;
    connection.execute("INSERT INTO flows_schema (version) VALUES (?)", [VERSION as i64])?;
    Ok(VERSION)
}

const CREATE: &str = "
CREATE TABLE workflows (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    -- The one that new runs take; none once the workflow is deleted.
    is_last INTEGER NOT NULL,
    document TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (tenant, id, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX workflows_last ON workflows (tenant, id) WHERE is_last = 1;

-- seq counts insertions; cursors are made of it.
CREATE TABLE runs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    live INTEGER NOT NULL,
    -- Whether it counts among those that its tenant may have at once.
    is_open INTEGER NOT NULL,
    state TEXT NOT NULL,
    tenant TEXT NOT NULL,
    workflow TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    idempotency_key TEXT,
    head TEXT NOT NULL
) STRICT;
CREATE INDEX runs_live ON runs (seq) WHERE live = 1;
CREATE INDEX runs_open ON runs (tenant) WHERE is_open = 1;
CREATE INDEX runs_ended ON runs (updated_at) WHERE live = 0;
CREATE INDEX runs_of_workflow ON runs (tenant, workflow, seq);
CREATE UNIQUE INDEX runs_idempotent ON runs (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE run_parts (
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, name)
) STRICT;

CREATE TABLE run_lines (
    run TEXT NOT NULL,
    n INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;
";
