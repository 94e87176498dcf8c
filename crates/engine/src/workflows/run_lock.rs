//! Servers that are at one run at once take turns.
//!
//! There are two layers, as the seed has them. Within a server a run is held by one at a time. Between servers
//! there is `cordum:wf:run:lock:<run>`, which is given back before the run is let go here. It is asked for only when somebody
//! else was seen to change the run: a commit is compared and swapped whether or not there is a lock, so the lock
//! spares tries, and nothing rests on it. A store that cannot be asked, or a holder that takes its time, is
//! therefore no reason to stand still; that is counted.

use crate::cluster::Lease;
use prometheus_client::metrics::counter::Counter;
use reveille_core::id::RunId;
use reveille_store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What stands before the run's id.
pub const LOCK: &str = "cordum:wf:run:lock:";
/// Seed 004, section 8.
pub const TTL_MS: i64 = 30_000;
/// How long to leave a run alone that another server is at, and how often.
const BUSY_PAUSE: Duration = Duration::from_millis(25);
const PAUSES_MAX: u32 = 20;

/// The runs of one server.
pub struct RunLocks {
    store: Arc<dyn Store>,
    end: CancellationToken,
    /// How often a run went on without its lock.
    fallbacks: Counter,
}

impl RunLocks {
    pub fn new(store: Arc<dyn Store>, end: CancellationToken, fallbacks: Counter) -> Self {
        Self { store, end, fallbacks }
    }

    /// Waits a while for the run to be ours. Nothing if it did not become so.
    pub async fn take(&self, run: &RunId) -> Option<Lease> {
        let name = format!("{LOCK}{run}");
        for _ in 0..PAUSES_MAX {
            match Lease::take(&self.store, &name, TTL_MS, &self.end).await {
                Ok(Some(lease)) => return Some(lease),
                Ok(None) => tokio::time::sleep(BUSY_PAUSE).await,
                Err(error) => {
                    tracing::warn!(%run, %error, "run lock not available; continuing without it");
                    break;
                }
            }
        }
        self.fallbacks.inc();
        None
    }
}
