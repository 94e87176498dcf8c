//! The blast radius of a job: the pools and workers that could get it if it were let go.

use super::PlacementTable;
use reveille_core::id::{PoolId, WorkerId};
use reveille_core::placement::routing::Routing;
use reveille_core::placement::{Selector, Target};
use reveille_core::request::Request;
use std::collections::BTreeSet;

/// Workers that are named; the others are counted.
const NAMED_MAX: usize = 20;

#[derive(Debug, Clone, Default)]
pub struct EligibleWorkers {
    pub pools: BTreeSet<PoolId>,
    /// Some of them, by name.
    pub workers: BTreeSet<WorkerId>,
    pub workers_total: usize,
}

impl PlacementTable {
    /// A look at every worker, for when somebody has to decide about a job.
    pub fn eligible_workers(&self, request: &Request, routing: &Routing) -> EligibleWorkers {
        let selector = Selector::of(request, routing);
        let mut eligible = EligibleWorkers::default();
        if let Target::Pools(pools) = &selector.target {
            eligible.pools.extend(pools.iter().cloned());
        }
        let table = self.lock();
        let fleet = table.fleet();
        for (_, worker) in fleet.iter().filter(|(_, worker)| worker.is_online() && !worker.drained) {
            let profile = fleet.profile(worker.profile);
            if !selector.fits(profile) {
                continue;
            }
            eligible.workers_total += 1;
            eligible.pools.extend(profile.pool.clone());
            eligible.workers.insert(worker.id.clone());
            if eligible.workers.len() > NAMED_MAX {
                eligible.workers.pop_last();
            }
        }
        eligible
    }
}
