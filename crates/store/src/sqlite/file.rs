//! A way for others to keep tables of their own in the data file.
//!
//! They share the writer and its commits with the store: one file, one sync, one lock, one backup. What
//! their tables are is their business; the store's own tables are not theirs to touch.

use super::Shared;
use super::change::Change;
use crate::StoreError;
use rusqlite::Connection;
use std::sync::Arc;

/// A handle; like a store's own, it keeps the file open for as long as it lives.
#[derive(Clone)]
pub struct SqliteFile {
    shared: Arc<Shared>,
}

impl SqliteFile {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Makes a change on the writer's thread and answers with its number (of rows, say) when it is on the
    /// disk. If the change fails, nothing of it stays; its neighbours in the same commit are not harmed.
    ///
    /// It may be run more than once, because a commit that failed is tried again change by change. So it
    /// must not count on what it did before, and it must neither begin nor end a transaction. All other
    /// writes wait for it: encode things before, and use `prepare_cached`.
    pub async fn write(
        &self,
        change: impl Fn(&Connection) -> rusqlite::Result<u64> + Send + 'static,
    ) -> Result<u64, StoreError> {
        Ok(self.shared.writer.write(Change::Other(Box::new(change))).await?.rows())
    }

    /// Asks on a reader's thread. It sees every change that was answered before.
    pub async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.readers.read(query).await
    }
}
