//! The worker snapshot as it is written: `sys:workers:snapshot`, in the reference's shape and with what
//! that leaves out, so that nothing placement needs is lost over a restart.

use reveille_core::fleet::{Load, Profile, Worker, WorkerCredential, WorkerGrant};
use reveille_core::id::{KeyId, PoolId, TenantId, Topic, WorkerId};
use reveille_core::placement::RestoredWorker;
use reveille_core::presence::Contract;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// RFC 3339.
    pub captured_at: String,
    /// The same moment in milliseconds.
    #[serde(default)]
    pub captured_at_ms: i64,
    pub writer_id: String,
    #[serde(default)]
    pub pools: BTreeMap<String, PoolEntry>,
    #[serde(default)]
    pub topics: BTreeMap<String, TopicEntry>,
    #[serde(default)]
    pub workers: Vec<WorkerEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PoolEntry {
    pub workers: u32,
    pub active_jobs: u32,
    pub capacity: u32,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TopicEntry {
    pub pool: String,
    pub workers: u32,
    pub capacity: u32,
    pub available: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerEntry {
    pub worker_id: String,
    pub pool: String,
    pub active_jobs: u32,
    pub max_parallel_jobs: u32,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub capabilities: BTreeSet<String>,
    pub cpu_load: f32,
    pub gpu_utilization: f32,
    pub memory_load: f32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub region: String,
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent_name: String,
    pub contract: Contract,
    pub tenant: String,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub topics: BTreeSet<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counts_jobs: bool,
    /// The key that it came with, if that says what it may serve.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
}

impl Default for WorkerEntry {
    fn default() -> Self {
        Self {
            worker_id: String::new(),
            pool: String::new(),
            active_jobs: 0,
            max_parallel_jobs: 0,
            capabilities: BTreeSet::new(),
            cpu_load: 0.0,
            gpu_utilization: 0.0,
            memory_load: 0.0,
            region: String::new(),
            kind: String::new(),
            labels: BTreeMap::new(),
            agent_name: String::new(),
            // Whoever wrote a snapshot without this word knew no other contract.
            contract: Contract::Cap,
            tenant: String::new(),
            topics: BTreeSet::new(),
            counts_jobs: false,
            key: String::new(),
        }
    }
}

impl Snapshot {
    /// Adds a worker, and what it brings to its pool and topics.
    pub fn add(&mut self, worker: &Worker, profile: &Profile) {
        let pool_name = profile.pool.as_ref().map(ToString::to_string).unwrap_or_default();
        if worker.contract() == Contract::Cap {
            let pool = self.pools.entry(pool_name.clone()).or_default();
            pool.workers += 1;
            pool.active_jobs += worker.active();
            pool.capacity += worker.capacity();
            for topic in &profile.topics {
                let entry = self.topics.entry(topic.to_string()).or_default();
                entry.pool.clone_from(&pool_name);
                entry.workers += 1;
                entry.capacity += worker.capacity();
                entry.available |= worker.can_take();
            }
        }
        self.workers.push(WorkerEntry {
            worker_id: worker.id.to_string(),
            pool: pool_name,
            active_jobs: worker.active(),
            max_parallel_jobs: worker.load.max_parallel_jobs,
            capabilities: profile.capabilities.clone(),
            cpu_load: worker.load.cpu,
            gpu_utilization: worker.load.gpu,
            memory_load: worker.load.memory,
            region: profile.region.clone(),
            kind: profile.kind.clone(),
            labels: profile.labels.clone(),
            agent_name: worker.agent_name().to_owned(),
            contract: worker.contract(),
            tenant: worker.tenant.to_string(),
            topics: profile.topics.iter().map(ToString::to_string).collect(),
            counts_jobs: worker.counts_jobs,
            key: profile.credential.as_ref().map(|own| own.key.to_string()).unwrap_or_default(),
        });
    }
}

impl WorkerEntry {
    /// The CAP worker that this is; nothing for a member of another contract, or a name that cannot be. What its key
    /// lets it serve is what `grant_of` says now; a key that opens nothing any more serves nobody.
    pub fn remembered(
        self,
        default_tenant: &TenantId,
        grant_of: impl Fn(&KeyId) -> Option<Arc<WorkerCredential>>,
    ) -> Option<RestoredWorker> {
        if self.contract != Contract::Cap {
            return None;
        }
        let credential = KeyId::parse(&self.key).ok().map(|key| {
            let nothing = || {
                Arc::new(WorkerCredential { key: key.clone(), grant: WorkerGrant::default(), signs_as: None })
            };
            grant_of(&key).unwrap_or_else(nothing)
        });
        Some(RestoredWorker {
            id: WorkerId::parse(&self.worker_id).ok()?,
            tenant: TenantId::parse(&self.tenant).unwrap_or_else(|_| default_tenant.clone()),
            agent_name: self.agent_name,
            profile: Profile {
                pool: PoolId::parse(&self.pool).ok(),
                region: self.region,
                kind: self.kind,
                capabilities: self.capabilities,
                labels: self.labels,
                topics: self.topics.iter().filter_map(|topic| Topic::parse(topic).ok()).collect(),
                workspace: None,
                credential,
            },
            // What it was doing then, the jobs themselves say better.
            load: Load {
                active_jobs: 0,
                max_parallel_jobs: self.max_parallel_jobs,
                cpu: self.cpu_load,
                gpu: self.gpu_utilization,
                memory: self.memory_load,
            },
            counts_jobs: self.counts_jobs,
        })
    }
}
