//! What can be looked at: workers and pools, as placement has them.

use super::Fleet;
use crate::observe::events::Audience;
use reveille_core::fleet::{self, Profile, Who, Worker};
use reveille_core::id::{TenantId, WorkerId};
use reveille_core::placement::{Member, PoolLoad};
use reveille_core::presence::Contract;
use reveille_core::time::Millis;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A worker as it was when it was looked at.
#[derive(Debug, Clone)]
pub struct WorkerView {
    pub worker: Worker,
    pub profile: Arc<Profile>,
    /// When its silence becomes death.
    pub dead_at: Millis,
}

fn view(fleet: &fleet::Fleet, worker: &Worker) -> WorkerView {
    let profile = fleet.profile(worker.profile).clone();
    WorkerView { worker: worker.clone(), profile, dead_at: fleet.dead_at(worker) }
}

impl Fleet {
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
        let placement = self.placement.lock();
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
        let placement = self.placement.lock();
        let fleet = placement.fleet();
        Some(view(fleet, fleet.lookup(who)?))
    }

    pub fn pools(&self, audience: &Audience) -> Vec<PoolLoad> {
        self.placement.lock().pools(|worker| audience.includes(&worker.tenant))
    }
}
