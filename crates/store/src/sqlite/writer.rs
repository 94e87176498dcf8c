//! The writer: one thread that owns the only connection that changes the file.
//!
//! It commits in groups. Whatever was queued while the last group was written to disk is the next one, so that under
//! load one sync covers many changes and an idle store answers after a single one. A change is answered when its
//! group is on disk, never before.
//!
//! When a group fails (most likely because the disk is full), nothing of it stays, and its changes are retried one by
//! one: a small one may fit where a large one did not. The writer never gives up; the next group may find space
//! again.

use super::cache::Caches;
use super::change::{Applied, ChangeOutcome, SqliteChange, Work};
use super::open::BUSY_WAIT;
use super::queue::{QueueItems, WorkQueue};
use super::rows::store_error;
use super::stats::Counters;
use super::tables::Tables;
use crate::StoreError;
use rusqlite::{Connection, Result as SqlResult, Statement};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Changes that may wait; beyond that their callers do.
const QUEUE_LEN_MAX: usize = 4096;
/// Changes in one commit.
const GROUP_LEN_MAX: usize = 512;
/// After this long without work, the writer does its housekeeping.
const IDLE: Duration = Duration::from_secs(1);
/// A log larger than this is checkpointed into the file when there is time.
const IDLE_LOG_LEN_MAX: u64 = 4 * 1024 * 1024;

/// The handle. Dropping it waits until everything queued is on disk and the log is checkpointed.
pub(super) struct Writer {
    queue: Arc<WorkQueue<Work>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(
        connection: Connection,
        log: PathBuf,
        caches: Arc<Caches>,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let queue = Arc::new(WorkQueue::new(QUEUE_LEN_MAX));
        let taker = Abandon(Arc::clone(&queue));
        let work = move || {
            let outcome = run(&connection, &taker.0, &log, &caches, &counters);
            if let Err(error) = outcome {
                tracing::error!(%error, "the store's writer could not start");
            }
        };
        let thread = std::thread::Builder::new().name("store-writer".to_owned()).spawn(work)?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Makes a change durable.
    pub async fn write(&self, change: SqliteChange) -> Result<ChangeOutcome, StoreError> {
        let (answer, answered) = oneshot::channel();
        let stopped = || StoreError::Unavailable("its writer has stopped".to_owned());
        self.queue.push(Work { change, answer }).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's writer had panicked");
        }
    }
}

/// Ensures that nobody waits for a thread that is gone, however it ended.
struct Abandon(Arc<WorkQueue<Work>>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn run(
    connection: &Connection,
    queue: &WorkQueue<Work>,
    log: &PathBuf,
    caches: &Caches,
    counters: &Counters,
) -> SqlResult<()> {
    let mut group = CommitGroup {
        connection,
        tables: Tables::prepare(connection)?,
        begin: connection.prepare("BEGIN IMMEDIATE")?,
        commit: connection.prepare("COMMIT")?,
        caches,
        counters,
        is_failing: false,
    };
    loop {
        match queue.take(GROUP_LEN_MAX, IDLE) {
            QueueItems::Items(works) => group.settle(works),
            QueueItems::Idle => {
                if std::fs::metadata(log).is_ok_and(|metadata| metadata.len() > IDLE_LOG_LEN_MAX) {
                    carry_over(connection);
                }
            }
            QueueItems::Closed => break,
        }
    }
    carry_over(connection);
    Ok(())
}

struct CommitGroup<'a> {
    connection: &'a Connection,
    tables: Tables<'a>,
    begin: Statement<'a>,
    commit: Statement<'a>,
    caches: &'a Caches,
    counters: &'a Counters,
    is_failing: bool,
}

impl CommitGroup<'_> {
    /// Commits and answers.
    fn settle(&mut self, works: Vec<Work>) {
        match self.commit(&works) {
            Ok(applied) => self.answer(works, applied),
            Err(error) if works.len() == 1 => {
                let error = store_error(&error);
                self.note_failure(&error);
                for work in works {
                    // The caller may have stopped waiting.
                    let _ = work.answer.send(Err(error.clone()));
                }
            }
            Err(_) => works.into_iter().for_each(|work| self.settle(vec![work])),
        }
    }

    fn commit(&mut self, works: &[Work]) -> SqlResult<Vec<Applied>> {
        let outcome = self.try_commit(works);
        if outcome.is_err() {
            self.roll_back();
            self.tables.chains.rolled_back();
        }
        outcome
    }

    fn try_commit(&mut self, works: &[Work]) -> SqlResult<Vec<Applied>> {
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        self.begin.execute([])?;
        let mut applied = Vec::with_capacity(works.len());
        for work in works {
            applied.push(self.tables.apply(&work.change)?);
        }
        self.tables.chains.seal()?;
        self.commit.execute([])?;
        self.tables.chains.committed();
        Ok(applied)
    }

    /// SQLite may have rolled back by itself already.
    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "the store could not roll back; it will try again");
        }
    }

    fn answer(&mut self, works: Vec<Work>, applied: Vec<Applied>) {
        if self.is_failing {
            self.is_failing = false;
            tracing::info!("the store can write again");
        }
        self.counters.count_commit(works.len());
        self.caches.remember(works.iter().map(|work| &work.change).zip(&applied));
        for (work, applied) in works.into_iter().zip(applied) {
            // The caller may have stopped waiting.
            let _ = work.answer.send(Ok(applied.outcome));
        }
    }

    /// Logs it once, not for every change during an outage. A refusal is not a failure.
    fn note_failure(&mut self, error: &StoreError) {
        if !self.is_failing && !matches!(error, StoreError::Refused(_)) {
            self.is_failing = true;
            tracing::error!(%error, "the store cannot write");
        }
    }
}

/// Checkpoints the log into the file and empties it, unless a reader prevents that.
fn carry_over(connection: &Connection) {
    let checkpoint = || {
        connection.busy_timeout(Duration::ZERO)?;
        let outcome = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        connection.busy_timeout(BUSY_WAIT)?;
        outcome
    };
    if let Err(error) = checkpoint() {
        tracing::warn!(%error, "the store's log could not be carried over; it stays until the next time");
    }
}
