//! When to look at which run again.

use crate::placement::Ahead;
use reveille_core::id::RunId;
use reveille_core::time::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The clock may be set while we sleep; so nobody sleeps for long.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct RunTimers {
    dues: Mutex<Dues>,
    changed: Notify,
}

#[derive(Default)]
struct Dues {
    by_time: BTreeSet<(Millis, RunId)>,
    by_run: BTreeMap<RunId, Millis>,
}

impl RunTimers {
    /// From now on the run is due then, or not at all.
    pub fn set(&self, run: &RunId, due: Option<Millis>) {
        let mut dues = self.dues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = dues.by_run.remove(run) {
            dues.by_time.remove(&(before, run.clone()));
        }
        if let Some(due) = due {
            dues.by_run.insert(run.clone(), due);
            dues.by_time.insert((due, run.clone()));
            if dues.by_time.first().is_some_and(|(_, first)| first == run) {
                self.changed.notify_one();
            }
        }
    }

    /// The moments that are waited for.
    pub fn ahead(&self) -> Ahead {
        let dues = self.dues.lock().unwrap_or_else(PoisonError::into_inner);
        Ahead { timers: dues.by_time.len(), next: dues.by_time.first().map(|(at, _)| *at) }
    }

    /// Runs that are due by `now`; if there are none, waits a while. A run that was handed out is due again
    /// only when somebody says so.
    pub async fn next_due(&self, now: Millis) -> Vec<RunId> {
        let (due, sleep) = {
            let mut dues = self.dues.lock().unwrap_or_else(PoisonError::into_inner);
            let mut due = Vec::new();
            while let Some((at, _)) = dues.by_time.first().filter(|(at, _)| *at <= now) {
                let _ = at;
                if let Some((_, run)) = dues.by_time.pop_first() {
                    dues.by_run.remove(&run);
                    due.push(run);
                }
            }
            let next = dues.by_time.first().map(|(at, _)| Duration::from_millis(at.since(now) as u64));
            (due, next.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP))
        };
        if due.is_empty() {
            let _ = tokio::time::timeout(sleep, self.changed.notified()).await;
        }
        due
    }
}
