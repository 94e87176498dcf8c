//! Runs in memory, while somebody decides about them.

use super::Workflows;
use super::saga::OnTheirWay;
use super::timers::RunTimers;
use super::{Loaded, RunError};
use crate::placement::Ahead;
use reveille_core::flow::Flow;
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use reveille_store::StoreError;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// A run that nobody has asked for so long is read again when somebody does.
const IDLE_MS: i64 = 60_000;
/// Versions of workflows kept ready, and for how long; a server that sees more reads some of them again.
const READ_MAX: usize = 1000;
const READ_FOR_MS: i64 = 24 * 3600 * 1000;

/// What is known of runs and workflows without asking.
#[derive(Default)]
pub struct OpenRuns {
    open: Mutex<FxHashMap<RunId, RunSlot>>,
    read: Mutex<FxHashMap<Version, (Millis, Arc<Flow>)>>,
    pub(super) timers: RunTimers,
    pub(super) on_their_way: OnTheirWay,
    /// A server is gone, and what it owed its runs is to be found.
    pub left_behind: Notify,
}

type Version = (TenantId, WorkflowId, u32);

/// One at a time decides about a run.
pub type RunSlot = Arc<tokio::sync::Mutex<OpenRun>>;

#[derive(Default)]
pub struct OpenRun {
    /// Nothing means that it has to be loaded.
    pub loaded: Option<Loaded>,
    /// A change of ours was not answered. If it counted, what it began is still to be sent off.
    pub is_unsure: bool,
    used_at: Option<Millis>,
}

impl OpenRuns {
    /// The moments of runs that are waited for.
    pub(crate) fn ahead(&self) -> Ahead {
        self.timers.ahead()
    }

    pub(super) fn slot(&self, id: &RunId) -> RunSlot {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).entry(id.clone()).or_default().clone()
    }

    /// Forgets a run that nobody is deciding about.
    pub(super) fn close(&self, id: &RunId) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(id).is_some_and(|slot| Arc::strong_count(slot) <= 2) {
            open.remove(id);
        }
    }

    /// Forgets runs that nobody has decided about for a while: what they owe is in the store, and their timers are
    /// kept apart.
    pub(super) fn close_idle(&self, now: Millis) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, slot| match slot.try_lock() {
            Ok(open) => Arc::strong_count(slot) > 1 || open.is_unsure || open.was_used(now),
            Err(_) => true,
        });
    }

    pub(super) fn read(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        version: u32,
        now: Millis,
    ) -> Option<Arc<Flow>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, flow) = read.get(&(tenant.clone(), id.clone(), version))?;
        (now.since(*at) < READ_FOR_MS).then(|| flow.clone())
    }

    pub(super) fn keep(&self, tenant: &TenantId, flow: &Arc<Flow>, now: Millis) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.len() >= READ_MAX {
            read.clear();
        }
        read.insert((tenant.clone(), flow.id.clone(), flow.version), (now, flow.clone()));
    }
}

impl OpenRun {
    fn was_used(&self, now: Millis) -> bool {
        self.used_at.is_some_and(|at| now.since(at) < IDLE_MS)
    }

    /// This is how the run stands, and all that it owes is under way.
    pub fn take(&mut self, loaded: Loaded, now: Millis) {
        (self.loaded, self.is_unsure, self.used_at) = (Some(loaded), false, Some(now));
    }

    /// A change failed, and if that may pass nobody knows whether it counted: what is stored says so. Says whether
    /// there was no doubt before.
    pub fn failed(&mut self, error: &StoreError) -> bool {
        self.loaded = None;
        error.is_transient() && !std::mem::replace(&mut self.is_unsure, true)
    }
}

impl Workflows {
    /// The run as it is stored. If a change of ours went unanswered, what the run owes is sent off now.
    pub(super) async fn hold<'a>(
        &self,
        open: &'a mut OpenRun,
        id: &RunId,
    ) -> Result<&'a mut Loaded, RunError> {
        open.used_at = Some(self.runtime.now());
        let loaded = match open.loaded.take() {
            Some(loaded) => loaded,
            None => self.load_run(id).await?.ok_or(RunError::Unknown)?,
        };
        if std::mem::take(&mut open.is_unsure) {
            self.act_on_all(&loaded);
        }
        Ok(open.loaded.insert(loaded))
    }

    /// A run with its workflow as it was when the run began.
    pub(crate) async fn load_run(&self, id: &RunId) -> Result<Option<Loaded>, StoreError> {
        let Some(run) = self.store.run(id).await? else { return Ok(None) };
        let flow = self.flow_of(&run.head).await?;
        Ok(Some(Loaded { run, flow }))
    }
}
