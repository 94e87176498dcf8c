//! When to look at which job again. One entry a live job; what the moment means is the core's business.

use reveille_core::id::JobId;
use reveille_core::job::State;
use reveille_core::time::Millis;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub struct Timers(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    order: BTreeSet<(Millis, JobId)>,
    of_job: FxHashMap<JobId, (Millis, State)>,
}

/// A moment that passed this long ago was missed.
const OVERDUE_MS: i64 = 1_000;

impl Timers {
    /// Replaces the job's moment.
    pub fn set(&self, job: &JobId, at: Millis, state: State) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = entries.of_job.insert(job.clone(), (at, state));
        if before.is_some_and(|(before, _)| before == at) {
            return;
        }
        if let Some((before, _)) = before {
            entries.order.remove(&(before, job.clone()));
        }
        entries.order.insert((at, job.clone()));
    }

    /// The job is not looked at again.
    pub fn clear(&self, job: &JobId) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, _)) = entries.of_job.remove(job) {
            entries.order.remove(&(at, job.clone()));
        }
    }

    /// How many jobs of each state should have been looked at by now, and were not.
    pub fn overdue(&self, now: Millis) -> BTreeMap<State, u64> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut overdue = BTreeMap::new();
        for (_, job) in entries.order.iter().take_while(|(at, _)| *at < now - OVERDUE_MS) {
            if let Some((_, state)) = entries.of_job.get(job) {
                *overdue.entry(*state).or_default() += 1;
            }
        }
        overdue
    }

    /// Takes at most `max` jobs whose moment has come.
    pub fn due(&self, now: Millis, max: usize) -> Vec<JobId> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        while due.len() < max && entries.order.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, job)) = entries.order.pop_first() {
                entries.of_job.remove(&job);
                due.push(job);
            }
        }
        due
    }

    /// How many jobs are live: every one of them has a moment here, if only a far one.
    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).of_job.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_one_moment_and_the_last_word_counts() {
        let timers = Timers::default();
        let (a, b) = (JobId::known("a"), JobId::known("b"));
        timers.set(&a, Millis(10), State::Running);
        timers.set(&b, Millis(20), State::Running);
        timers.set(&a, Millis(30), State::Running);
        assert_eq!(timers.overdue(Millis(1_025)), BTreeMap::from([(State::Running, 1)]));
        assert_eq!(timers.due(Millis(25), 10), [b]);
        timers.clear(&a);
        assert!(timers.due(Millis(99), 10).is_empty());
        assert_eq!(timers.len(), 0);
    }
}
