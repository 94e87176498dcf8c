//! How far a job would reach if it were let go: the pools and workers that could get it.

use crate::Engine;
use reveille_core::id::{PoolId, WorkerId};
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

impl Engine {
    /// A look at every worker, for when somebody has to judge a job.
    pub fn reach(&self, request: &Request) -> EligibleWorkers {
        let selector = Selector::of(request, &self.rules().routing);
        let mut reach = EligibleWorkers::default();
        if let Target::Pools(pools) = &selector.target {
            reach.pools.extend(pools.iter().cloned());
        }
        let placement = self.placement();
        let fleet = placement.fleet();
        for (_, worker) in fleet.iter().filter(|(_, worker)| worker.is_online() && !worker.drained) {
            let profile = fleet.profile(worker.profile);
            if !selector.fits(profile) {
                continue;
            }
            reach.workers_total += 1;
            reach.pools.extend(profile.pool.clone());
            reach.workers.insert(worker.id.clone());
            if reach.workers.len() > NAMED_MAX {
                reach.workers.pop_last();
            }
        }
        reach
    }
}
