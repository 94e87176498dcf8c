//! What can be looked at: jobs by themselves, workers and pools off the floor.

use crate::Engine;
use crate::metrics::Moment;
use reveille_core::fleet::{Profile, Worker};
use reveille_core::floor::PoolLoad;
use reveille_core::id::{JobId, WorkerId};
use reveille_core::job::Job;
use reveille_store::StoreError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A worker as it was when it was looked at.
#[derive(Debug, Clone)]
pub struct WorkerView {
    pub worker: Worker,
    pub profile: Arc<Profile>,
}

impl Engine {
    pub async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        self.store.job(id).await
    }

    /// The job once it has ended, or as it is when the patience is over or the server shuts down.
    pub async fn wait_for_end(&self, id: &JobId, patience: Duration) -> Result<Option<Arc<Job>>, StoreError> {
        let waiter = self.waiters.register(id);
        let end = tokio::time::Instant::now() + patience;
        loop {
            let woken = waiter.woken();
            tokio::pin!(woken);
            // From here on a wake is noticed, even one that comes before the first poll.
            woken.as_mut().enable();
            let job = self.store.job(id).await?;
            if self.is_draining() || job.as_ref().is_none_or(|job| job.state().is_terminal()) {
                return Ok(job);
            }
            if tokio::time::timeout_at(end, woken).await.is_err() {
                return Ok(job);
            }
        }
    }

    /// Every worker, by name.
    pub fn workers(&self) -> Vec<WorkerView> {
        self.workers_after("", usize::MAX)
    }

    /// At most `max` workers whose names come after `name`, in the order of their names. Only those are
    /// copied: the floor is not held for longer than one look at each worker.
    pub fn workers_after(&self, name: &str, max: usize) -> Vec<WorkerView> {
        let floor = self.floor();
        let fleet = floor.fleet();
        let mut page: BTreeMap<&WorkerId, &Worker> = BTreeMap::new();
        for (_, worker) in fleet.iter().filter(|(_, worker)| worker.id.as_str() > name) {
            let is_wanted =
                page.len() < max || page.last_key_value().is_some_and(|(last, _)| worker.id < **last);
            if is_wanted {
                page.insert(&worker.id, worker);
                if page.len() > max {
                    page.pop_last();
                }
            }
        }
        let view = |worker: &Worker| WorkerView {
            worker: worker.clone(),
            profile: fleet.profile(worker.profile).clone(),
        };
        page.into_values().map(view).collect()
    }

    pub fn worker(&self, id: &str) -> Option<WorkerView> {
        let floor = self.floor();
        let fleet = floor.fleet();
        let worker = fleet.get(fleet.find(id)?)?;
        Some(WorkerView { worker: worker.clone(), profile: fleet.profile(worker.profile).clone() })
    }

    pub fn pools(&self) -> Vec<PoolLoad> {
        self.floor().pools()
    }

    /// The metrics page.
    pub fn metrics_page(&self) -> String {
        self.metrics.page(&Moment {
            workers: self.floor().fleet().len(),
            live_jobs: self.timers.len(),
            tasks: self.tasks_len(),
            stale_jobs: self.timers.overdue(self.now()),
        })
    }
}
