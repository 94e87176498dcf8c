//! What Redis says when it cannot, in our words.

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

/// Whether nobody can say if the command was carried out.
pub(super) fn is_unknown_outcome(error: &RedisError) -> bool {
    error.is_io_error() || error.is_timeout() || error.is_connection_dropped()
}

/// Whether a cluster says that the command was not carried out: another node has the key, or nobody has it now.
pub(super) fn was_not_done(error: &RedisError) -> bool {
    error.is_cluster_error() || error.kind() == ErrorKind::ClusterConnectionNotFound
}

/// What was read is not what was written.
pub(super) fn unreadable(what: &str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("{what}: {error}"))
}
