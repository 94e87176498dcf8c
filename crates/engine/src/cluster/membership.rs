//! Membership: this server says every second that it is here, and hands on who has fallen silent.

use super::shared::SharedCluster;
use crate::observe::Trouble;
use reveille_store::{BEAT_MS, BEAT_TTL_MS, Members, StoreError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

const BEAT: Duration = Duration::from_millis(BEAT_MS as u64);
const BEAT_TTL: Duration = Duration::from_millis(BEAT_TTL_MS as u64);

#[derive(Default)]
pub struct ServerMembership {
    here: Mutex<Vec<String>>,
    is_cut_off: AtomicBool,
}

impl ServerMembership {
    pub fn members(&self) -> Vec<String> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::Relaxed)
    }

    fn set_members(&self, here: Vec<String>) {
        *self.here.lock().unwrap_or_else(PoisonError::into_inner) = here;
    }

    fn set_cut_off(&self, is_cut_off: bool) {
        let was = self.is_cut_off.swap(is_cut_off, Ordering::Relaxed);
        if is_cut_off && !was {
            tracing::error!("cut off from the shared store; other servers take over until it is back");
        } else if was && !is_cut_off {
            tracing::info!("the shared store is back");
        }
    }
}

impl SharedCluster {
    /// Says that this server is here, before it does anything that others would wonder about.
    pub async fn appear(&self) -> Result<(), StoreError> {
        self.store.beat(&self.about()).await.map(drop)
    }

    /// Beats until the engine ends. `members` gets who is here and who is silent; `on_return` is called when the
    /// others have taken this server for dead, and may have its jobs.
    pub async fn beat(
        self: Arc<Self>,
        members: watch::Sender<Option<Members>>,
        on_return: impl Fn() + Send + Sync,
    ) {
        let mut interval = tokio::time::interval(BEAT);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut heard, mut here_since) = (Instant::now(), Instant::now());
        loop {
            interval.tick().await;
            let seen = match self.store.beat(&self.about()).await {
                Ok(seen) => seen,
                Err(error) => {
                    let words = "the shared store is away";
                    self.observe.log(Trouble::Store, words, &self.store.name(), &error);
                    self.membership.set_cut_off(heard.elapsed() > BEAT_TTL);
                    continue;
                }
            };
            heard = Instant::now();
            self.membership.set_cut_off(false);
            if !seen.was_here {
                tracing::warn!("other servers considered this one dead; they may have taken over its jobs");
                here_since = heard;
                on_return();
            }
            self.membership.set_members(seen.here.clone());
            // Whoever was away sees everybody else as silent: they are given the time to say otherwise.
            if here_since.elapsed() >= BEAT_TTL {
                members.send_replace(Some(seen));
            }
        }
    }

    /// What operators read of this server.
    fn about(&self) -> String {
        let policy = self.runtime.rules().policy.snapshot().to_owned();
        serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "policy": policy }).to_string()
    }
}
