//! What can come between one server and everything else: it is cut from the store, from the roster or from the
//! bus while the others are not, or it stands still as a stopped process does.

use reveille_core::time::Millis;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What a server is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependency {
    Store,
    Roster,
    Bus,
}

/// The ways of one server that lead nowhere.
#[derive(Default)]
pub struct Links(Mutex<LinkState>);

#[derive(Default)]
struct LinkState {
    ways: Vec<Dependency>,
    /// Since when the server hears nothing.
    deaf_since: Option<Millis>,
}

impl Links {
    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn cut(&self, ways: &[Dependency]) {
        self.state().ways.extend(ways);
    }

    pub fn heal(&self) {
        self.state().ways.clear();
    }

    pub fn leads(&self, way: Dependency) -> bool {
        !self.state().ways.contains(&way)
    }

    pub fn are_whole(&self) -> bool {
        self.state().ways.is_empty()
    }

    /// Notes whether the server hears anything now. Says for how long it was unreachable when that is over.
    pub fn note_hearing(&self, hears: bool, now: Millis) -> Option<i64> {
        let mut state = self.state();
        if hears {
            return state.deaf_since.take().map(|since| now.since(since));
        }
        state.deaf_since.get_or_insert(now);
        None
    }
}

/// Nobody of a stopped server gets past it.
#[derive(Default)]
pub struct PauseGate {
    is_shut: AtomicBool,
    opened: Notify,
}

impl PauseGate {
    pub fn shut(&self) {
        self.is_shut.store(true, Ordering::Relaxed);
    }

    pub fn open(&self) {
        self.is_shut.store(false, Ordering::Relaxed);
        self.opened.notify_waiters();
    }

    pub fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::Relaxed)
    }

    pub async fn pass(&self) {
        loop {
            let opened = self.opened.notified();
            if !self.is_shut() {
                return;
            }
            opened.await;
        }
    }
}
