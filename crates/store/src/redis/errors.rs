//! Redis errors as store errors.

use crate::StoreError;
use redis::{ErrorKind, RedisError};

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        match error.code() {
            Some("OOM") => return Self::Full("the memory of Redis is full (maxmemory)"),
            Some("MISCONF") => return Self::Full("Redis cannot write to its disk"),
            Some("WRONGTYPE") => return Self::Corrupt(error.to_string()),
            _ => {}
        }
        match error.kind() {
            ErrorKind::UnexpectedReturnType | ErrorKind::Parse => Self::Corrupt(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

/// Whether it is unknown if the command was carried out.
pub(super) fn is_unknown_outcome(error: &RedisError) -> bool {
    error.is_io_error() || error.is_timeout() || error.is_connection_dropped()
}

/// Whether a cluster reports that the command was not carried out: another node has the key, or none does at the
/// moment.
pub(super) fn was_not_done(error: &RedisError) -> bool {
    error.is_cluster_error() || error.kind() == ErrorKind::ClusterConnectionNotFound
}

/// What was read is not what was written.
pub(super) fn unreadable(what: &str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("{what}: {error}"))
}
