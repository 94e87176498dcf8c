//! What the rooms are built on: the runtime, and the three rooms that know no job.

use crate::cluster::Cluster;
use crate::observe::Observe;
use crate::placement::PlacementTable;
use crate::runtime::Runtime;
use std::sync::Arc;

#[derive(Clone)]
pub struct Base {
    pub runtime: Runtime,
    pub observe: Observe,
    pub cluster: Arc<dyn Cluster>,
    pub placement: PlacementTable,
}
