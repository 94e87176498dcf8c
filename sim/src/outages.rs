//! Whole stretches of time in which the store, the roster or the bus does not work.

use crate::links::Way;
use reveille_core::time::Millis;
use reveille_store::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Store,
    Roster,
}

impl Kept {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Roster => "roster",
        }
    }

    pub fn way(self) -> Way {
        match self {
            Self::Store => Way::Store,
            Self::Roster => Way::Roster,
        }
    }
}

#[derive(Default)]
pub struct Outages(Mutex<Until>);

#[derive(Default, Clone, Copy)]
struct Until {
    store: Trouble,
    roster: Trouble,
    bus: Millis,
}

#[derive(Default, Clone, Copy)]
struct Trouble {
    unavailable: Millis,
    full: Millis,
}

impl Until {
    fn trouble(&mut self, kept: Kept) -> &mut Trouble {
        match kept {
            Kept::Store => &mut self.store,
            Kept::Roster => &mut self.roster,
        }
    }
}

impl Outages {
    fn until(&self) -> MutexGuard<'_, Until> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_away(&self, kept: Kept, until: Millis) {
        self.until().trouble(kept).unavailable = until;
    }

    pub fn is_full(&self, kept: Kept, until: Millis) {
        self.until().trouble(kept).full = until;
    }

    pub fn bus_is_away(&self, until: Millis) {
        self.until().bus = until;
    }

    pub fn end(&self) {
        *self.until() = Until::default();
    }

    pub fn on_read(&self, kept: Kept, now: Millis) -> Option<StoreError> {
        let unavailable = self.until().trouble(kept).unavailable;
        (now < unavailable).then(|| StoreError::Unavailable("the simulation says so".to_owned()))
    }

    pub fn on_write(&self, kept: Kept, now: Millis) -> Option<StoreError> {
        let full = self.until().trouble(kept).full;
        self.on_read(kept, now).or_else(|| (now < full).then_some(StoreError::Full))
    }

    pub fn on_publish(&self, now: Millis) -> bool {
        now < self.until().bus
    }
}
