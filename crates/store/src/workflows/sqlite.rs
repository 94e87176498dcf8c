//! Workflows and runs in their own tables, in the store's file: one file, one writer, one sync.
//!
//! A change is encoded as JSON before it gets to the shared writer thread.

#![allow(clippy::doc_markdown, reason = "SQLite is a name, not code")]

mod change;
mod queries;
mod schema;

use crate::workflows::{RunCommit, RunQuery, RunStep, Saved, WorkflowStore};
use crate::{Page, SqliteFile, StoreError, page_len};
use change::Encoded;
use reveille_core::flow::{Node, NodeKey, Run, RunHead, TimelineEntry};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use std::sync::Arc;

/// A handle; clones share what is kept.
#[derive(Clone)]
pub struct SqliteWorkflows {
    file: SqliteFile,
}

impl SqliteWorkflows {
    /// Finds the tables in the store's file, or creates them. Tables of a newer version are left as they are.
    pub async fn open(file: SqliteFile) -> Result<Self, StoreError> {
        let found = file.write(schema::open).await?;
        if found > schema::VERSION {
            let known = schema::VERSION;
            return Err(StoreError::Corrupt(format!(
                "workflows are of version {found}, and this server knows {known}"
            )));
        }
        Ok(Self { file })
    }
}

#[async_trait::async_trait]
impl WorkflowStore for SqliteWorkflows {
    async fn save(&self, saved: Saved, workflows_max: u32) -> Result<Option<u32>, StoreError> {
        let save = change::Save::encode(&saved, workflows_max)?;
        let version = self.file.write(move |connection| save.apply(connection)).await?;
        Ok(u32::try_from(version).ok().filter(|version| *version > 0))
    }

    async fn workflow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        version: Option<u32>,
    ) -> Result<Option<Arc<Saved>>, StoreError> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.file.read(move |connection| queries::workflow(connection, &tenant, &id, version)).await
    }

    async fn workflows(
        &self,
        tenant: &TenantId,
        after: Option<&WorkflowId>,
        limit: usize,
    ) -> Result<Vec<Arc<Saved>>, StoreError> {
        let (tenant, after) = (tenant.clone(), after.cloned());
        self.file
            .read(move |connection| queries::workflows(connection, &tenant, after.as_ref(), page_len(limit)))
            .await
    }

    async fn delete_workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<bool, StoreError> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let rows =
            self.file.write(move |connection| change::delete_workflow(connection, &tenant, &id)).await?;
        Ok(rows > 0)
    }

    async fn commit(&self, step: RunStep) -> Result<RunCommit, StoreError> {
        let encoded = Encoded::of(&step)?;
        match self.file.write(move |connection| encoded.apply(connection)).await? {
            change::DONE => Ok(RunCommit::Done),
            change::NO_ROOM => Ok(RunCommit::QuotaExceeded),
            change::CONFLICT => Ok(RunCommit::Conflict),
            _ => {
                // The holder of the id or the key no longer changes, unless it is removed; then the next try
                // succeeds.
                let (id, tenant, key) = (
                    step.change.head.id.clone(),
                    step.change.head.tenant.clone(),
                    step.change.head.idempotency_key.clone(),
                );
                let holder = self
                    .file
                    .read(move |connection| queries::holder(connection, &id, &tenant, key.as_deref()))
                    .await?;
                Ok(holder.map_or(RunCommit::Conflict, RunCommit::Duplicate))
            }
        }
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        let id = id.clone();
        self.file.read(move |connection| queries::run(connection, &id)).await
    }

    async fn node(&self, id: &RunId, key: &NodeKey) -> Result<Option<Node>, StoreError> {
        let (id, name) = (id.clone(), key.part_name());
        self.file.read(move |connection| queries::node(connection, &id, &name)).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Page<RunHead>, StoreError> {
        let query = query.clone();
        self.file.read(move |connection| queries::runs(connection, &query)).await
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<RunId>, StoreError> {
        self.file.read(move |connection| queries::live(connection, cursor, page_len(limit))).await
    }

    async fn due(&self, by: Millis, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.file.read(move |connection| queries::due(connection, by, page_len(limit))).await
    }

    async fn timeline(
        &self,
        id: &RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, TimelineEntry)>, StoreError> {
        let id = id.clone();
        self.file.read(move |connection| queries::timeline(connection, &id, after, page_len(limit))).await
    }

    async fn delete_run(&self, id: &RunId) -> Result<bool, StoreError> {
        let id = id.clone();
        Ok(self.file.write(move |connection| change::delete_run(connection, &id)).await? > 0)
    }

    async fn prune(&self, ended_before: Millis, limit: usize) -> Result<u64, StoreError> {
        self.file.write(move |connection| change::prune(connection, ended_before, limit)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;

    #[tokio::test(flavor = "multi_thread")]
    async fn sqlite_keeps_the_promises() {
        let folder = tempfile::tempdir().unwrap();
        let numbers = std::sync::atomic::AtomicU32::new(0);
        crate::workflows::suite::run(&|| async {
            let n = numbers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let store =
                SqliteStore::open(&folder.path().join(format!("{n}.db")), Arc::new(|| Millis(0))).unwrap();
            Arc::new(SqliteWorkflows::open(store.file()).await.unwrap()) as Arc<dyn WorkflowStore>
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_was_committed_is_there_after_a_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.db");
        let open = || SqliteStore::open(&path, Arc::new(|| Millis(0))).unwrap();
        let before = {
            let store = open();
            let flows = SqliteWorkflows::open(store.file()).await.unwrap();
            crate::workflows::suite::one_run(&flows, "r").await
        };
        let store = open();
        let flows = SqliteWorkflows::open(store.file()).await.unwrap();
        assert_eq!(flows.run(&RunId::known("r")).await.unwrap(), Some(before));
    }
}
