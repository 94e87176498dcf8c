//! Placement, pool by pool.

use super::Placement;
use crate::fleet::Worker;
use crate::id::PoolId;
use crate::presence::{Contract, Drain, Drained};
use rustc_hash::FxHashMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolLoad {
    pub name: Option<PoolId>,
    pub workers: u32,
    pub active_jobs: u32,
    pub capacity: u32,
    /// The whole pool is out of service.
    pub drained: Option<Drain>,
}

impl Placement {
    /// CAP workers that count, their capacity and their jobs, pool by pool.
    pub fn pools(&self, counts: impl Fn(&Worker) -> bool) -> Vec<PoolLoad> {
        let mut pools: FxHashMap<Option<PoolId>, PoolLoad> = FxHashMap::default();
        let cap = self.fleet.iter().map(|(_, worker)| worker);
        for worker in cap.filter(|worker| worker.contract() == Contract::Cap && counts(worker)) {
            let name = self.fleet.profile(worker.profile).pool.clone();
            let pool = pools.entry(name.clone()).or_insert_with(|| PoolLoad {
                workers: 0,
                active_jobs: 0,
                capacity: 0,
                drained: name
                    .as_ref()
                    .and_then(|name| self.drains.get(&Drained::Pool(name.clone())))
                    .cloned(),
                name,
            });
            pool.workers += 1;
            pool.active_jobs += worker.active();
            pool.capacity += worker.capacity();
        }
        let mut pools: Vec<PoolLoad> = pools.into_values().collect();
        pools.sort_by(|a, b| a.name.cmp(&b.name));
        pools
    }
}
