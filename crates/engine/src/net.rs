//! The safety net under the timers: goes through the live jobs now and then, one replica at a time.
//!
//! What it looks for is the core's business; what is done about it stands in `reconciler` and `replayer`. A
//! healthy server never needs it, and the metrics say how often it was needed.

use crate::Engine;
use crate::lease::Post;
use reveille_core::job::{Job, State};
use reveille_core::reconcile::{
    BATCH, ITERATIONS_MAX, LOCK_TTL_MS, POLL_MS, RECONCILER_LOCK, REPLAYER_LOCK, TRIES_MAX,
};
use reveille_store::StoreError;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

const POLL: Duration = Duration::from_millis(POLL_MS as u64);
/// Between two tries of one job.
const PAUSE: Duration = Duration::from_secs(1);

/// The two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Net {
    /// Ends what has had its time.
    Reconciler,
    /// Moves on what stands still.
    Replayer,
}

impl Net {
    pub const ALL: [Self; 2] = [Self::Reconciler, Self::Replayer];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reconciler => "reconciler",
            Self::Replayer => "replayer",
        }
    }

    fn lock(self) -> &'static str {
        match self {
            Self::Reconciler => RECONCILER_LOCK,
            Self::Replayer => REPLAYER_LOCK,
        }
    }
}

impl Engine {
    /// One pass after another, for as long as we run.
    pub(crate) async fn keep(self, net: Net) {
        let mut post = Post::new(net.lock(), LOCK_TTL_MS, self.end());
        let mut cursor = None;
        let mut polls = tokio::time::interval_at(Instant::now() + POLL, POLL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            polls.tick().await;
            // Until everything is picked up, jobs have no timers that could have missed anything.
            if !self.is_recovered() {
                continue;
            }
            if let Err(error) = self.pass(net, &mut post, &mut cursor).await {
                self.trouble.store.tell(self.now(), "live jobs were not gone through", &net.as_str(), &error);
            }
        }
    }

    /// Goes through the jobs after `cursor`, and leaves it where the next pass goes on.
    async fn pass(&self, net: Net, post: &mut Post, cursor: &mut Option<u64>) -> Result<(), StoreError> {
        let mut found = BTreeMap::<State, u64>::new();
        for _ in 0..ITERATIONS_MAX {
            if post.hold(&self.store).await?.is_none() {
                return Ok(());
            }
            let page = self.store.live(*cursor, BATCH).await?;
            for job in page.items.iter().filter(|job| self.was_missed(net, job)) {
                // Whoever has it is here, and has its timer.
                if self.is_in_others_hands(job.id()).await? {
                    continue;
                }
                *found.entry(job.state()).or_default() += 1;
                self.catch(net, post, job).await?;
            }
            *cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        self.metrics.net.passed(net, found);
        Ok(())
    }

    fn was_missed(&self, net: Net, job: &Job) -> bool {
        match net {
            Net::Reconciler => self.is_overdue(job),
            Net::Replayer => self.is_stranded(job),
        }
    }

    /// A few tries; what does not work by then is there in the next pass too.
    async fn catch(&self, net: Net, post: &mut Post, job: &Job) -> Result<(), StoreError> {
        let (id, state) = (job.id(), job.state());
        for tried in 1..=TRIES_MAX {
            // The try before may have taken its time.
            if post.hold(&self.store).await?.is_none() {
                return Ok(());
            }
            let done = match net {
                Net::Reconciler => self.end_overdue(id).await,
                Net::Replayer => self.move_on(id).await,
            };
            match done {
                // Somebody else was quicker.
                Ok(false) => break,
                Ok(true) => {
                    tracing::warn!(job = %id, %state, net = net.as_str(), "no timer saw to this job; the net did");
                    self.metrics.caught(net, &job.request.topic);
                    break;
                }
                Err(error) if error.is_transient() && tried < TRIES_MAX => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    tracing::error!(job = %id, %state, %error, net = net.as_str(), "left for the next pass");
                    self.metrics.net.left(net);
                    break;
                }
            }
        }
        Ok(())
    }
}
