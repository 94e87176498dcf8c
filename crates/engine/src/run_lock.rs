//! One thing at a time for one run of a workflow, in this process and in all that share the store.
//!
//! There are two layers, as the seed has them. The turn is in memory and comes first, so that within one server
//! nobody asks the store in vain. The lock (`cordum:wf:run:lock:<run>`) keeps other servers away and is given
//! back before the turn. A run whose lock another server has is waited for. A store that cannot be asked is no
//! reason to stand still: the turn alone must do then, which is counted, and a commit is compared and swapped
//! whether or not there is a lock.

use crate::Engine;
use crate::lease::Lease;
use crate::turns::{Turn, Turns};
use prometheus_client::metrics::counter::Counter;
use reveille_core::id::RunId;
use reveille_store::{Lock, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Seed 004, section 8.
pub(crate) const TTL_MS: i64 = 30_000;
/// How long to leave a run alone that another server is at.
const BUSY_PAUSE: Duration = Duration::from_millis(25);

/// The runs of one server.
pub struct RunLocks {
    store: Arc<dyn Store>,
    turns: Turns,
    end: CancellationToken,
    /// How often the turn alone had to do.
    fallbacks: Counter,
}

/// A run that is ours.
pub struct RunTurn<'a> {
    /// Nothing if the store could not be asked. It goes before the turn.
    lease: Option<Lease>,
    _turn: Turn<'a>,
}

impl Engine {
    /// For the one that runs workflows here.
    pub fn run_locks(&self) -> RunLocks {
        RunLocks::new(self.store.clone(), self.end(), self.metrics.run_lock_fallbacks())
    }
}

impl RunLocks {
    pub fn new(store: Arc<dyn Store>, end: CancellationToken, fallbacks: Counter) -> Self {
        Self { store, turns: Turns::default(), end, fallbacks }
    }

    /// Does something with a run that is ours, and gives the run back.
    pub async fn with<T>(&self, run: &RunId, work: impl AsyncFnOnce(&RunTurn<'_>) -> T) -> T {
        let turn = self.take(run).await;
        let done = work(&turn).await;
        turn.give_back().await;
        done
    }

    /// Waits until the run is ours.
    pub async fn take(&self, run: &RunId) -> RunTurn<'_> {
        let turn = self.turns.take(run).await;
        let name = format!("cordum:wf:run:lock:{run}");
        loop {
            match Lease::take(&self.store, &name, TTL_MS, &self.end).await {
                Ok(Some(lease)) => return RunTurn { lease: Some(lease), _turn: turn },
                Ok(None) => tokio::time::sleep(BUSY_PAUSE).await,
                Err(error) => {
                    tracing::warn!(%run, %error, "a run goes on without its lock");
                    self.fallbacks.inc();
                    return RunTurn { lease: None, _turn: turn };
                }
            }
        }
    }
}

impl RunTurn<'_> {
    /// For what is committed meanwhile; nothing where the turn alone must do.
    pub fn lock(&self) -> Option<&Lock> {
        self.lease.as_ref().map(Lease::lock)
    }

    /// Returns when the lock is lost; never where there is none.
    pub async fn lost(&self) {
        match &self.lease {
            Some(lease) => lease.lost().await,
            None => std::future::pending().await,
        }
    }

    pub async fn give_back(self) {
        let Self { lease, _turn: turn } = self;
        if let Some(lease) = lease {
            lease.release().await;
        }
        drop(turn);
    }
}
