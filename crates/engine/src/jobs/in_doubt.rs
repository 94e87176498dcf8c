//! Commits that were not answered: they count or they do not, and whoever finds out first acts on them.

use reveille_core::id::JobId;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Revisions that somebody asked for and got no answer about, and how many did. Two may have asked for the same
/// one, and for the same thing, within a millisecond: what is stored does not say whose it is.
#[derive(Default)]
pub struct InDoubt(Mutex<FxHashMap<(JobId, u64), u32>>);

impl InDoubt {
    pub fn raise(&self, job: &JobId, revision: u64) {
        *self.open().entry((job.clone(), revision)).or_default() += 1;
    }

    /// It counted, and that is acted on now. Says whether somebody was in doubt until then.
    pub fn settle(&self, job: &JobId, revision: u64) -> bool {
        let mut open = self.open();
        !open.is_empty() && open.remove(&(job.clone(), revision)).is_some()
    }

    /// What one of them asked for did not count.
    pub fn drop_one(&self, job: &JobId, revision: u64) {
        let (mut open, doubt) = (self.open(), (job.clone(), revision));
        if let Some(count) = open.get_mut(&doubt) {
            *count -= 1;
            if *count == 0 {
                open.remove(&doubt);
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, FxHashMap<(JobId, u64), u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_in_doubt_one_acts() {
        let (in_doubt, job) = (InDoubt::default(), JobId::known("j"));
        in_doubt.raise(&job, 3);
        in_doubt.raise(&job, 3);
        assert!(in_doubt.settle(&job, 3));
        assert!(!in_doubt.settle(&job, 3), "the other finds it done");
    }

    #[test]
    fn whoever_did_not_count_leaves_the_other_in_doubt() {
        let (in_doubt, job) = (InDoubt::default(), JobId::known("j"));
        in_doubt.raise(&job, 3);
        in_doubt.raise(&job, 3);
        in_doubt.drop_one(&job, 3);
        assert!(in_doubt.settle(&job, 3));
        in_doubt.raise(&job, 4);
        in_doubt.drop_one(&job, 4);
        assert!(!in_doubt.settle(&job, 4));
    }
}
