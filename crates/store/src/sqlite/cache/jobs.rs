//! Live jobs, and those that ended a moment ago: their clients ask for them right away.
//!
//! A job that is not here is read from the file and, if it is live, kept. The writer may change the same job
//! meanwhile; each fill has a number, so that an older read does not replace a newer change.

use reveille_core::id::JobId;
use reveille_core::job::Job;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Live jobs above this number are read from the file.
const LIVE_MAX: usize = 200_000;
/// Ended jobs that are kept, the latest.
const ENDED_MAX: usize = 10_000;

#[derive(Default)]
pub(in crate::sqlite) struct JobCache {
    jobs: HashMap<JobId, Arc<Job>>,
    /// Ended jobs in the order they ended, with the revision they had then.
    ended: VecDeque<(JobId, u64)>,
    /// Jobs that are being read from the file and have not changed since.
    fills: HashMap<JobId, FillNumber>,
    fill_last: u64,
}

/// A permission to keep what is about to be read, unless the job changes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct FillNumber(u64);

impl JobCache {
    pub fn get(&self, id: &JobId) -> Option<Arc<Job>> {
        self.jobs.get(id).cloned()
    }

    /// Keeps a job as it was just committed.
    pub fn put(&mut self, job: &Arc<Job>) {
        self.fills.remove(job.id());
        self.keep(job);
        if !job.is_live() {
            self.ended.push_back((job.id().clone(), job.revision));
            self.forget_long_ended();
        }
    }

    pub fn remove(&mut self, id: &JobId) {
        self.fills.remove(id);
        self.jobs.remove(id);
    }

    /// To be called before a job is read from the file.
    pub fn begin_fill(&mut self, id: &JobId) -> FillNumber {
        self.fill_last += 1;
        let number = FillNumber(self.fill_last);
        self.fills.insert(id.clone(), number);
        number
    }

    /// To be called with what was read, even if that was nothing.
    pub fn end_fill(&mut self, id: &JobId, number: FillNumber, job: Option<&Arc<Job>>) {
        if self.fills.get(id) != Some(&number) {
            return;
        }
        self.fills.remove(id);
        if let Some(job) = job.filter(|job| job.is_live()) {
            self.keep(job);
        }
    }

    fn keep(&mut self, job: &Arc<Job>) {
        if let Some(kept) = self.jobs.get_mut(job.id()) {
            *kept = Arc::clone(job);
        } else if self.jobs.len() < LIVE_MAX + ENDED_MAX {
            self.jobs.insert(job.id().clone(), Arc::clone(job));
        }
    }

    fn forget_long_ended(&mut self) {
        while self.ended.len() > ENDED_MAX {
            let Some((id, revision)) = self.ended.pop_front() else { return };
            if self.jobs.get(&id).is_some_and(|job| job.revision == revision) {
                self.jobs.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{ended, new_job, running};
    use reveille_core::job::State;
    use reveille_core::time::Millis;

    fn job(name: &str, revision: u64) -> Arc<Job> {
        Arc::new(Job { revision, ..new_job("cache", name, Millis::ZERO) })
    }

    fn over(name: &str, revision: u64) -> Arc<Job> {
        Arc::new(ended(&job(name, revision), State::Succeeded, Millis::ZERO))
    }

    #[test]
    fn what_was_read_before_a_commit_does_not_replace_it() {
        let mut cache = JobCache::default();
        let old = job("a", 1);
        let fill = cache.begin_fill(old.id());
        cache.put(&job("a", 2));
        cache.end_fill(old.id(), fill, Some(&old));
        assert_eq!(cache.get(old.id()).unwrap().revision, 2);

        // Nor does it come back if the newer one was forgotten in between.
        let fill = cache.begin_fill(old.id());
        cache.remove(old.id());
        cache.end_fill(old.id(), fill, Some(&old));
        assert_eq!(cache.get(old.id()), None);
    }

    #[test]
    fn only_live_jobs_that_were_read_are_kept() {
        let mut cache = JobCache::default();
        for (job, is_kept) in [(job("live", 3), true), (over("ended", 3), false)] {
            let fill = cache.begin_fill(job.id());
            cache.end_fill(job.id(), fill, Some(&job));
            assert_eq!(cache.get(job.id()).is_some(), is_kept);
        }
        assert!(cache.fills.is_empty());
    }

    #[test]
    fn the_latest_ended_jobs_are_kept_and_live_ones_stay() {
        let mut cache = JobCache::default();
        let live = Arc::new(running(&job("live", 1), Millis::ZERO));
        cache.put(&live);
        for number in 0..=ENDED_MAX {
            cache.put(&over(&number.to_string(), 2));
        }
        assert!(cache.get(live.id()).is_some());
        assert!(cache.get(over("0", 2).id()).is_none());
        assert!(cache.get(over("1", 2).id()).is_some());
        assert_eq!(cache.jobs.len(), ENDED_MAX + 1);
    }
}
