//! Records in rows.

use serde::de::DeserializeOwned;
use sqlx::postgres::PgRow;
use sqlx::{Result, Row};

/// Unreadable records are left out; they hide no others.
pub fn readable<T>(rows: impl Iterator<Item = Result<T>>) -> Vec<T> {
    rows.filter_map(|row| row.inspect_err(|error| tracing::error!(%error, "left out of a list")).ok())
        .collect()
}

/// A column of JSON.
pub fn record<T: DeserializeOwned>(row: &PgRow, column: usize) -> Result<T> {
    serde_json::from_str(row.try_get(column)?).map_err(|error| unreadable(format!("a record: {error}")))
}

/// What was read is not what was written.
pub fn unreadable(what: String) -> sqlx::Error {
    sqlx::Error::Decode(what.into())
}
