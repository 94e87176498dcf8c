//! The floor, pool by pool.

use super::Floor;
use crate::id::PoolId;
use rustc_hash::FxHashMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolLoad {
    pub name: Option<PoolId>,
    pub workers: u32,
    pub active_jobs: u32,
    pub capacity: u32,
}

impl Floor {
    /// Workers, their capacity and their jobs, pool by pool.
    pub fn pools(&self) -> Vec<PoolLoad> {
        let mut pools: FxHashMap<Option<PoolId>, PoolLoad> = FxHashMap::default();
        for (_, worker) in self.fleet.iter() {
            let name = self.fleet.profile(worker.profile).pool.clone();
            let pool = pools.entry(name.clone()).or_insert(PoolLoad {
                name,
                workers: 0,
                active_jobs: 0,
                capacity: 0,
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
