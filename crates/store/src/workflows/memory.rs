//! Workflows and runs in memory, for tests and the simulation. It keeps parts as the others do, so that what is read
//! has been written and decoded.

use crate::workflows::{RunCommit, RunQuery, RunStep, Saved, WorkflowStore};
use crate::{Page, StoreError, page_len};
use reveille_core::flow::{LINES_MAX, Node, NodeKey, Run, RunHead, TimelineEntry};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle; clones share what is kept.
#[derive(Clone, Default)]
pub struct MemoryWorkflows(Arc<Mutex<WorkflowState>>);

#[derive(Default)]
struct WorkflowState {
    workflows: BTreeMap<(TenantId, WorkflowId), Versions>,
    runs: BTreeMap<RunId, MemoryRun>,
    /// In the order they began.
    order: BTreeMap<u64, RunId>,
    keys: BTreeMap<(TenantId, String), RunId>,
}

#[derive(Default)]
struct Versions {
    all: BTreeMap<u32, Arc<Saved>>,
    is_deleted: bool,
}

struct MemoryRun {
    seq: u64,
    head: RunHead,
    parts: BTreeMap<String, String>,
    lines: BTreeMap<u64, TimelineEntry>,
}

impl MemoryWorkflows {
    fn state(&self) -> MutexGuard<'_, WorkflowState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkflowState {
    fn commit(&mut self, step: &RunStep) -> RunCommit {
        let head = &step.change.head;
        let key = head.idempotency_key.as_ref().map(|key| (head.tenant.clone(), key.clone()));
        match (self.runs.get(&head.id), step.expects) {
            (Some(kept), Some(expects)) if kept.head.revision == expects => {}
            (_, Some(_)) => return RunCommit::Conflict,
            (Some(_), None) => return RunCommit::Duplicate(head.id.clone()),
            (None, None) => {
                if let Some(holder) = key.as_ref().and_then(|key| self.keys.get(key)) {
                    return RunCommit::Duplicate(holder.clone());
                }
                let under_way = self
                    .runs
                    .values()
                    .filter(|kept| kept.head.tenant == head.tenant && !kept.head.state.is_terminal());
                if step.runs_max.is_some_and(|max| under_way.count() >= max as usize) {
                    return RunCommit::QuotaExceeded;
                }
                let versions = self.workflows.get(&(head.tenant.clone(), head.workflow.clone()));
                let is_there = versions.is_some_and(|versions| versions.all.contains_key(&head.version));
                if head.origin.goes_by_a_version() && !is_there {
                    return RunCommit::Conflict;
                }
                let seq = self.order.last_key_value().map_or(1, |(last, _)| last + 1);
                self.order.insert(seq, head.id.clone());
                self.keys.extend(key.map(|key| (key, head.id.clone())));
                let kept =
                    MemoryRun { seq, head: head.clone(), parts: BTreeMap::new(), lines: BTreeMap::new() };
                self.runs.insert(head.id.clone(), kept);
            }
        }
        if let Some(kept) = self.runs.get_mut(&head.id) {
            kept.head = head.clone();
            for (name, body) in step.parts() {
                match body {
                    Some(body) => kept.parts.insert(name, body),
                    None => kept.parts.remove(&name),
                };
            }
            let first = head.lines - step.change.timeline.len() as u64 + 1;
            kept.lines.extend((first..).zip(step.change.timeline.iter().cloned()));
            while kept.lines.len() > LINES_MAX {
                kept.lines.pop_first();
            }
        }
        RunCommit::Done
    }

    fn remove(&mut self, id: &RunId) {
        if let Some(kept) = self.runs.remove(id) {
            self.order.remove(&kept.seq);
            self.keys.retain(|_, holder| holder != id);
        }
    }
}

#[async_trait::async_trait]
impl WorkflowStore for MemoryWorkflows {
    async fn save(&self, saved: Saved, workflows_max: u32) -> Result<Option<u32>, StoreError> {
        let id = WorkflowId::known(saved.document.id.as_str());
        let mut state = self.state();
        let is_there = |versions: &Versions| !versions.is_deleted;
        if !state.workflows.get(&(saved.tenant.clone(), id.clone())).is_some_and(is_there) {
            let of_tenant = state.workflows.iter().filter(|((tenant, _), _)| *tenant == saved.tenant);
            if of_tenant.filter(|(_, versions)| is_there(versions)).count() >= workflows_max as usize {
                return Ok(None);
            }
        }
        let versions = state.workflows.entry((saved.tenant.clone(), id)).or_default();
        let last = versions.all.last_key_value();
        if let Some((version, last)) =
            last.filter(|(_, last)| last.document == saved.document && !versions.is_deleted)
        {
            let _ = last;
            return Ok(Some(*version));
        }
        let version = last.map_or(1, |(version, _)| version + 1);
        versions.all.insert(version, Arc::new(Saved { version, ..saved }));
        versions.is_deleted = false;
        Ok(Some(version))
    }

    async fn workflow(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        version: Option<u32>,
    ) -> Result<Option<Arc<Saved>>, StoreError> {
        let state = self.state();
        let Some(versions) = state.workflows.get(&(tenant.clone(), id.clone())) else { return Ok(None) };
        Ok(match version {
            Some(version) => versions.all.get(&version).cloned(),
            None if versions.is_deleted => None,
            None => versions.all.last_key_value().map(|(_, last)| last.clone()),
        })
    }

    async fn workflows(
        &self,
        tenant: &TenantId,
        after: Option<&WorkflowId>,
        limit: usize,
    ) -> Result<Vec<Arc<Saved>>, StoreError> {
        let state = self.state();
        let own = state.workflows.iter().filter(|((of, id), versions)| {
            of == tenant && !versions.is_deleted && after.is_none_or(|after| id > after)
        });
        let last =
            own.filter_map(|(_, versions)| versions.all.last_key_value().map(|(_, last)| last.clone()));
        Ok(last.take(page_len(limit)).collect())
    }

    async fn delete_workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<bool, StoreError> {
        let mut state = self.state();
        let versions = state.workflows.get_mut(&(tenant.clone(), id.clone()));
        Ok(versions.is_some_and(|versions| !std::mem::replace(&mut versions.is_deleted, true)))
    }

    async fn commit(&self, step: RunStep) -> Result<RunCommit, StoreError> {
        Ok(self.state().commit(&step))
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        let state = self.state();
        let Some(kept) = state.runs.get(id) else { return Ok(None) };
        let parts = kept.parts.iter().map(|(name, body)| (name.as_str(), body.as_str()));
        Run::of_parts(kept.head.clone(), parts).map(Some).map_err(StoreError::Corrupt)
    }

    async fn node(&self, id: &RunId, key: &NodeKey) -> Result<Option<Node>, StoreError> {
        let state = self.state();
        let body = state.runs.get(id).and_then(|kept| kept.parts.get(&key.part_name()));
        body.map(|body| serde_json::from_str(body))
            .transpose()
            .map_err(|error| StoreError::Corrupt(error.to_string()))
    }

    async fn runs(&self, query: &RunQuery) -> Result<Page<RunHead>, StoreError> {
        let state = self.state();
        let until = query.cursor.unwrap_or(u64::MAX);
        let found =
            state.order.range(..until).rev().filter_map(|(seq, id)| Some((*seq, &state.runs.get(id)?.head)));
        let mut found = found.filter(|(_, head)| query.matches(head));
        let limit = page_len(query.limit);
        let items: Vec<(u64, RunHead)> =
            found.by_ref().take(limit).map(|(seq, head)| (seq, head.clone())).collect();
        let next = found.next().and_then(|_| items.last().map(|(seq, _)| *seq));
        Ok(Page { items: items.into_iter().map(|(_, head)| head).collect(), next })
    }

    async fn live(&self, cursor: Option<u64>, limit: usize) -> Result<Page<RunId>, StoreError> {
        let state = self.state();
        let from = cursor.map_or(0, |cursor| cursor + 1);
        let mut found = state
            .order
            .range(from..)
            .filter(|(_, id)| state.runs.get(*id).is_some_and(|kept| kept.head.is_live()));
        let items: Vec<(u64, RunId)> =
            found.by_ref().take(page_len(limit)).map(|(seq, id)| (*seq, id.clone())).collect();
        let next = found.next().and_then(|_| items.last().map(|(seq, _)| *seq));
        Ok(Page { items: items.into_iter().map(|(_, id)| id).collect(), next })
    }

    async fn due(&self, by: Millis, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let state = self.state();
        let due = state.runs.values().filter(|kept| kept.head.due.is_some_and(|due| due <= by));
        Ok(due.take(page_len(limit)).map(|kept| kept.head.id.clone()).collect())
    }

    async fn timeline(
        &self,
        id: &RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, TimelineEntry)>, StoreError> {
        let state = self.state();
        let lines = state.runs.get(id).into_iter().flat_map(|kept| kept.lines.range(after + 1..));
        Ok(lines.take(page_len(limit)).map(|(n, line)| (*n, line.clone())).collect())
    }

    async fn delete_run(&self, id: &RunId) -> Result<bool, StoreError> {
        let mut state = self.state();
        let is_there = state.runs.get(id).is_some_and(|kept| !kept.head.is_live());
        if is_there {
            state.remove(id);
        }
        Ok(is_there)
    }

    async fn prune(&self, ended_before: Millis, limit: usize) -> Result<u64, StoreError> {
        let mut state = self.state();
        let old = |kept: &&MemoryRun| !kept.head.is_live() && kept.head.updated_at < ended_before;
        let ids: Vec<RunId> =
            state.runs.values().filter(old).take(limit).map(|kept| kept.head.id.clone()).collect();
        for id in &ids {
            state.remove(id);
        }
        let WorkflowState { workflows, runs, .. } = &mut *state;
        workflows.retain(|(tenant, id), versions| {
            let last =
                versions.all.last_key_value().map(|(version, _)| *version).filter(|_| !versions.is_deleted);
            let mut heads = runs
                .values()
                .map(|kept| &kept.head)
                .filter(|head| head.tenant == *tenant && head.workflow == *id);
            let used: Vec<u32> = heads.by_ref().map(|head| head.version).collect();
            versions.all.retain(|version, _| Some(*version) == last || used.contains(version));
            !versions.all.is_empty()
        });
        Ok(ids.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_keeps_the_promises() {
        crate::workflows::suite::run(&|| async {
            Arc::new(MemoryWorkflows::default()) as Arc<dyn WorkflowStore>
        })
        .await;
    }
}
