//! The clerk: the one task that records in the audit trail what belongs to no job.
//!
//! What belongs to a job is recorded by the commit that changes it. Policies and keys are not in the
//! store, so their entries come after them, in order, and a store that fails is tried again. What a
//! process owed when it died is found by looking, at the next start: is the policy in force the one that
//! was recorded last, and has every change of a key its entry?
//!
//! Several servers read the same files and the same keys. Each looks, under a lock, whether another has recorded it.

mod keys;
mod policy;

pub use keys::{created, revoked};

use crate::Engine;
use reveille_core::audit::Draft;
use reveille_roster::KeyRecord;
use reveille_store::{AuditQuery, Lock, StoreError};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Entries that may wait while the store fails.
const ERRANDS_MAX: usize = 1_024;
/// How long to leave a store alone that has just failed.
const PAUSE: Duration = Duration::from_secs(1);
/// How long whoever changed a key waits for the entry, which comes in any case.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long one server may take over an entry while the others wait.
pub(crate) const LOCK: &str = "cordum:clerk";
const LOCK_MS: i64 = 10_000;
const BUSY_PAUSE: Duration = Duration::from_millis(25);
/// An entry whose answer was lost is among so many of its kind, newest first.
const LOOK_BACK: usize = 100;

pub struct Clerk {
    errands: mpsc::Sender<Errand>,
    /// Files that were refused and recorded.
    refused: Mutex<BTreeSet<String>>,
}

/// The far end, until the task takes it.
pub struct Errands(mpsc::Receiver<Errand>);

struct Errand {
    /// Nothing, for whoever only waits until the others are done.
    draft: Option<Draft>,
    done: oneshot::Sender<()>,
}

/// What was in force and who had a key when the server started.
pub struct AtStart {
    pub snapshot: String,
    pub keys: Vec<KeyRecord>,
}

impl Clerk {
    pub fn new() -> (Self, Errands) {
        let (errands, receiver) = mpsc::channel(ERRANDS_MAX);
        (Self { errands, refused: Mutex::default() }, Errands(receiver))
    }
}

impl Engine {
    /// Returns when the entry is durable; if that takes long, before.
    pub(crate) async fn record(&self, draft: Draft) {
        self.errand(Some(draft)).await;
    }

    /// Returns when everything before is recorded; if that takes long, before.
    pub(crate) async fn finish_records(&self) {
        self.errand(None).await;
    }

    async fn errand(&self, draft: Option<Draft>) {
        let (done, answered) = oneshot::channel();
        let asked = async {
            // The channel closes only with the engine, and what is owed then is found at the next start.
            if self.clerk.errands.send(Errand { draft, done }).await.is_ok() {
                let _ = answered.await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, asked).await;
    }

    /// For those who cannot wait.
    fn record_later(&self, draft: Draft) {
        let errand = Errand { draft: Some(draft), done: oneshot::channel().0 };
        if let Err(error) = self.clerk.errands.try_send(errand) {
            tracing::error!(%error, "an entry of the audit trail is lost: too many are waiting");
        }
    }

    pub(crate) async fn write_trail(self, mut errands: Errands, start: AtStart) {
        if let Some(draft) = self.insist(|| self.unrecorded_policy(&start.snapshot)).await.flatten() {
            self.append(&draft).await;
        }
        for draft in self.insist(|| self.unrecorded_keys(&start.keys)).await.unwrap_or_default() {
            self.append(&draft).await;
        }
        while let Some(Errand { draft, done }) = errands.0.recv().await {
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
        let lock = self.lock_trail().await?;
        let done = self.append_unless_there(draft).await;
        self.let_go(lock).await;
        done
    }

    /// Nothing where nobody else writes.
    async fn lock_trail(&self) -> Result<Option<Lock>, StoreError> {
        while self.is_one_of_many() {
            if let Some(lock) = self.store.lock(LOCK, LOCK_MS).await? {
                return Ok(Some(lock));
            }
            tokio::time::sleep(BUSY_PAUSE).await;
        }
        Ok(None)
    }

    /// A store that says it failed may have written the entry all the same, and another server the same entry.
    async fn append_unless_there(&self, draft: &Draft) -> Result<(), StoreError> {
        let query = AuditQuery {
            tenant: Some(draft.tenant.clone()),
            event_type: Some(draft.event_type),
            limit: LOOK_BACK,
            ..AuditQuery::default()
        };
        let page = self.store.audit(&query).await?;
        let mut recorded = page.items.iter().map(|entry| &entry.draft);
        if recorded.clone().any(|entry| entry == draft)
            || (self.is_one_of_many() && policy::is_recorded(&mut recorded, draft))
        {
            return Ok(());
        }
        self.store.record(vec![draft.clone()]).await
    }

    /// Asks the store until it answers; nothing if it never will.
    async fn insist<T, F>(&self, ask: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        loop {
            match ask().await {
                Ok(answer) => return Some(answer),
                Err(error) if !error.is_transient() => {
                    tracing::error!(%error, "an entry of the audit trail cannot be written");
                    return None;
                }
                Err(error) => {
                    let words = "the audit trail could not be written; trying again";
                    self.trouble.store.tell(self.now(), words, &"audit", &error);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
