//! A lock for each job: one thing at a time is decided about it in this process.
//!
//! Commits are compare-and-swap, so this is not what keeps the truth. It keeps two messages about one
//! job from deciding on the same revision, and it keeps placement, the timers and the waiters seeing
//! a job's changes in the order they were committed.

use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Mutex, MutexGuard};

/// Jobs share a lock only if their hashes meet; with this many that is rare.
const LOCKS: usize = 4096;

pub struct JobLocks {
    locks: Vec<Mutex<()>>,
    busy: AtomicUsize,
}

pub struct JobLock<'a> {
    _guard: MutexGuard<'a, ()>,
    busy: &'a AtomicUsize,
}

impl Default for JobLocks {
    fn default() -> Self {
        Self { locks: (0..LOCKS).map(|_| Mutex::new(())).collect(), busy: AtomicUsize::new(0) }
    }
}

impl JobLocks {
    /// Waits for the lock of a job, or of whatever else has one.
    pub async fn take(&self, id: &impl Hash) -> JobLock<'_> {
        let mut hasher = FxHasher::default();
        id.hash(&mut hasher);
        let guard = self.locks[hasher.finish() as usize % LOCKS].lock().await;
        self.busy.fetch_add(1, Ordering::Relaxed);
        JobLock { _guard: guard, busy: &self.busy }
    }

    /// Says that a decision is under way before its job's lock is taken.
    pub fn begin(&self) -> BusyGuard<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        BusyGuard(&self.busy)
    }

    /// How many decisions are under way.
    pub fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }
}

/// A decision that is under way.
pub struct BusyGuard<'a>(&'a AtomicUsize);

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for JobLock<'_> {
    fn drop(&mut self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
