//! The store on one machine: SQLite in WAL mode, in one file that any tool can read.
//!
//! ```text
//!   commit, put_blob, …  ──►  queue  ──►  the writer thread: groups ──► one transaction ──► one sync
//!                                                                              │
//!   job, blob            ◄──────────────  caches  ◄────────────────────────────┘ then the answers
//!   jobs, live, …        ──►  queue  ──►  reader threads, a connection each
//! ```
//!
//! No runtime thread ever waits for the disk. Cached values are returned at once; everything else goes to a thread
//! that owns a connection.
//!
//! Other crates keep tables of their own in the same file, through [`SqliteFile`].
//!
//! Deliberately not here: more than one server on a file.

#![allow(clippy::doc_markdown, reason = "SQLite is a name, not code")]

mod audit_trail;
mod cache;
mod chains;
mod change;
mod dead_letters;
mod dead_packets;
mod file;
mod listing;
mod locks;
mod open;
mod queries;
mod queue;
mod reader;
mod rows;
mod schema;
mod stats;
mod tables;
mod writer;

pub use file::SqliteFile;
pub use open::OpenError;
pub use stats::SqliteStats;

use crate::breakers::InProcess;
use crate::query::page_len;
use crate::{
    AuditQuery, AuditTrail, BlobKey, Blobs, Breakers, ChainPage, ClockFn, Commit, DeadLetterCounts,
    DeadLetterQuery, DeadLetters, DeadPacket, DeadPackets, EventLog, HeldLock, JobQuery, JobStore, Lock,
    Locks, Membership, Page, PutMode, Step, StoreError, StoredBlob, WorkspaceHints,
};
use bytes::Bytes;
use cache::{CacheLookup, Caches};
use change::SqliteChange;
use open::DataFile;
use reader::Readers;
use reveille_core::audit::{Draft, Entry};
use reveille_core::breaker::Breaker;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{DeadLetter, Job};
use reveille_core::time::Millis;
use stats::Counters;
use std::path::Path;
use std::sync::Arc;
use tables::Tables;
use writer::Writer;

const READERS: usize = 2;

/// A handle; clones share one store. When the last one is dropped, everything is on disk and the file is free for the
/// next server.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<SqliteParts>,
}

/// Fields are dropped in this order: the lock is released last.
struct SqliteParts {
    readers: Readers,
    writer: Writer,
    caches: Arc<Caches>,
    counters: Arc<Counters>,
    breakers: InProcess,
    clock: ClockFn,
    _file: DataFile,
}

impl SqliteStore {
    /// Opens a data file, or creates one. It blocks while it reads, so call it before serving.
    pub fn open(path: &Path, clock: ClockFn) -> Result<Self, OpenError> {
        let file = DataFile::open(path)?;
        let unusable = |what: String| OpenError::Unusable { path: path.to_owned(), what };
        let connection = file.writer()?;
        let damaged = |what: String| OpenError::Damaged { path: path.to_owned(), what };
        // The writer's thread prepares its own; here it shows whether the tables are as they should be.
        Tables::prepare(&connection).map_err(|error| damaged(error.to_string()))?;
        let (caches, counters) = (Arc::new(Caches::default()), Arc::new(Counters::default()));
        let writer = Writer::start(connection, file.log(), Arc::clone(&caches), Arc::clone(&counters))
            .map_err(|error| unusable(error.to_string()))?;
        let readers = (0..READERS).map(|_| file.reader()).collect::<Result<_, _>>()?;
        let breakers = InProcess::default();
        let readers = Readers::start(readers).map_err(|error| unusable(error.to_string()))?;
        Ok(Self {
            shared: Arc::new(SqliteParts { readers, writer, caches, counters, breakers, clock, _file: file }),
        })
    }

    pub fn stats(&self) -> SqliteStats {
        self.shared.counters.read()
    }

    /// Access to further tables in the same file.
    pub fn file(&self) -> SqliteFile {
        SqliteFile::new(Arc::clone(&self.shared))
    }

    async fn write(&self, change: SqliteChange) -> Result<u64, StoreError> {
        Ok(self.shared.writer.write(change).await?.rows())
    }

    fn now(&self) -> Millis {
        (self.shared.clock)()
    }
}

#[async_trait::async_trait]
impl JobStore for SqliteStore {
    async fn commit(&self, step: Step) -> Result<Commit, StoreError> {
        Ok(self.shared.writer.write(SqliteChange::step(step)?).await?.into_commit())
    }

    async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        let fill = match self.shared.caches.job(id) {
            CacheLookup::Job(job) => return Ok(Some(job)),
            CacheLookup::Nothing(fill) => fill,
        };
        let id = id.clone();
        let job = self.shared.readers.read(move |connection| queries::job_by_id(connection, &id)).await?;
        if let Some(job) = &job {
            fill.keep(job);
        }
        Ok(job)
    }

    async fn job_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<JobId>, StoreError> {
        let (tenant, key) = (tenant.clone(), key.to_owned());
        self.shared.readers.read(move |connection| queries::holder_of_key(connection, &tenant, &key)).await
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        let query = query.clone();
        self.shared.readers.read(move |connection| queries::jobs(connection, &query)).await
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        self.shared.readers.read(move |connection| queries::live(connection, cursor, limit)).await
    }

    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> Result<u64, StoreError> {
        self.write(SqliteChange::Prune { ended_before, now, limit }).await
    }
}

#[async_trait::async_trait]
impl DeadLetters for SqliteStore {
    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError> {
        let query = query.clone();
        self.shared.readers.read(move |connection| dead_letters::list(connection, &query)).await
    }

    async fn count_dead_letters(&self, tenant: Option<&TenantId>) -> Result<DeadLetterCounts, StoreError> {
        let tenant = tenant.cloned();
        self.shared.readers.read(move |connection| dead_letters::count(connection, tenant.as_ref())).await
    }

    async fn remove_dead_letter(&self, job: &JobId) -> Result<bool, StoreError> {
        Ok(self.write(SqliteChange::RemoveDeadLetter(job.clone())).await? > 0)
    }
}

#[async_trait::async_trait]
impl Locks for SqliteStore {
    async fn lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>, StoreError> {
        locks::take(&self.file(), name, self.now(), ttl_ms).await
    }

    async fn renew(&self, lock: &Lock, ttl_ms: i64) -> Result<bool, StoreError> {
        locks::renew(&self.file(), lock, self.now(), ttl_ms).await
    }

    async fn unlock(&self, lock: &Lock) -> Result<bool, StoreError> {
        locks::give_back(&self.file(), lock, self.now()).await
    }

    async fn locks_held(&self, limit: usize) -> Result<Vec<HeldLock>, StoreError> {
        locks::list(&self.file(), self.now(), page_len(limit)).await
    }
}

#[async_trait::async_trait]
impl DeadPackets for SqliteStore {
    async fn bury(&self, packet: DeadPacket) -> Result<(), StoreError> {
        dead_packets::bury(&self.file(), packet).await
    }

    async fn buried(&self, cursor: Option<u64>, limit: usize) -> Result<Page<DeadPacket>, StoreError> {
        dead_packets::list(&self.file(), cursor, limit, self.now()).await
    }
}

// One process has the file: there is nobody to share it with.
impl Membership for SqliteStore {}

impl EventLog for SqliteStore {}

impl WorkspaceHints for SqliteStore {}

#[async_trait::async_trait]
impl Breakers for SqliteStore {
    async fn breaker(&self, name: &str) -> Result<Breaker, StoreError> {
        Ok(self.shared.breakers.get(name))
    }

    async fn swap_breaker(&self, name: &str, before: Breaker, after: Breaker) -> Result<bool, StoreError> {
        Ok(self.shared.breakers.swap(name, before, after))
    }
}

#[async_trait::async_trait]
impl AuditTrail for SqliteStore {
    async fn record(&self, drafts: Vec<Draft>) -> Result<(), StoreError> {
        if drafts.is_empty() {
            return Ok(());
        }
        self.write(SqliteChange::Record { drafts, under: None }).await.map(drop)
    }

    async fn record_under(&self, lock: &Lock, drafts: Vec<Draft>) -> Result<bool, StoreError> {
        let under = Some((lock.clone(), self.now()));
        Ok(self.write(SqliteChange::Record { drafts, under }).await? > 0)
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
        let query = query.clone();
        self.shared.readers.read(move |connection| audit_trail::list(connection, &query)).await
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError> {
        let tenant = tenant.clone();
        self.shared
            .readers
            .read(move |connection| audit_trail::chain(connection, &tenant, after, limit))
            .await
    }

    async fn chains(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError> {
        let after = after.cloned();
        self.shared
            .readers
            .read(move |connection| audit_trail::chains(connection, after.as_ref(), limit))
            .await
    }

    async fn prune_audit(&self, before: Millis, limit: usize) -> Result<u64, StoreError> {
        self.write(SqliteChange::PruneAudit { before, limit }).await
    }
}

#[async_trait::async_trait]
impl Blobs for SqliteStore {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        let cached = self.shared.caches.blobs().get(key);
        let found = if cached.is_some() {
            cached
        } else {
            let key = key.clone();
            self.shared.readers.read(move |connection| queries::blob(connection, &key)).await?
        };
        Ok(found.filter(|(_, expires_at)| self.now() < *expires_at).map(|(value, _)| value))
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        let now = self.now();
        Ok(self.write(SqliteChange::PutBlob { key, value, expires_at, mode, now }).await? > 0)
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        if keys.is_empty() {
            return Ok(0);
        }
        let now = self.now();
        self.write(SqliteChange::DeleteBlobs { keys, now }).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        let cached = self.shared.caches.blobs().get(key).map(|(_, expires_at)| expires_at);
        let found = if cached.is_some() {
            cached
        } else {
            let key = key.clone();
            self.shared.readers.read(move |connection| queries::blob_expiry(connection, &key)).await?
        };
        Ok(found.filter(|expires_at| self.now() < *expires_at))
    }

    async fn stored_blobs(
        &self,
        after: Option<BlobKey>,
        limit: usize,
    ) -> Result<Vec<StoredBlob>, StoreError> {
        self.shared
            .readers
            .read(move |connection| queries::stored_blobs(connection, after.as_ref(), limit))
            .await
    }
}
