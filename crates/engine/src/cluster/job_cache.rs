//! Jobs at work as this server last committed them, so that most results need not read their job first.
//!
//! Where servers share a store, another may have changed a job since. Whoever acts on what is here compares revisions
//! when it commits, and opens the job before it takes no for an answer.

use reveille_core::id::JobId;
use reveille_core::job::Job;
use rustc_hash::FxHashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Jobs of one generation. Two are kept: the long at work are forgotten, and read again when they end.
const GENERATION_LEN: usize = 1_024;
/// Written as JSON. A larger job is read again when it ends, so all of them together stay below 32 MiB.
const JOB_LEN_MAX: usize = 16 * 1_024;

#[derive(Default)]
pub struct JobCache(Mutex<CacheGenerations>);

#[derive(Default)]
struct CacheGenerations {
    young: FxHashMap<JobId, Arc<Job>>,
    old: FxHashMap<JobId, Arc<Job>>,
}

impl JobCache {
    /// Takes over a job as it was committed.
    pub fn note(&self, job: &Arc<Job>) {
        let is_kept = job.attempt().is_some() && is_small(job);
        let mut generations = self.lock();
        if !is_kept {
            generations.forget(job.id());
            return;
        }
        if generations.young.len() >= GENERATION_LEN {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(job.id().clone(), job.clone());
    }

    pub fn get(&self, id: &JobId) -> Option<Arc<Job>> {
        let generations = self.lock();
        generations.young.get(id).or_else(|| generations.old.get(id)).cloned()
    }

    pub fn forget(&self, id: &JobId) {
        self.lock().forget(id);
    }

    fn lock(&self) -> MutexGuard<'_, CacheGenerations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheGenerations {
    fn forget(&mut self, id: &JobId) {
        self.young.remove(id);
        self.old.remove(id);
    }
}

fn is_small(job: &Job) -> bool {
    serde_json::to_writer(ByteLimit(JOB_LEN_MAX), job).is_ok()
}

/// Bytes that may still be written. Nothing becomes of them.
struct ByteLimit(usize);

impl io::Write for ByteLimit {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::job::{Attempt, Phase};
    use reveille_core::life;
    use reveille_core::request::Request;
    use reveille_core::time::Millis;

    /// A job at work that says so much about itself.
    fn at_work(id: &str, words_len: usize) -> Arc<Job> {
        let labels = [("words".to_owned(), "w".repeat(words_len))].into();
        let job = life::submit(Request { labels, ..Request::plain(id, "job.echo") }, Millis(0));
        let attempt =
            Attempt { number: 1, worker: None, pool: None, dispatched_at: Millis(0), progress: None };
        Arc::new(Job { phase: Phase::Dispatched(attempt), ..job })
    }

    #[test]
    fn a_job_is_remembered_while_it_is_at_work() {
        let (known, job) = (JobCache::default(), at_work("j", 0));
        known.note(&job);
        assert_eq!(known.get(job.id()), Some(job.clone()));
        let ended = life::submit(Request::plain("j", "job.echo"), Millis(0));
        known.note(&Arc::new(ended));
        assert_eq!(known.get(job.id()), None);
    }

    #[test]
    fn a_large_job_is_not_remembered_nor_what_it_was_before() {
        let known = JobCache::default();
        known.note(&at_work("j", 0));
        known.note(&at_work("j", JOB_LEN_MAX));
        assert_eq!(known.get(&JobId::known("j")), None);
    }

    #[test]
    fn two_generations_are_remembered_and_no_more() {
        let known = JobCache::default();
        for number in 0..3 * GENERATION_LEN {
            known.note(&at_work(&format!("j{number}"), 0));
        }
        assert_eq!(known.get(&JobId::known(format!("j{}", GENERATION_LEN - 1))), None);
        assert!(known.get(&JobId::known(format!("j{GENERATION_LEN}"))).is_some());
    }
}
