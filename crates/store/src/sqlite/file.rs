//! Lets other crates keep their own tables in the data file.
//!
//! They share the writer and its commits with the store: one file, one sync, one lock, one backup. They define their
//! own tables and must not touch the store's.

use super::SqliteParts;
use super::change::SqliteChange;
use crate::StoreError;
use rusqlite::Connection;
use std::sync::Arc;

/// A handle; like a store's own, it keeps the file open for as long as it lives.
#[derive(Clone)]
pub struct SqliteFile {
    shared: Arc<SqliteParts>,
}

impl SqliteFile {
    pub(super) fn new(shared: Arc<SqliteParts>) -> Self {
        Self { shared }
    }

    /// Makes a change on the writer's thread and returns its number (of rows, say) when it is on disk. If the change
    /// fails, nothing of it stays; other changes in the same commit are unaffected.
    ///
    /// It may run more than once, because a failed commit is retried change by change. So it must not rely on what it
    /// did before, and it must neither begin nor end a transaction. All other writes wait for it: encode beforehand,
    /// and use `prepare_cached`.
    pub async fn write(
        &self,
        change: impl Fn(&Connection) -> rusqlite::Result<u64> + Send + 'static,
    ) -> Result<u64, StoreError> {
        Ok(self.shared.writer.write(SqliteChange::Other(Box::new(change))).await?.rows())
    }

    /// Runs a query on a reader's thread. It sees every change that was answered before.
    pub async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.readers.read(query).await
    }
}
