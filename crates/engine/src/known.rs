//! Jobs at work as this server last committed them, so that most results need not read their job first.
//!
//! Where servers share a store, another may have changed a job since. Whoever acts on what is here compares revisions
//! when it commits, and reads the job before it takes no for an answer.

use reveille_core::id::JobId;
use reveille_core::job::Job;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Jobs of one generation. Two are kept: the long at work are forgotten, and read again when they end.
const GENERATION_LEN: usize = 1_024;

#[derive(Default)]
pub(crate) struct Known(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: FxHashMap<JobId, Arc<Job>>,
    old: FxHashMap<JobId, Arc<Job>>,
}

impl Known {
    /// Takes over a job as it was committed.
    pub fn note(&self, job: &Arc<Job>) {
        let mut generations = self.lock();
        if job.attempt().is_none() {
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

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn forget(&mut self, id: &JobId) {
        self.young.remove(id);
        self.old.remove(id);
    }
}
