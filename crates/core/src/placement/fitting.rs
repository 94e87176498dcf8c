//! Of the workers that fit a waiting job: how many are busy, drained or away. It looks at every worker, for
//! when an operator asks why; in parts, so that a large fleet is not held up meanwhile.

use super::{Placement, Reservation};
use crate::fleet::{Fleet, Worker};
use crate::id::JobId;
use crate::placement::Selector;
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
    /// Heard, and fit but for their grant: they do not serve such jobs of this tenant.
    pub barred: u32,
    /// Heard, and nobody knows which topics they serve.
    pub unannounced: u32,
}

impl Placement {
    /// Which workers a waiting job is for.
    pub fn selector_of(&self, job: &JobId) -> Option<&Selector> {
        let Reservation::Waiting { lane, .. } = self.reservations.get(job)? else { return None };
        Some(&self.index.lane(*lane).selector)
    }
}

impl Fitting {
    /// Counts one part of the fleet, and says whether there was such a part.
    pub fn add_part(&mut self, fleet: &Fleet, part: usize, selector: &Selector) -> bool {
        let Some(workers) = fleet.part(part) else { return false };
        workers.for_each(|worker| self.add_worker(fleet, worker, selector));
        true
    }

    fn add_worker(&mut self, fleet: &Fleet, worker: &Worker, selector: &Selector) {
        let profile = fleet.profile(worker.profile);
        let count = if !selector.fits(profile) {
            let is_unannounced = worker.contract() == Contract::Cap && profile.topics.is_empty();
            self.unannounced += u32::from(is_unannounced && worker.is_online());
            self.barred += u32::from(worker.is_online() && selector.fits_whoever_owns_it(profile));
            return;
        } else if worker.drained {
            &mut self.drained
        } else if !worker.is_online() {
            &mut self.away
        } else if worker.is_overloaded() {
            self.hot += u32::from(worker.active() < worker.jobs_max());
            &mut self.busy
        } else {
            &mut self.ready
        };
        *count += 1;
    }
}
