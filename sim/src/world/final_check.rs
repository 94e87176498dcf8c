//! The end of a run: everything has time to settle, and then every promise is looked at once more.

use super::{World, sleep_ms};
use crate::flows::history::FlowHistory;
use crate::flows::reference;
use crate::invariants::InvariantResult;
use crate::watch::views;
use reveille_core::audit::Status;
use reveille_core::job::Job;
use reveille_core::time::Millis;
use reveille_engine::Engine;
use reveille_store::workflows::WorkflowStore;
use reveille_store::{JobQuery, JobStore, PAGE_LEN_MAX, StoreError, verify_chain};
use std::sync::Arc;

/// How long the last messages may still be on their way when everything seems over.
const AFTERMATH_MS: i64 = 60_000;

/// The same where several servers share the work: each looks at its own jobs at least once in five minutes, and finds
/// what nobody has told it.
const AFTERMATH_SHARED_MS: i64 = 330_000;

const AGREES_TRIES: usize = 20;
const AGREES_MS: i64 = 500;

impl World {
    /// Waits until every job has ended, as long as that may take, and for what is still on its way.
    pub(super) async fn settle(&self) {
        let end = self.now() + self.plan.patience_ms();
        let is_settled = || {
            let jobs = self.ledger().live.is_empty() && self.network.stream.is_empty();
            jobs && self.read_flow_history(FlowHistory::is_settled)
        };
        while self.now() < end && !is_settled() {
            sleep_ms(2_000).await;
        }
        sleep_ms(if self.plan.is_shared() { AFTERMATH_SHARED_MS } else { AFTERMATH_MS }).await;
    }

    pub(super) async fn judge(&self) -> InvariantResult {
        let stored = self.stored().await.map_err(|error| error.to_string())?;
        self.ledger().settled(&stored)?;
        self.runs_are_as_foreseen().await?;
        self.trail_is_whole().await?;
        self.look_up(|archive| archive.settled(|id| self.ledger().job(id).cloned()))?;
        for id in self.delegation_log(|log| log.acknowledged()) {
            if self.look_up(|archive| archive.row_of(&id).is_none()) {
                return Err(format!("{id} was taken as a delegation and is kept nowhere"));
            }
        }
        for server in self.servers() {
            let (engine, life) = server.engine().ok_or("a server did not come back")?;
            floor_is_empty(&engine).map_err(|words| format!("{}: {words}", life.name()))?;
            self.comes_to_agree(&engine).await.map_err(|words| format!("{}: {words}", life.name()))?;
        }
        if !self.network.stream.is_empty() {
            return Err("packets are kept that nobody has dealt with".to_owned());
        }
        Ok(())
    }

    /// What is stored of every run is what was committed, and that is what the reference says.
    async fn runs_are_as_foreseen(&self) -> InvariantResult {
        let Some(plan) = &self.plan.flows else { return Ok(()) };
        let runs = self.read_flow_history(|history| history.runs.clone());
        for (id, run) in &runs {
            let stored = self.flows.run(id).await.map_err(|error| error.to_string())?;
            if stored.as_ref() != Some(run) {
                return Err(format!("the run {id} is not stored as it was committed"));
            }
        }
        let live = self.flows.live(None, PAGE_LEN_MAX).await.map_err(|error| error.to_string())?;
        if let Some(id) = live.items.first() {
            return Err(format!("the run {id} is still said to owe something"));
        }
        let due = self.flows.due(Millis(i64::MAX), 1).await.map_err(|error| error.to_string())?;
        if let Some(id) = due.first() {
            return Err(format!("the run {id} is over and a timer of it is left"));
        }
        let compared = self.read_flow_history(|history| reference::compare(plan, history))?;
        self.compared.get_or_init(|| compared);
        Ok(())
    }

    /// Things go on changing, and a server hears of it a moment later.
    async fn comes_to_agree(&self, engine: &Engine) -> InvariantResult {
        for _ in 0..AGREES_TRIES {
            if views::agree(self, engine).is_ok() {
                return Ok(());
            }
            sleep_ms(AGREES_MS).await;
        }
        views::agree(self, engine)
    }

    /// Every decision that was committed is in the trail of its tenant, once.
    async fn trail_is_whole(&self) -> InvariantResult {
        let decided = self.ledger().decisions();
        for (tenant, decisions) in decided {
            let found =
                verify_chain(&self.store, &tenant, u64::MAX).await.map_err(|error| error.to_string())?;
            if found.status == Status::Broken {
                return Err(format!("the audit trail of {tenant} is broken: {:?}", found.gaps));
            }
            let entries = found.retention_boundary_seq - 1 + found.total_events;
            let recorded = entries - self.ledger().records_of(&tenant);
            if recorded != decisions {
                return Err(format!("{tenant} saw {decisions} decisions and {recorded} are recorded"));
            }
        }
        Ok(())
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
fn floor_is_empty(engine: &Engine) -> InvariantResult {
    for view in engine.fleet().workers() {
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
