//! Whole stretches of time in which the store or the bus does not work.

use reveille_core::time::Millis;
use reveille_store::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct Outages(Mutex<Until>);

#[derive(Default, Clone, Copy)]
struct Until {
    unavailable: Millis,
    full: Millis,
    bus: Millis,
}

impl Outages {
    fn until(&self) -> MutexGuard<'_, Until> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn store_is_away(&self, until: Millis) {
        self.until().unavailable = until;
    }

    pub fn disk_is_full(&self, until: Millis) {
        self.until().full = until;
    }

    pub fn bus_is_away(&self, until: Millis) {
        self.until().bus = until;
    }

    pub fn end(&self) {
        *self.until() = Until::default();
    }

    pub fn on_read(&self, now: Millis) -> Option<StoreError> {
        (now < self.until().unavailable).then(|| StoreError::Unavailable("the simulation says so".to_owned()))
    }

    pub fn on_write(&self, now: Millis) -> Option<StoreError> {
        self.on_read(now).or_else(|| (now < self.until().full).then_some(StoreError::Full))
    }

    pub fn on_publish(&self, now: Millis) -> bool {
        now < self.until().bus
    }
}
