//! Taking workers out of service and back. A drain is durable: a restart does not undo what an operator
//! decided.

use crate::Engine;
use crate::events::{What, WorkerChange};
use crate::scribe::Note;
use reveille_core::fleet::Worker;
use reveille_core::placement::Member;
use reveille_core::presence::{Contract, Drain, Drained};
use reveille_roster::{Change, RosterError};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long jobs may stay at a drained worker unless somebody says otherwise, and at most.
pub const DRAIN_SECONDS: u32 = 300;
pub const DRAIN_SECONDS_MAX: u32 = 3_600;
/// How often drained workers are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Engine {
    /// No new jobs for a worker or a pool. What is still there after `seconds` goes elsewhere.
    pub async fn drain_workers(&self, what: Drained, seconds: u32, by: &str) -> Result<Drain, RosterError> {
        let now = self.now();
        let until = now + i64::from(seconds.min(DRAIN_SECONDS_MAX)) * 1000;
        let drain = Drain { what: what.clone(), since: now, until, by: by.to_owned() };
        self.write_down(Note { changes: vec![Change::Drain(drain.clone())], told: Vec::new() }).await?;
        {
            let mut placement = self.placement();
            self.drain_changes.fetch_add(1, Ordering::SeqCst);
            placement.drain(drain.clone());
        }
        tracing::info!(?what, by, seconds, "drained");
        self.tell_drained(&what, WorkerChange::Drained);
        Ok(drain)
    }

    /// Says whether it was drained.
    pub async fn undrain_workers(&self, what: Drained, by: &str) -> Result<bool, RosterError> {
        self.write_down(Note { changes: vec![Change::Undrain(what.clone())], told: Vec::new() }).await?;
        let (was, matches) = {
            let mut placement = self.placement();
            self.drain_changes.fetch_add(1, Ordering::SeqCst);
            (placement.undrain(&what), placement.matches(self.now()))
        };
        self.assign_all(matches);
        tracing::info!(?what, by, "back in service");
        self.tell_drained(&what, WorkerChange::Undrained);
        Ok(was)
    }

    pub fn drains(&self) -> Vec<Drain> {
        self.placement().drains().cloned().collect()
    }

    /// The drain a worker is under, its own or its pool's.
    pub fn drain_of(&self, worker: &Worker) -> Option<Drain> {
        self.placement().drain_of(worker).cloned()
    }

    /// Jobs that stayed too long at drained workers go elsewhere, one after the other.
    pub(crate) async fn end_drains(self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let overstayed = self.placement().overstayed(self.now());
            for (worker, jobs) in overstayed {
                tracing::warn!(worker = %worker.id, jobs = jobs.len(), "drained; its jobs go elsewhere");
                for job in jobs {
                    self.clone().lose_attempt(job, Some(worker.id.clone())).await;
                }
            }
        }
    }

    fn tell_drained(&self, what: &Drained, change: WorkerChange) {
        let members: Vec<Member> = {
            let placement = self.placement();
            let fleet = placement.fleet();
            let is_meant = |worker: &Worker| match what {
                Drained::Worker(id) => worker.id == *id,
                Drained::Pool(pool) => fleet.profile(worker.profile).pool.as_ref() == Some(pool),
            };
            let cap = fleet.iter().map(|(_, worker)| worker).filter(|w| w.contract() == Contract::Cap);
            cap.filter(|worker| is_meant(worker)).map(Member::of).collect()
        };
        let now = self.now();
        for member in members {
            let tenant = member.tenant.clone();
            self.events.tell(now, &tenant, What::Worker { member, change });
        }
    }
}
