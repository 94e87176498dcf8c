//! Who wants to know when a job, or a run, ends.

use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

pub struct Waiters<Id>(Mutex<FxHashMap<Id, (usize, Arc<Notify>)>>);

impl<Id> Default for Waiters<Id> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// Registered from its making to its dropping, so that an end in between is not missed.
pub struct Waiter<'a, Id: Hash + Eq> {
    waiters: &'a Waiters<Id>,
    of: Id,
    notify: Arc<Notify>,
}

impl<Id: Hash + Eq + Clone> Waiters<Id> {
    pub fn register(&self, of: &Id) -> Waiter<'_, Id> {
        let mut waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, notify) = waiters.entry(of.clone()).or_default();
        *count += 1;
        Waiter { waiters: self, of: of.clone(), notify: notify.clone() }
    }

    pub fn wake(&self, of: &Id) {
        let waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, notify)) = waiters.get(of) {
            notify.notify_waiters();
        }
    }

    /// Everybody looks again.
    pub fn wake_all(&self) {
        let waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiters.values().for_each(|(_, notify)| notify.notify_waiters());
    }
}

impl<Id: Hash + Eq> Waiter<'_, Id> {
    /// The future must exist before the job is looked at; then no wake is lost.
    pub fn woken(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

impl<Id: Hash + Eq> Drop for Waiter<'_, Id> {
    fn drop(&mut self) {
        let mut waiters = self.waiters.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((count, _)) = waiters.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                waiters.remove(&self.of);
            }
        }
    }
}
