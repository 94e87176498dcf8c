//! Which servers share a store in memory, and which jobs belong to which.

use crate::Members;
use crate::membership::BEAT_TTL_MS;
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_core::time::Millis;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Owners {
    /// When each server last beat.
    beats: BTreeMap<String, Millis>,
    owners: BTreeMap<JobId, String>,
}

impl Owners {
    /// Whoever commits a live job last owns it.
    pub fn committed(&mut self, job: &Job, owner: &str) {
        if job.is_live() {
            self.owners.insert(job.id().clone(), owner.to_owned());
            self.keep_findable(owner);
        } else {
            self.owners.remove(job.id());
        }
    }

    pub fn beat(&mut self, me: &str, now: Millis) -> Members {
        let last = self.beats.insert(me.to_owned(), now);
        let (here, silent): (Vec<_>, Vec<_>) = self.beats.iter().partition(|(_, last)| is_here(**last, now));
        let names = |them: Vec<(&String, &Millis)>| them.into_iter().map(|(name, _)| name.clone()).collect();
        Members {
            was_here: last.is_some_and(|last| is_here(last, now)),
            silent: names(silent),
            here: names(here),
        }
    }

    /// An owner that was taken over a moment ago is found silent again, and its jobs again.
    fn keep_findable(&mut self, owner: &str) {
        self.beats.entry(owner.to_owned()).or_insert(Millis(i64::MIN / 2));
    }

    pub fn owner(&self, job: &JobId) -> Option<&String> {
        self.owners.get(job)
    }

    /// The jobs that `me` takes over; nothing if the other is back.
    pub fn adopt(&mut self, silent: &str, me: &str, limit: usize, now: Millis) -> Option<Vec<JobId>> {
        if self.beats.get(silent).is_some_and(|last| is_here(*last, now)) {
            return None;
        }
        let left = self.owners.iter_mut().filter(|(_, owner)| *owner == silent).take(limit);
        let adopted: Vec<JobId> = left
            .map(|(id, owner)| {
                me.clone_into(owner);
                id.clone()
            })
            .collect();
        if adopted.is_empty() {
            self.beats.remove(silent);
        } else {
            self.keep_findable(me);
        }
        Some(adopted)
    }
}

fn is_here(last: Millis, now: Millis) -> bool {
    now - last.0 < Millis(BEAT_TTL_MS)
}
