//! The audit writer: the one task that records in the audit trail what belongs to no job.
//!
//! What belongs to a job is recorded by the commit that changes it. Policies and keys are not in the
//! store, so their entries come after them, in order, and a store that fails is tried again. What a
//! process owed when it died is found by looking, at the next start: is the policy in force the one that
//! was recorded last, and has every change of a key its entry?
//!
//! Several servers read the same files and the same keys. Each looks, under a lock, whether another has recorded it.

mod acts;
mod keys;
mod policy;

pub use acts::Unrecorded;
pub use keys::{created, revoked};

use super::Observe;
use crate::locks::SharedLocks;
use crate::runtime::Runtime;
use acts::RecentEntries;
use reveille_core::audit::Draft;
use reveille_roster::KeyRecord;
use reveille_store::{AuditQuery, Lock, Store, StoreError};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Entries that may wait while the store fails.
const PENDING_MAX: usize = 1_024;
/// How long whoever changed a key waits for the entry, which comes in any case.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long one server may take over an entry while the others wait.
pub(crate) const LOCK: &str = "cordum:audit:writer";
const LOCK_MS: i64 = 10_000;
/// An entry whose answer was lost is among so many of its kind, newest first.
const LOOK_BACK: usize = 100;

/// A handle; clones are the same writer.
#[derive(Clone)]
pub struct AuditWriter(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    observe: Observe,
    store: Arc<dyn Store>,
    locks: SharedLocks,
    writes: mpsc::Sender<PendingWrite>,
    /// Files that were refused and recorded.
    refused: Mutex<BTreeSet<String>>,
    recent: RecentEntries,
}

/// The far end, until the task takes it.
pub struct PendingWrites(mpsc::Receiver<PendingWrite>);

struct PendingWrite {
    /// Nothing, for whoever only waits until the others are done.
    draft: Option<Draft>,
    done: oneshot::Sender<()>,
}

/// What was in force and who had a key when the server started.
pub struct AtStart {
    pub snapshot: String,
    pub keys: Vec<KeyRecord>,
}

impl AuditWriter {
    pub fn new(runtime: Runtime, observe: Observe, store: Arc<dyn Store>) -> (Self, PendingWrites) {
        let (writes, receiver) = mpsc::channel(PENDING_MAX);
        let locks = SharedLocks::new(&store);
        let inner = Inner {
            runtime,
            observe,
            store,
            locks,
            writes,
            refused: Mutex::default(),
            recent: RecentEntries::default(),
        };
        (Self(Arc::new(inner)), PendingWrites(receiver))
    }

    /// Returns when the entry is durable; if that takes long, before. The same within a millisecond, here or at two
    /// servers, is one entry.
    pub async fn record(&self, draft: Draft) {
        self.send(Some(draft)).await;
    }

    /// Returns when everything before is recorded; if that takes long, before.
    pub async fn finish(&self) {
        self.send(None).await;
    }

    async fn send(&self, draft: Option<Draft>) {
        let (done, answered) = oneshot::channel();
        let asked = async {
            // The channel closes only with the engine, and what is owed then is found at the next start.
            if self.0.writes.send(PendingWrite { draft, done }).await.is_ok() {
                let _ = answered.await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, asked).await;
    }

    /// For those who cannot wait.
    fn record_later(&self, draft: Draft) {
        let write = PendingWrite { draft: Some(draft), done: oneshot::channel().0 };
        if let Err(error) = self.0.writes.try_send(write) {
            tracing::error!(%error, "audit entry lost: too many are waiting");
        }
    }

    /// Writes what is owed from before the start, and then whatever comes.
    pub async fn run(self, mut writes: PendingWrites, start: AtStart) {
        if let Some(draft) = self.insist(|| self.unrecorded_policy(&start.snapshot)).await.flatten() {
            self.append(&draft).await;
        }
        for draft in self.insist(|| self.unrecorded_keys(&start.keys)).await.unwrap_or_default() {
            self.append(&draft).await;
        }
        while let Some(PendingWrite { draft, done }) = writes.0.recv().await {
            if let Some(draft) = draft {
                self.append(&draft).await;
            }
            // Whoever asked may have stopped waiting.
            let _ = done.send(());
        }
    }

    async fn append(&self, draft: &Draft) {
        self.insist(|| self.append_once(draft)).await;
    }

    async fn append_once(&self, draft: &Draft) -> Result<(), StoreError> {
        let locks = &self.0.locks;
        loop {
            let lock = locks.take(LOCK, LOCK_MS).await?;
            let done = self.append_unless_there(draft, lock.as_ref()).await;
            locks.release(lock).await;
            if done? {
                return Ok(());
            }
        }
    }

    /// A store that says it failed may have written the entry all the same, and another server the same entry. Says no
    /// if the lock has lapsed since: then another may be writing it now.
    async fn append_unless_there(&self, draft: &Draft, lock: Option<&Lock>) -> Result<bool, StoreError> {
        let query = AuditQuery {
            tenant: Some(draft.tenant.clone()),
            event_type: Some(draft.event_type),
            limit: LOOK_BACK,
            ..AuditQuery::default()
        };
        let page = self.0.store.audit(&query).await?;
        let mut recorded = page.items.iter().map(|entry| &entry.draft);
        if recorded.clone().any(|entry| entry == draft)
            || (self.0.store.is_shared() && policy::is_recorded(&mut recorded, draft))
        {
            return Ok(true);
        }
        match lock {
            Some(lock) => self.0.store.record_under(lock, vec![draft.clone()]).await,
            None => self.0.store.record(vec![draft.clone()]).await.map(|()| true),
        }
    }

    /// Asks the store until it answers; nothing if it never will.
    async fn insist<T, F>(&self, ask: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let words = "audit entry not written; retrying";
        let answer = self.0.observe.until_answered(words, &"audit", ask).await;
        answer.inspect_err(|error| tracing::error!(%error, "audit entry cannot be written")).ok()
    }
}
