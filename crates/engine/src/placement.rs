//! Where jobs go: the placement table (who is here, who holds what, who waits) and the timers of live jobs.
//!
//! Both are in memory and can be lost: jobs and the next heartbeats build them again. The table decides nothing
//! about a job; it finds destinations, and whoever changes it commits what it finds.

mod blast_radius;
mod timers;

pub use blast_radius::EligibleWorkers;
pub use timers::{Ahead, JobTimers, NotAdmitted};

use reveille_core::placement::Placement;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle; clones are the same table.
#[derive(Clone)]
pub struct PlacementTable(Arc<Inner>);

struct Inner {
    table: Mutex<Placement>,
    timers: JobTimers,
}

impl PlacementTable {
    pub fn new(table: Placement) -> Self {
        Self(Arc::new(Inner { table: Mutex::new(table), timers: JobTimers::default() }))
    }

    /// The table, for a few lines at a time and never over an await.
    pub fn lock(&self) -> MutexGuard<'_, Placement> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn timers(&self) -> &JobTimers {
        &self.0.timers
    }
}
