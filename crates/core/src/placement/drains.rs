//! Workers and pools that an operator has taken out of service.
//!
//! A drain is kept by name, so that it also holds for a worker that comes back, or joins the pool
//! later. The worker's own mark is derived from it.

use super::Placement;
use crate::fleet::{Slot, Worker};
use crate::id::JobId;
use crate::presence::{Contract, Drain, Drained};
use crate::time::Millis;

impl Placement {
    pub fn drain(&mut self, drain: Drain) {
        self.drains.insert(drain.what.clone(), drain);
        self.update_all_drained();
    }

    /// Says whether it was drained.
    pub fn undrain(&mut self, what: &Drained) -> bool {
        let was = self.drains.remove(what).is_some();
        self.update_all_drained();
        was
    }

    pub fn drains(&self) -> impl Iterator<Item = &Drain> {
        self.drains.values()
    }

    /// The drain that a worker is under: its own, or its pool's.
    pub fn drain_of(&self, worker: &Worker) -> Option<&Drain> {
        if self.drains.is_empty() || worker.contract() != Contract::Cap {
            return None;
        }
        let own = self.drains.get(&Drained::Worker(worker.id.clone()));
        own.or_else(|| {
            let pool = self.fleet.profile(worker.profile).pool.clone()?;
            self.drains.get(&Drained::Pool(pool))
        })
    }

    /// Jobs that are still at drained workers although the time for them is over. They keep their
    /// reservations until [`Placement::apply`] says what becomes of them.
    pub fn overdue_drains(&self, now: Millis) -> Vec<(Worker, Vec<JobId>)> {
        if self.drains.values().all(|drain| drain.until > now) {
            return Vec::new();
        }
        let over = |worker: &Worker| self.drain_of(worker).is_some_and(|drain| drain.until <= now);
        let held = self.held_by.iter().filter_map(|(slot, jobs)| Some((self.fleet.get(*slot)?, jobs)));
        held.filter(|(worker, _)| worker.drained && over(worker))
            .map(|(worker, jobs)| (worker.clone(), jobs.iter().cloned().collect()))
            .collect()
    }

    /// A worker's mark follows from the drains; called when it joins or changes its pool.
    pub(super) fn update_drained(&mut self, slot: Slot) {
        let Some(worker) = self.fleet.get(slot) else { return };
        let drained = self.drain_of(worker).is_some();
        if drained != worker.drained {
            self.index.update(slot, &mut self.fleet, |fleet| {
                fleet.get_mut(slot).map(|worker| worker.drained = drained)
            });
        }
    }

    fn update_all_drained(&mut self) {
        let slots: Vec<Slot> = self.fleet.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.update_drained(slot);
        }
    }
}
