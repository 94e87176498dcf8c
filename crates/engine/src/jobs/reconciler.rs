//! The reconciler under the timers: goes through the live jobs every 30 s, on one server at a time.
//!
//! What it looks for is the core's business; what is done about it stands in `overdue` and `stuck`. A
//! healthy server never needs it, and the metrics say how often it was needed.

mod overdue;
mod stuck;

use super::Jobs;
use crate::cluster::LeaderLease;
use crate::observe::Trouble;
use crate::observe::metrics::Sweep;
use crate::runtime::RETRY_PAUSE;
use reveille_core::job::{Job, State};
use reveille_core::reconcile::{
    BATCH, ITERATIONS_MAX, LOCK_TTL_MS, POLL_MS, RECONCILER_LOCK, REPLAYER_LOCK, TRIES_MAX,
};
use reveille_store::StoreError;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

const POLL: Duration = Duration::from_millis(POLL_MS as u64);

fn lock_of(sweep: Sweep) -> &'static str {
    match sweep {
        Sweep::Reconciler => RECONCILER_LOCK,
        Sweep::Replayer => REPLAYER_LOCK,
    }
}

impl Jobs {
    /// One pass after another, for as long as we run.
    pub(crate) async fn reconcile(self, sweep: Sweep) {
        let mut lease = LeaderLease::new(lock_of(sweep), LOCK_TTL_MS, self.runtime.end());
        let mut cursor = None;
        let mut polls = tokio::time::interval_at(Instant::now() + POLL, POLL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            polls.tick().await;
            // Until everything is picked up, jobs have no timers that could have missed anything.
            if !self.runtime.is_recovered() {
                continue;
            }
            if let Err(error) = self.pass(sweep, &mut lease, &mut cursor).await {
                self.observe.log(Trouble::Store, "reconciler pass failed", &sweep.as_str(), &error);
            }
        }
    }

    /// Goes through the jobs after `cursor`, and leaves it where the next pass goes on.
    async fn pass(
        &self,
        sweep: Sweep,
        lease: &mut LeaderLease,
        cursor: &mut Option<u64>,
    ) -> Result<(), StoreError> {
        let mut found = BTreeMap::<State, u64>::new();
        for _ in 0..ITERATIONS_MAX {
            if lease.hold(&self.store).await?.is_none() {
                return Ok(());
            }
            let page = self.store.live(*cursor, BATCH).await?;
            for job in page.items.iter().filter(|job| self.was_missed(sweep, job)) {
                // Whoever has it is here, and has its timer.
                if self.is_in_others_hands(job.id()).await? {
                    continue;
                }
                *found.entry(job.state()).or_default() += 1;
                self.catch(sweep, lease, job).await?;
            }
            *cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        self.observe.metrics().reconciler().passed(sweep, found);
        Ok(())
    }

    fn was_missed(&self, sweep: Sweep, job: &Job) -> bool {
        match sweep {
            Sweep::Reconciler => self.is_overdue(job),
            Sweep::Replayer => self.is_stuck(job),
        }
    }

    /// A few tries; what does not work by then is there in the next pass too.
    async fn catch(&self, sweep: Sweep, lease: &mut LeaderLease, job: &Job) -> Result<(), StoreError> {
        let (id, state) = (job.id(), job.state());
        for tried in 1..=TRIES_MAX {
            // The try before may have taken its time.
            if lease.hold(&self.store).await?.is_none() {
                return Ok(());
            }
            let done = match sweep {
                Sweep::Reconciler => self.end_overdue(id).await,
                Sweep::Replayer => self.move_on(id).await,
            };
            match done {
                // Somebody else was quicker.
                Ok(false) => break,
                Ok(true) => {
                    tracing::warn!(job = %id, %state, sweep = sweep.as_str(), "timer missed, reconciler acted");
                    self.observe.metrics().caught(sweep, &job.request.topic);
                    break;
                }
                Err(error) if error.is_transient() && tried < TRIES_MAX => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => {
                    tracing::error!(job = %id, %state, %error, sweep = sweep.as_str(), "reconciler failed; left for the next pass");
                    self.observe.metrics().reconciler().left(sweep);
                    break;
                }
            }
        }
        Ok(())
    }
}
