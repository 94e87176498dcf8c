//! Conversion between rows and records: JSON in one column, and SQLite's errors as store errors.

use crate::{DISK_FULL, StoreError};
use reveille_core::job::Job;
use rusqlite::ErrorCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A record as it is stored.
pub(super) fn to_text<T: Serialize>(record: &T) -> Result<String, StoreError> {
    serde_json::to_string(record)
        .map_err(|error| StoreError::Unavailable(format!("a record has no JSON: {error}")))
}

/// A record as it was stored; `what` names it if it cannot be read.
pub(super) fn from_text<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{what}: {error}")))
}

pub(super) fn job(text: &str) -> Result<Arc<Job>, StoreError> {
    from_text(text, "a job").map(Arc::new)
}

/// What an SQLite error means to the caller.
pub(super) fn store_error(error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(DISK_FULL),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(error.to_string()),
        Some(ErrorCode::ConstraintViolation) => StoreError::Refused(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        store_error(&error)
    }
}
