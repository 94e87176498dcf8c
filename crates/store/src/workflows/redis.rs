//! Workflows and runs that servers share, beside the jobs in their Redis: one script for each operation that must be
//! atomic.
//!
//! A run is a hash: its head, a field for each of its parts, and what lists are filtered by. The names are those that
//! operators of the existing control plane know (`wf:def`, `wf:run`, `wf:runs`, `cordum:wf:delay:timers`), and
//! contain the tenant where names belong to a tenant.

mod commit;
mod listing;
mod scripts;

use crate::redis::script::{ScriptCall, call};
use crate::workflows::{RunCommit, RunQuery, RunStep, Saved, WorkflowStore};
use crate::{Page, RedisLink, RedisStore, StoreError, key_part, page_len};
use reveille_core::flow::{LINES_MAX, Node, NodeKey, Run, RunHead, TimelineEntry};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use scripts::{DeleteWorkflow, DueRuns, RemoveRuns, SaveWorkflow, Scripts};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long the version numbers of a workflow are remembered after it is deleted and no run needs it: longer than any
/// server caches their contents.
const NUMBERS_KEPT_MS: i64 = 7 * 24 * 3600 * 1000;
/// Runs that one script removes; other commands wait for it.
const REMOVED_AT_ONCE: usize = 100;

/// A handle; clones share their connections.
#[derive(Clone)]
pub struct RedisWorkflows {
    /// What runs are kept beside: it lists them as it lists jobs.
    store: RedisStore,
    link: RedisLink,
    scripts: Arc<Scripts>,
}

impl RedisWorkflows {
    /// Uses the store's connections, and loads the scripts.
    pub async fn open(store: &RedisStore) -> Result<Self, StoreError> {
        let scripts = Scripts::new(store.keys());
        let link = store.link();
        link.load(&scripts.all()).await?;
        Ok(Self { store: store.clone(), link, scripts: Arc::new(scripts) })
    }

    fn key(&self, name: &str) -> String {
        self.store.keys().of(name)
    }

    fn definition(&self, tenant: &TenantId, id: &WorkflowId) -> String {
        self.key(&format!("wf:def:{}:{id}", key_part(tenant.as_str())))
    }

    fn index(&self, tenant: &TenantId) -> String {
        self.key(&format!("wf:index:org:{}", key_part(tenant.as_str())))
    }

    fn timers(&self) -> String {
        self.key("cordum:wf:delay:timers")
    }

    async fn remove(
        &self,
        named: Option<&RunId>,
        ended_before: Millis,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let remove = call!(RemoveRuns {
            ended: self.key("wf:runs:ended"),
            prefix: &self.store.keys().prefix,
            named: named.map(RunId::as_str),
            before: ended_before.0,
            limit: limit,
            kept_ms: NUMBERS_KEPT_MS,
        });
        Ok(self.link.run_surely(&remove.of(&self.scripts)).await?)
    }
}

#[async_trait::async_trait]
impl WorkflowStore for RedisWorkflows {
    async fn save(&self, saved: Saved, workflows_max: u32) -> Result<Option<u32>, StoreError> {
        let id = WorkflowId::known(saved.document.id.as_str());
        let save = call!(SaveWorkflow {
            definition: self.definition(&saved.tenant, &id),
            index: self.index(&saved.tenant),
            id: id.as_str(),
            document: written(&saved.document)?,
            record: written(&saved)?,
            workflows_max: workflows_max,
        });
        Ok(self.link.run_surely(&save.of(&self.scripts)).await?)
    }

    async fn workflow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        version: Option<u32>,
    ) -> Result<Option<Arc<Saved>>, StoreError> {
        let definition = self.definition(tenant, id);
        let version = match version {
            Some(version) => Some(version),
            None => self.link.command(redis::cmd("HGET").arg(&definition).arg("current")).await?,
        };
        let Some(version) = version else { return Ok(None) };
        let field = format!("v:{version}");
        let record: Option<String> =
            self.link.command(redis::cmd("HGET").arg(&definition).arg(field)).await?;
        record.map(|record| Ok(Arc::new(Saved { version, ..read(&record)? }))).transpose()
    }

    async fn workflows(
        &self,
        tenant: &TenantId,
        after: Option<&WorkflowId>,
        limit: usize,
    ) -> Result<Vec<Arc<Saved>>, StoreError> {
        let from = after.map_or("-".to_owned(), |after| format!("({after}"));
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.index(tenant)).arg(from).arg("+").arg("BYLEX");
        range.arg("LIMIT").arg(0).arg(page_len(limit));
        let ids: Vec<String> = self.link.command(&range).await?;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            // It was deleted between two reads.
            found.extend(self.workflow(tenant, &WorkflowId::known(id), None).await?);
        }
        Ok(found)
    }

    async fn delete_workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<bool, StoreError> {
        let delete = call!(DeleteWorkflow {
            definition: self.definition(tenant, id),
            index: self.index(tenant),
            id: id.as_str(),
            kept_ms: NUMBERS_KEPT_MS,
        });
        Ok(self.link.run(&delete.of(&self.scripts)).await?)
    }

    async fn commit(&self, step: RunStep) -> Result<RunCommit, StoreError> {
        self.commit_step(&step).await
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        let key = self.key(&format!("wf:run:{id}"));
        let mut fields: BTreeMap<String, String> = self.link.command(redis::cmd("HGETALL").arg(key)).await?;
        let Some(head) = fields.remove("head") else { return Ok(None) };
        let parts = fields.iter().map(|(name, body)| (name.as_str(), body.as_str()));
        let parts = parts.filter(|(name, _)| name.contains(':') || matches!(*name, "input" | "output"));
        Run::of_parts(read(&head)?, parts).map(Some).map_err(StoreError::Corrupt)
    }

    async fn node(&self, id: &RunId, key: &NodeKey) -> Result<Option<Node>, StoreError> {
        let mut get = redis::cmd("HGET");
        get.arg(self.key(&format!("wf:run:{id}"))).arg(key.part_name());
        let body: Option<String> = self.link.command(&get).await?;
        body.map(|body| read(&body)).transpose()
    }

    async fn runs(&self, query: &RunQuery) -> Result<Page<RunHead>, StoreError> {
        self.list(query).await
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<RunId>, StoreError> {
        let limit = page_len(limit);
        let from = cursor.map_or("-inf".to_owned(), |cursor| format!("({cursor}"));
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.key("wf:runs:live")).arg(from).arg("+inf").arg("BYSCORE");
        range.arg("LIMIT").arg(0).arg(limit + 1).arg("WITHSCORES");
        let found: Vec<(String, u64)> = self.link.command(&range).await?;
        Ok(Page::take(limit, found.into_iter().map(|(id, seq)| (seq, RunId::known(id)))))
    }

    async fn due(&self, by: Millis, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let due = call!(DueRuns {
            timers: self.timers(),
            prefix: &self.store.keys().prefix,
            now: by.0,
            limit: page_len(limit),
        });
        let ids: Vec<String> = self.link.run_surely(&due.of(&self.scripts)).await?;
        Ok(ids.into_iter().map(RunId::known).collect())
    }

    async fn timeline(
        &self,
        id: &RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, TimelineEntry)>, StoreError> {
        let (run, list) = (self.key(&format!("wf:run:{id}")), self.key(&format!("wf:run:timeline:{id}")));
        let mut pipeline = redis::pipe();
        pipeline.atomic().cmd("HGET").arg(run).arg("head").cmd("LRANGE").arg(list).arg(0).arg(-1);
        let (head, lines): (Option<String>, Vec<String>) = self.link.pipeline(&pipeline).await?;
        let Some(head) = head else { return Ok(Vec::new()) };
        let lines_made = read::<RunHead>(&head)?.lines;
        let first = lines_made + 1 - (lines.len() as u64).min(LINES_MAX as u64);
        let lines = (first..).zip(&lines).filter(|(n, _)| *n > after).take(page_len(limit));
        lines.map(|(n, line)| Ok((n, read(line)?))).collect()
    }

    async fn delete_run(&self, id: &RunId) -> Result<bool, StoreError> {
        Ok(self.remove(Some(id), Millis(0), 0).await? > 0)
    }

    async fn prune(&self, ended_before: Millis, limit: usize) -> Result<u64, StoreError> {
        let mut gone = 0;
        while gone < limit as u64 {
            let at_once = REMOVED_AT_ONCE.min(limit - gone as usize);
            let went = self.remove(None, ended_before, at_once).await?;
            gone += went;
            if went == 0 {
                break;
            }
        }
        Ok(gone)
    }
}

fn written(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::Refused(format!("it cannot be written as JSON: {error}")))
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(error.to_string()))
}
