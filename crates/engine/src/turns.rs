//! One thing at a time for one job.
//!
//! Commits are compare-and-swap, so this is not what keeps the truth. It keeps two messages about one
//! job from deciding on the same revision, and it keeps placement, the timers and the waiters seeing
//! a job's changes in the order they were committed.

use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Mutex, MutexGuard};

/// Jobs share a turn only if their hashes meet; with this many that is rare.
const TURNS: usize = 4096;

pub struct Turns {
    turns: Vec<Mutex<()>>,
    busy: AtomicUsize,
}

pub struct Turn<'a> {
    _guard: MutexGuard<'a, ()>,
    busy: &'a AtomicUsize,
}

impl Default for Turns {
    fn default() -> Self {
        Self { turns: (0..TURNS).map(|_| Mutex::new(())).collect(), busy: AtomicUsize::new(0) }
    }
}

impl Turns {
    /// Waits for the turn of a job, or of whatever else has one.
    pub async fn take(&self, id: &impl Hash) -> Turn<'_> {
        let mut hasher = FxHasher::default();
        id.hash(&mut hasher);
        let guard = self.turns[hasher.finish() as usize % TURNS].lock().await;
        self.busy.fetch_add(1, Ordering::Relaxed);
        Turn { _guard: guard, busy: &self.busy }
    }

    /// Says that a decision is under way before its job's turn has come.
    pub fn begin(&self) -> Begun<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Begun(&self.busy)
    }

    /// How many decisions are under way.
    pub fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }
}

/// A decision that is under way.
pub struct Begun<'a>(&'a AtomicUsize);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
