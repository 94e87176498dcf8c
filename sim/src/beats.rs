//! When each server was last here, as the store knows it: nobody takes anything from one that is.

use crate::invariants::InvariantResult;
use reveille_core::time::Millis;
use reveille_store::BEAT_TTL_MS;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct BeatLog(Mutex<BTreeMap<String, Vec<Millis>>>);

impl BeatLog {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Millis>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, name: &str, now: Millis) {
        self.all().entry(name.to_owned()).or_default().push(now);
    }

    /// Whether it has said more than once that it is here.
    pub fn is_known(&self, name: &str) -> bool {
        self.all().get(name).is_some_and(|beats| beats.len() > 1)
    }

    pub fn may_be_taken_from(&self, name: &str, now: Millis) -> InvariantResult {
        let last = self.all().get(name).and_then(|beats| beats.last().copied());
        let silent_ms = last.map_or(i64::MAX, |last| now.since(last));
        if silent_ms < BEAT_TTL_MS {
            return Err(format!("{name} was here {silent_ms} ms ago, and its jobs were taken from it"));
        }
        Ok(())
    }
}
