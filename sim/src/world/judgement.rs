//! The end of a run: everything has time to settle, and then every promise is looked at once more.

use super::{World, sleep_ms};
use crate::invariants::Verdict;
use reveille_core::job::Job;
use reveille_engine::Engine;
use reveille_store::{JobQuery, PAGE_LEN_MAX, Store, StoreError};
use std::sync::Arc;

/// How long the last messages may still be on their way when everything seems over.
const AFTERMATH_MS: i64 = 60_000;

impl World {
    /// Waits until every job has ended, as long as that may take, and for what is still on its way.
    pub(super) async fn settle(&self) {
        let end = self.now() + self.plan.patience_ms();
        while self.now() < end && !self.ledger().live.is_empty() {
            sleep_ms(2_000).await;
        }
        sleep_ms(AFTERMATH_MS).await;
    }

    pub(super) async fn judge(&self) -> Verdict {
        let stored = self.stored().await.map_err(|error| error.to_string())?;
        self.ledger().settled(&stored)?;
        self.look_up(|archive| archive.settled(|id| self.ledger().job(id).map(|job| job.state())))?;
        for id in self.post(|post| post.acknowledged()) {
            if self.look_up(|archive| archive.row_of(&id).is_none()) {
                return Err(format!("{id} was taken as a delegation and is kept nowhere"));
            }
        }
        let (engine, _) = self.server.engine().ok_or("the server did not come back")?;
        floor_is_empty(&engine)
    }

    async fn stored(&self) -> Result<Vec<Arc<Job>>, StoreError> {
        let mut query = JobQuery { limit: PAGE_LEN_MAX, ..JobQuery::default() };
        let mut jobs = Vec::new();
        loop {
            let page = self.store.jobs(&query).await?;
            jobs.extend(page.items);
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => return Ok(jobs),
            }
        }
    }
}

/// Nobody holds anything and nothing waits.
fn floor_is_empty(engine: &Engine) -> Verdict {
    for view in engine.workers() {
        if view.worker.held != 0 {
            return Err(format!(
                "{} is said to hold {} jobs and all have ended",
                view.worker.id, view.worker.held
            ));
        }
    }
    let page = engine.metrics_page();
    let live = page.lines().find_map(|line| line.strip_prefix("cordum_scheduler_live_jobs "));
    match live {
        Some("0") => Ok(()),
        other => Err(format!("all jobs have ended and the floor has {other:?}")),
    }
}
