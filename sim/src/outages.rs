//! Whole stretches of time in which the store, the roster or the bus does not work.

use crate::links::Dependency;
use reveille_core::time::Millis;
use reveille_store::{DISK_FULL, StoreError};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Store,
    Roster,
}

impl Backend {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Roster => "roster",
        }
    }

    pub fn way(self) -> Dependency {
        match self {
            Self::Store => Dependency::Store,
            Self::Roster => Dependency::Roster,
        }
    }
}

#[derive(Default)]
pub struct Outages(Mutex<OutageState>);

#[derive(Default, Clone, Copy)]
struct OutageState {
    store: Outage,
    roster: Outage,
    bus: Millis,
}

#[derive(Default, Clone, Copy)]
struct Outage {
    unavailable: Millis,
    full: Millis,
}

impl OutageState {
    fn trouble(&mut self, kept: Backend) -> &mut Outage {
        match kept {
            Backend::Store => &mut self.store,
            Backend::Roster => &mut self.roster,
        }
    }
}

impl Outages {
    fn until(&self) -> MutexGuard<'_, OutageState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_away(&self, kept: Backend, until: Millis) {
        self.until().trouble(kept).unavailable = until;
    }

    pub fn is_full(&self, kept: Backend, until: Millis) {
        self.until().trouble(kept).full = until;
    }

    pub fn bus_is_away(&self, until: Millis) {
        self.until().bus = until;
    }

    pub fn end(&self) {
        *self.until() = OutageState::default();
    }

    pub fn on_read(&self, kept: Backend, now: Millis) -> Option<StoreError> {
        let unavailable = self.until().trouble(kept).unavailable;
        (now < unavailable).then(|| StoreError::Unavailable("the simulation says so".to_owned()))
    }

    pub fn on_write(&self, kept: Backend, now: Millis) -> Option<StoreError> {
        let full = self.until().trouble(kept).full;
        self.on_read(kept, now).or_else(|| (now < full).then_some(StoreError::Full(DISK_FULL)))
    }

    pub fn on_publish(&self, now: Millis) -> bool {
        now < self.until().bus
    }
}
