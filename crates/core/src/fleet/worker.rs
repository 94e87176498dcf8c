//! A member of the fleet: what it said of itself, and what it has of ours.

use super::{ProfileIx, WorkerCredential};
use crate::id::{PoolId, TenantId, Topic, WorkerId, WorkspaceId};
use crate::presence::agent::AgentStatus;
use crate::presence::{About, Contract};
use crate::time::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Added to the score of a worker that was restored and not heard yet: it gets a job only if nobody who
/// is known to live can take it.
const RESTORED_PENALTY: u32 = 1_000_000_000;

/// What a CAP heartbeat tells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Beat {
    pub pool: Option<PoolId>,
    pub region: String,
    pub kind: String,
    pub agent_name: String,
    pub capabilities: BTreeSet<String>,
    pub labels: BTreeMap<String, String>,
    pub load: Load,
}

/// The numbers of a heartbeat. Percentages run from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    pub active_jobs: u32,
    pub max_parallel_jobs: u32,
    pub cpu: f32,
    pub gpu: f32,
    pub memory: f32,
}

/// What many workers have in common; placement looks at nothing else of a worker but its load.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Profile {
    pub pool: Option<PoolId>,
    pub region: String,
    pub kind: String,
    pub capabilities: BTreeSet<String>,
    pub labels: BTreeMap<String, String>,
    /// Topics the worker said it serves, or was seen listening on.
    pub topics: BTreeSet<Topic>,
    /// It is this workspace, and takes what is delegated to it.
    pub workspace: Option<WorkspaceId>,
    /// It came with a credential that says what it may serve; without one it serves everybody.
    pub credential: Option<Arc<WorkerCredential>>,
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about one worker")]
pub struct Worker {
    /// Its name within its contract; an agent's is unique within its tenant only.
    pub id: WorkerId,
    /// Whose it is: the tenant of the credential it came with.
    pub tenant: TenantId,
    pub about: About,
    pub profile: ProfileIx,
    pub last_seen: Millis,
    pub load: Load,
    /// Jobs it runs that did not come from us, as of its last beat.
    pub foreign_jobs: u32,
    /// Jobs of ours at this worker, counted here and not by it.
    pub held: u32,
    /// Beats in a row that said "nothing to do".
    pub idle_beats: u8,
    /// It counts its jobs truthfully: it introduced itself, or listens on its own subject.
    pub counts_jobs: bool,
    /// A packet for it reached nobody; no new jobs until it is heard again.
    pub unreachable: bool,
    /// A job says that it has it; it has not been heard since we started.
    pub expected: bool,
    /// It was there before we restarted and has not been heard since.
    pub restored: bool,
    /// Its TTL has lapsed. Only contracts that remember their dead have such members.
    pub offline: bool,
    /// An operator has taken it, or its pool, out of service.
    pub drained: bool,
    /// What is known of it has changed since it was last written down.
    pub(super) unwritten: bool,
    pub(super) agent_name: Option<Box<str>>,
    pub(super) armed: u32,
}

impl Worker {
    pub fn contract(&self) -> Contract {
        self.about.contract()
    }

    pub fn agent_name(&self) -> &str {
        match &self.about {
            About::Agent(agent) => &agent.name,
            _ => self.agent_name.as_deref().unwrap_or_default(),
        }
    }

    /// It is there after all.
    pub fn heard(&mut self) {
        self.unreachable = false;
        self.expected = false;
        self.restored = false;
    }

    /// It has been heard within its TTL, does not say that it is away, and nothing sent to it went unheard since.
    pub fn is_online(&self) -> bool {
        !self.offline && !self.unreachable && !self.says_offline()
    }

    /// It beats, and says that it is away; only agents have a word for that.
    pub fn says_offline(&self) -> bool {
        matches!(&self.about, About::Agent(agent) if agent.status == AgentStatus::Offline)
    }

    pub fn active(&self) -> u32 {
        self.held + self.foreign_jobs
    }

    /// A worker that does not say how much it can do gets one job at a time.
    pub fn capacity(&self) -> u32 {
        self.load.max_parallel_jobs.max(1)
    }

    /// How many jobs it may have: 90 % of what it can do, and one at least.
    pub fn jobs_max(&self) -> u32 {
        (u64::from(self.capacity()) * 9).div_ceil(10) as u32
    }

    /// At one of the three limits: 90 % of its jobs, of its CPU, of its GPU.
    pub fn is_overloaded(&self) -> bool {
        self.active() >= self.jobs_max() || self.load.cpu >= 90.0 || self.load.gpu >= 90.0
    }

    /// Whether it may get a job now.
    pub fn can_take(&self) -> bool {
        self.is_online() && !self.drained && !self.is_overloaded()
    }

    /// Jobs plus CPU and GPU as fractions, in thousandths; the lowest gets the next job.
    pub fn score(&self) -> u32 {
        let busy = (self.load.cpu.clamp(0.0, 100.0) + self.load.gpu.clamp(0.0, 100.0)) * 10.0;
        let score = self.active().saturating_mul(1000).saturating_add(busy as u32);
        if self.restored { score.saturating_add(RESTORED_PENALTY) } else { score }
    }
}
