//! Taking workers out of service and back. A drain is durable: a restart does not undo what an operator
//! decided.

use super::Fleet;
use crate::observe::events::{What, WorkerChange};
use crate::roster::RosterCopy;
use reveille_core::audit::Action;
use reveille_core::fleet::Worker;
use reveille_core::identity::Identity;
use reveille_core::placement::Member;
use reveille_core::presence::{Contract, Drain, Drained};
use reveille_roster::{Change, RosterError};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long jobs may stay at a drained worker unless somebody says otherwise, and at most.
pub const DRAIN_SECONDS: u32 = 300;
pub const DRAIN_SECONDS_MAX: u32 = 3_600;
/// How often drained workers are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Fleet {
    /// No new jobs for a worker or a pool. What is still there after `seconds` goes elsewhere.
    pub async fn drain_workers(
        &self,
        what: Drained,
        seconds: u32,
        by: impl Into<Identity>,
    ) -> Result<Drain, RosterError> {
        let (fleet, by) = (self.clone(), by.into());
        self.runtime.run_detached(async move { fleet.begin_drain(what, seconds, &by).await }).await
    }

    async fn begin_drain(&self, what: Drained, seconds: u32, by: &Identity) -> Result<Drain, RosterError> {
        let now = self.runtime.now();
        let until = now + i64::from(seconds.min(DRAIN_SECONDS_MAX)) * 1000;
        let drain = Drain { what: what.clone(), since: now, until, by: by.name.clone() };
        self.writer.write(Change::Drain(drain.clone())).await?;
        {
            let mut placement = self.placement.lock();
            self.drain_changes.fetch_add(1, Ordering::SeqCst);
            placement.drain(drain.clone());
        }
        tracing::info!(?what, by = by.name, seconds, "drained");
        self.publish_drained(&what, WorkerChange::Drained);
        let (action, name, of) = match &what {
            Drained::Worker(id) => (Action::WorkerDrained, "worker", id.as_str()),
            Drained::Pool(pool) => (Action::PoolDrained, "pool", pool.as_str()),
        };
        let entry = self.audit.act_for_all(action, by).about(name, of);
        self.audit.record(entry.about("until", &until.rfc3339())).await;
        Ok(drain)
    }

    /// Says whether it was drained.
    pub async fn undrain_workers(&self, what: Drained, by: impl Into<Identity>) -> Result<bool, RosterError> {
        let (fleet, by) = (self.clone(), by.into());
        self.runtime.run_detached(async move { fleet.end_drain(what, &by).await }).await
    }

    async fn end_drain(&self, what: Drained, by: &Identity) -> Result<bool, RosterError> {
        self.writer.write(Change::Undrain(what.clone())).await?;
        let (was, matches) = {
            let mut placement = self.placement.lock();
            self.drain_changes.fetch_add(1, Ordering::SeqCst);
            (placement.undrain(&what), placement.reserve_waiting(self.runtime.now()))
        };
        self.jobs.assign_all(matches);
        tracing::info!(?what, by = by.name, "back in service");
        self.publish_drained(&what, WorkerChange::Undrained);
        if was {
            let (action, name, of) = match &what {
                Drained::Worker(id) => (Action::WorkerUndrained, "worker", id.as_str()),
                Drained::Pool(pool) => (Action::PoolUndrained, "pool", pool.as_str()),
            };
            self.audit.record(self.audit.act_for_all(action, by).about(name, of)).await;
        }
        Ok(was)
    }

    pub fn drains(&self) -> Vec<Drain> {
        self.placement.lock().drains().cloned().collect()
    }

    /// The drain a worker is under, its own or its pool's.
    pub fn drain_of(&self, worker: &Worker) -> Option<Drain> {
        self.placement.lock().drain_of(worker).cloned()
    }

    /// Jobs that stayed too long at drained workers go elsewhere, one after the other.
    pub(crate) async fn end_overdue_drains(self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let overdue_drains = self.placement.lock().overdue_drains(self.runtime.now());
            for (worker, jobs) in overdue_drains {
                tracing::warn!(worker = %worker.id, jobs = jobs.len(), "drain timed out; jobs reassigned");
                for job in jobs {
                    self.jobs.clone().lose_attempt(job, Some(worker.id.clone())).await;
                }
            }
        }
    }

    fn publish_drained(&self, what: &Drained, change: WorkerChange) {
        let members: Vec<Member> = {
            let placement = self.placement.lock();
            let fleet = placement.fleet();
            let is_meant = |worker: &Worker| match what {
                Drained::Worker(id) => worker.id == *id,
                Drained::Pool(pool) => fleet.profile(worker.profile).pool.as_ref() == Some(pool),
            };
            let cap = fleet.iter().map(|(_, worker)| worker).filter(|w| w.contract() == Contract::Cap);
            cap.filter(|worker| is_meant(worker)).map(Member::of).collect()
        };
        let now = self.runtime.now();
        for member in members {
            let tenant = member.tenant.clone();
            self.observe.events().publish(now, &tenant, What::Worker { member, change });
        }
    }
}

/// The drains, as a copy of what the roster has.
#[async_trait::async_trait]
impl RosterCopy for Fleet {
    async fn reload(&self) -> Result<bool, RosterError> {
        let changes = self.drain_changes.load(Ordering::SeqCst);
        let drains = self.roster.drains().await?;
        let matches = {
            let mut table = self.placement.lock();
            if self.drain_changes.load(Ordering::SeqCst) != changes {
                return Ok(false);
            }
            let meant: BTreeSet<&Drained> = drains.iter().map(|drain| &drain.what).collect();
            let over: Vec<Drained> =
                table.drains().map(|drain| drain.what.clone()).filter(|what| !meant.contains(what)).collect();
            for what in over {
                table.undrain(&what);
            }
            for drain in drains {
                table.drain(drain);
            }
            table.reserve_waiting(self.runtime.now())
        };
        self.jobs.assign_all(matches);
        Ok(true)
    }
}
