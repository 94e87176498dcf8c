//! What can be looked at: jobs by themselves, workers and pools off placement.

use crate::Engine;
use crate::events::Audience;
use crate::metrics::{Figures, Moment};
use crate::safety::Circuit;
use reveille_core::fleet::{Fleet, Profile, Who, Worker};
use reveille_core::id::{JobId, TenantId, WorkerId};
use reveille_core::job::Job;
use reveille_core::placement::{Member, PoolLoad};
use reveille_core::presence::Contract;
use reveille_core::time::Millis;
use reveille_store::StoreError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long whoever waits for a job relies on being told of its end by another server.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A worker as it was when it was looked at.
#[derive(Debug, Clone)]
pub struct WorkerView {
    pub worker: Worker,
    pub profile: Arc<Profile>,
    /// When its silence becomes death.
    pub dead_at: Millis,
}

fn view(fleet: &Fleet, worker: &Worker) -> WorkerView {
    let profile = fleet.profile(worker.profile).clone();
    WorkerView { worker: worker.clone(), profile, dead_at: fleet.dead_at(worker) }
}

impl Engine {
    pub async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        self.store.job(id).await
    }

    /// The job once it has ended, or as it is when the patience is over or the server shuts down.
    pub async fn wait_for_end(&self, id: &JobId, patience: Duration) -> Result<Option<Arc<Job>>, StoreError> {
        let waiter = self.waiters.register(id);
        let end = Instant::now() + patience;
        loop {
            let woken = waiter.woken();
            tokio::pin!(woken);
            // From here on a wake is noticed, even one that comes before the first poll.
            woken.as_mut().enable();
            let job = self.store.job(id).await?;
            let is_over = |job: &Arc<Job>| {
                job.state().is_terminal() && !(job.owed.output_scan && self.holds_result(job))
            };
            if self.is_draining() || job.as_ref().is_none_or(is_over) {
                return Ok(job);
            }
            // What another server does is told to us, as a rule.
            let look = if self.is_one_of_many() { end.min(Instant::now() + LOOK_AGAIN) } else { end };
            if tokio::time::timeout_at(look, woken).await.is_err() && look == end {
                return Ok(job);
            }
        }
    }

    /// Every worker, by name.
    pub fn workers(&self) -> Vec<WorkerView> {
        self.workers_after(&Audience::Everyone, None, None, usize::MAX)
    }

    /// At most `max` members that come after `after`, in the order of their names. Only those are copied:
    /// placement is not held for longer than one look at each.
    pub fn workers_after(
        &self,
        audience: &Audience,
        contract: Option<Contract>,
        after: Option<&Member>,
        max: usize,
    ) -> Vec<WorkerView> {
        let placement = self.placement();
        let fleet = placement.fleet();
        let mut page: BTreeMap<(Contract, &TenantId, &WorkerId), &Worker> = BTreeMap::new();
        let after = after.map(|member| (member.contract, &member.tenant, &member.id));
        for (_, worker) in fleet.iter().filter(|(_, worker)| audience.includes(&worker.tenant)) {
            let place = (worker.contract(), &worker.tenant, &worker.id);
            if contract.is_some_and(|contract| contract != place.0)
                || after.is_some_and(|after| place <= after)
            {
                continue;
            }
            if page.len() < max || page.last_key_value().is_some_and(|(last, _)| place < *last) {
                page.insert(place, worker);
                if page.len() > max {
                    page.pop_last();
                }
            }
        }
        page.into_values().map(|worker| view(fleet, worker)).collect()
    }

    /// A member of the fleet, by the name it has in its contract.
    pub fn worker(&self, who: Who<'_>) -> Option<WorkerView> {
        let placement = self.placement();
        let fleet = placement.fleet();
        Some(view(fleet, fleet.lookup(who)?))
    }

    pub fn pools(&self, audience: &Audience) -> Vec<PoolLoad> {
        self.placement().pools(|worker| audience.includes(&worker.tenant))
    }

    /// The figures of this server.
    pub fn figures(&self) -> Figures {
        self.metrics.figures(self.now(), self.timers.len())
    }

    /// The metrics page.
    pub fn metrics_page(&self) -> String {
        for circuit in Circuit::ALL {
            self.metrics.safety.stands(circuit.name(), self.circuit(circuit));
        }
        self.metrics.page(&Moment {
            now: self.now(),
            unconfirmed: self.unconfirmed(),
            workers: self.placement().fleet().alive(),
            live_jobs: self.timers.len(),
            messages_lost: self.bus.lost(),
            tasks: self.tasks_len(),
            stale_jobs: self.timers.overdue(self.now()),
            traces: self.traces.counts(),
        })
    }
}
