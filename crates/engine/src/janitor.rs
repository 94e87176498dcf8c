//! Takes out what nobody may read any more: ended jobs past their time, expired blobs.

use crate::Engine;
use std::time::Duration;

const EVERY: Duration = Duration::from_mins(1);
/// Rows of each kind per commit, so that a large clean-up never holds up a submit.
const ROWS: usize = 500;

impl Engine {
    pub(crate) async fn clean_up(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let now = self.now();
            loop {
                match self.store.prune(now - self.settings.keep_ended_ms, now, ROWS).await {
                    Ok(0) => break,
                    Ok(rows) => tracing::debug!(rows, "pruned"),
                    Err(error) => {
                        tracing::warn!(%error, "pruning failed");
                        break;
                    }
                }
            }
        }
    }
}
