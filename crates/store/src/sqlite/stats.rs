//! How well changes share their commits.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the writer has done since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqliteStats {
    /// Transactions that reached the disk.
    pub commits: u64,
    /// Changes that were in them.
    pub operations: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    commits: AtomicU64,
    operations: AtomicU64,
}

impl Counters {
    pub fn count_commit(&self, operations: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.operations.fetch_add(operations as u64, Ordering::Relaxed);
    }

    pub fn read(&self) -> SqliteStats {
        SqliteStats {
            commits: self.commits.load(Ordering::Relaxed),
            operations: self.operations.load(Ordering::Relaxed),
        }
    }
}
