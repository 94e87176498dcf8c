//! A server that is alone: nobody to tell, nobody to wait for, and its own count is exact.

use super::{Cluster, JobCache, PeerMessage, SeenBy};
use crate::observe::Observe;
use crate::observe::events::{What, WorkerChange};
use crate::runtime::Runtime;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_core::placement::Member;
use reveille_core::time::Millis;
use reveille_store::Quota;
use std::time::Duration;

pub struct Alone {
    runtime: Runtime,
    observe: Observe,
}

impl Alone {
    pub fn new(runtime: Runtime, observe: Observe) -> Self {
        Self { runtime, observe }
    }
}

impl Cluster for Alone {
    fn name(&self) -> &'static str {
        ""
    }

    fn members(&self) -> Vec<String> {
        Vec::new()
    }

    fn is_cut_off(&self) -> bool {
        false
    }

    fn others_may_act(&self) -> bool {
        false
    }

    fn publish_committed(&self, job: &Job) {
        self.observe.events().publish(job.updated_at, &job.request.tenant, What::of_job(job));
    }

    fn step_event(&self, _job: &Job) -> Option<Bytes> {
        None
    }

    fn publish(&self, _message: &dyn Fn() -> PeerMessage) {}

    fn announce(&self, member: Member, change: WorkerChange, _seen_by: SeenBy) {
        let tenant = member.tenant.clone();
        self.observe.events().publish(self.runtime.now(), &tenant, What::Worker { member, change });
    }

    fn job_cache(&self) -> Option<&JobCache> {
        None
    }

    fn quota(&self, _of: &dyn Fn() -> Quota) -> Quota {
        Quota::default()
    }

    fn look_by(&self, due: Millis, _now: Millis) -> Millis {
        due
    }

    fn wake_patience(&self) -> Duration {
        Duration::MAX
    }

    fn ended_revision(&self, _job: &JobId) -> Option<u64> {
        None
    }

    fn is_late(&self, _committed_at: Millis, _now: Millis) -> bool {
        false
    }
}
