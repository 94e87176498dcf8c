//! Who wants to know when a job ends.

use reveille_core::id::JobId;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

#[derive(Default)]
pub struct Waiters(Mutex<FxHashMap<JobId, (usize, Arc<Notify>)>>);

/// Registered from its making to its dropping, so that an end in between is not missed.
pub struct Waiter<'a> {
    waiters: &'a Waiters,
    job: JobId,
    notify: Arc<Notify>,
}

impl Waiters {
    pub fn register(&self, job: &JobId) -> Waiter<'_> {
        let mut waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, notify) = waiters.entry(job.clone()).or_default();
        *count += 1;
        Waiter { waiters: self, job: job.clone(), notify: notify.clone() }
    }

    pub fn wake(&self, job: &JobId) {
        let waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, notify)) = waiters.get(job) {
            notify.notify_waiters();
        }
    }

    /// Everybody looks again.
    pub fn wake_all(&self) {
        let waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiters.values().for_each(|(_, notify)| notify.notify_waiters());
    }
}

impl Waiter<'_> {
    /// The future must exist before the job is looked at; then no wake is lost.
    pub fn woken(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiters = self.waiters.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((count, _)) = waiters.get_mut(&self.job) {
            *count -= 1;
            if *count == 0 {
                waiters.remove(&self.job);
            }
        }
    }
}
