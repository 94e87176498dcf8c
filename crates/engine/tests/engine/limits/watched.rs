//! Sees every commit in its order, and can make lists of jobs wait.

use async_trait::async_trait;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::Job;
use reveille_store::suite::hooked::StoreHook;
use reveille_store::{Commit, Step, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use tokio::sync::{Semaphore, watch};

pub struct Watched {
    /// One commit at a time, so that the order is known.
    one: Semaphore,
    seen: Mutex<Seen>,
    lists: watch::Sender<bool>,
}

#[derive(Default)]
struct Seen {
    active: BTreeMap<TenantId, BTreeSet<JobId>>,
    most: BTreeMap<TenantId, usize>,
    /// Jobs in the order in which they were first given to a worker.
    dispatched: Vec<JobId>,
}

impl Watched {
    pub fn new() -> Self {
        Self { one: Semaphore::new(1), seen: Mutex::default(), lists: watch::Sender::new(true) }
    }

    /// Whether jobs can be listed; while not, whoever asks waits.
    pub fn open_lists(&self, open: bool) {
        self.lists.send_replace(open);
    }

    /// The most jobs of a tenant that were ever at workers at once.
    pub fn most(&self, tenant: &str) -> usize {
        self.seen.lock().unwrap().most.get(tenant).copied().unwrap_or_default()
    }

    pub fn active(&self, tenant: &str) -> usize {
        self.seen.lock().unwrap().active.get(tenant).map_or(0, BTreeSet::len)
    }

    pub fn dispatched(&self) -> Vec<JobId> {
        self.seen.lock().unwrap().dispatched.clone()
    }

    fn look(&self, job: &Job) {
        let mut seen = self.seen.lock().unwrap();
        let (id, tenant) = (job.id().clone(), job.request.tenant.clone());
        if job.attempt().is_some() && !seen.dispatched.contains(&id) {
            seen.dispatched.push(id.clone());
        }
        let active = seen.active.entry(tenant.clone()).or_default();
        if job.attempt().is_some() {
            active.insert(id)
        } else {
            active.remove(&id)
        };
        let now = active.len();
        let most = seen.most.entry(tenant).or_default();
        *most = now.max(*most);
    }
}

#[async_trait]
impl StoreHook for Watched {
    async fn commit(&self, store: &dyn Store, step: Step) -> Result<Commit, StoreError> {
        let _one = self.one.acquire().await.unwrap();
        let job = step.job.clone();
        let done = store.commit(step).await?;
        if done == Commit::Done {
            self.look(&job);
        }
        Ok(done)
    }

    async fn before_list(&self) {
        let _ = self.lists.subscribe().wait_for(|open| *open).await;
    }
}
