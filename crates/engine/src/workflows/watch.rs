//! Looking after runs: when their time comes, when their server is gone, and for those who wait for one.

use super::RunError;
use super::Workflows;
use super::open_runs::OpenRun;
use crate::observe::Trouble;
use crate::runtime::RETRY_PAUSE;
use reveille_core::flow::{Run, RunEvent};
use reveille_core::id::RunId;
use reveille_core::time::Millis;
use reveille_store::StoreError;
use reveille_store::workflows::RunQuery;
use std::time::Duration;

/// Runs read at once.
const PAGE: usize = 200;
/// How often to look for runs that are late, where there are several servers.
const LOOK: Duration = Duration::from_millis(500);
/// The server that is to look at a run is given this long; with `LOOK` it makes less than a second.
const LATE_MS: i64 = 250;
/// A server that is dead for longer than this has been noticed, and its last words are told.
const ENDED_LATELY_MS: i64 = 60_000;
/// Whoever waits for a run looks this often, should the message of another server be lost.
const LOOK_AT_RUN_MS: i64 = 2_000;

impl Workflows {
    /// Looks at the clock for runs, for as long as the engine runs.
    pub(crate) async fn run_timers(self) {
        loop {
            let due = self.runs.timers.next_due(self.runtime.now()).await;
            self.runs_are_due(due);
        }
    }

    /// Forgets what nobody asks for, and looks for runs whose time has come while their server is away.
    pub(crate) async fn watch(self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let now = self.runtime.now();
            self.runs.close_idle(now);
            if !self.cluster.others_may_act() {
                continue;
            }
            match self.store.due(now + -LATE_MS, PAGE).await {
                Ok(due) => self.runs_are_due(due),
                Err(error) => {
                    let words = "late runs not read";
                    self.observe.log(Trouble::Store, words, &"cordum:wf:delay:timers", &error);
                }
            }
        }
    }

    fn runs_are_due(&self, due: Vec<RunId>) {
        for id in due {
            let workflows = self.clone();
            self.runtime.spawn(async move { workflows.drive_run_on(&id, &RunEvent::Time).await });
        }
    }

    /// After a start, and whenever a server is gone: every run that owes something goes on where it stands. However
    /// many servers go at once, the runs are gone through once more, and not once for each.
    pub(crate) async fn recover(self) {
        loop {
            self.pick_up_runs().await;
            self.runs.left_behind.notified().await;
        }
    }

    async fn pick_up_runs(&self) {
        let (mut cursor, mut found) = (None, 0);
        loop {
            let read = || self.store.live(cursor, PAGE);
            let page = self.observe.insist(Trouble::Store, "runs not read; retrying", &"runs", read).await;
            for id in &page.items {
                found += 1;
                self.pick_up_run(id).await;
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        if found > 0 {
            tracing::info!(runs = found, "runs picked up");
        }
        if self.cluster.others_may_act() {
            self.publish_ended_runs().await;
        }
    }

    /// A run that ended while its server died may be one that nobody was told of. One server alone need not tell:
    /// whoever watches it starts afresh with it.
    async fn publish_ended_runs(&self) {
        let updated_after = Some(self.runtime.now() - ENDED_LATELY_MS);
        let mut query = RunQuery { updated_after, limit: PAGE, ..RunQuery::default() };
        loop {
            let words = "ended runs not read; retrying";
            let page = self.observe.insist(Trouble::Store, words, &"runs", || self.store.runs(&query)).await;
            let ended = page.items.iter().filter(|head| head.state.is_terminal());
            ended.for_each(|head| self.publish_run_again(head));
            query.cursor = page.next;
            if page.next.is_none() {
                return;
            }
        }
    }

    /// Finds out whether a change of a run counted that was not answered.
    pub(super) async fn resolve_in_doubt(self, id: RunId) {
        loop {
            let slot = self.runs.slot(&id);
            let mut open = slot.lock().await;
            if !open.is_unsure {
                return;
            }
            let is_live = match self.hold(&mut open, &id).await {
                Ok(loaded) => loaded.run.is_live(),
                Err(RunError::Store(error)) if error.is_transient() => {
                    let words = "run change still in doubt; retrying";
                    self.observe.log(Trouble::Store, words, &id, &error);
                    drop(open);
                    tokio::time::sleep(RETRY_PAUSE).await;
                    continue;
                }
                Err(_) => false,
            };
            if !is_live {
                *open = OpenRun::default();
                drop(open);
                self.runs.close(&id);
            }
            return;
        }
    }

    /// Reads a run again and sends off whatever it owes.
    pub(super) async fn pick_up_run(&self, id: &RunId) {
        let picked_up =
            self.observe.until_answered("run not read; retrying", id, || self.try_pick_up(id)).await;
        if let Err(error) = picked_up {
            tracing::error!(run = %id, %error, "run unreadable; left alone");
        }
    }

    async fn try_pick_up(&self, id: &RunId) -> Result<(), StoreError> {
        let slot = self.runs.slot(id);
        let mut open = slot.lock().await;
        let Some(loaded) = self.load_run(id).await? else {
            *open = OpenRun::default();
            drop(open);
            self.runs.close(id);
            return Ok(());
        };
        let is_ahead = loaded.run.head.is_ahead(self.runtime.now());
        self.act_on_all(&loaded);
        if self.cluster.others_may_act() && !loaded.run.head.state.is_terminal() {
            self.publish_run_again(&loaded.run.head);
        }
        open.take(loaded, self.runtime.now());
        drop(open);
        if is_ahead {
            // The clock was set back while nobody looked: its moments are brought into our time.
            self.drive_run_on(id, &RunEvent::Time).await;
        }
        Ok(())
    }

    /// A run as it stands, once it is over or the time is.
    pub async fn run_after(&self, id: &RunId, until: Millis) -> Result<Option<Run>, StoreError> {
        let waiter = self.waiters.register(id);
        loop {
            let woken = waiter.woken();
            let Some(run) = self.store.run(id).await? else { return Ok(None) };
            let left = until.since(self.runtime.now());
            if run.head.state.is_terminal() || left == 0 || self.runtime.is_draining() {
                return Ok(Some(run));
            }
            let left = if self.cluster.others_may_act() { left.min(LOOK_AT_RUN_MS) } else { left };
            let _ = tokio::time::timeout(Duration::from_millis(left as u64), woken).await;
        }
    }
}
