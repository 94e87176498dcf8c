//! Of the workers that fit a waiting job: how many are busy, drained or away. A look at every worker, for
//! when somebody asks why.

use super::{Floor, Seat};
use crate::id::JobId;
use crate::presence::Contract;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fitting {
    pub ready: u32,
    pub busy: u32,
    /// Of the busy ones, those that could take a job if their CPU or GPU had room.
    pub hot: u32,
    pub drained: u32,
    /// Offline, restored and not heard since, or not listening.
    pub away: u32,
    /// Heard, and nobody knows which topics they serve.
    pub strangers: u32,
}

impl Floor {
    pub fn fitting(&self, job: &JobId) -> Option<Fitting> {
        let Seat::Waiting { lane, .. } = self.seats.get(job)? else { return None };
        let selector = &self.index.lane(*lane).selector;
        let mut found = Fitting::default();
        for (_, worker) in self.fleet.iter() {
            let profile = self.fleet.profile(worker.profile);
            if !selector.fits(profile) {
                let is_stranger = worker.contract() == Contract::Cap && profile.topics.is_empty();
                found.strangers += u32::from(is_stranger && worker.is_online());
                continue;
            }
            let count = if worker.drained {
                &mut found.drained
            } else if !worker.is_online() {
                &mut found.away
            } else if worker.is_overloaded() {
                found.hot += u32::from(worker.active() < worker.jobs_max());
                &mut found.busy
            } else {
                &mut found.ready
            };
            *count += 1;
        }
        Some(found)
    }
}
