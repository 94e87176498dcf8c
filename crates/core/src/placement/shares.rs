//! How many jobs tenants and topics have at workers, how many they may have, and when each tenant last had
//! its turn.
//!
//! A place counts from the moment it is taken, which is before the commit that needs it, until a commit
//! has given it back. So whatever is committed never shows more than a limit allows. Only a limit that is
//! lowered can find more jobs at work than it allows; it lets them end.

use crate::id::{TenantId, Topic};
use crate::request::{Priority, Request};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Shares {
    tenants: FxHashMap<TenantId, TenantShare>,
    /// Jobs at workers.
    topics: FxHashMap<Topic, u32>,
    /// Jobs from before our start may be missing from the counts.
    is_recounting: bool,
}

#[derive(Default)]
struct TenantShare {
    /// Jobs at workers.
    active: u32,
    limit: Option<u32>,
    /// Lanes in which it waits.
    lanes: u32,
    /// Those of them that have a limit of their own for each tenant.
    bounded_lanes: u32,
    /// Its last turn at each priority, in whichever lane.
    served: [u64; 3],
}

/// Whether a lane limits the tenants that wait in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LaneKind {
    Unbounded,
    /// It has a limit of its own for each tenant.
    Bounded,
}

impl Shares {
    pub fn set_limits(&mut self, limits: BTreeMap<TenantId, u32>) {
        self.tenants.values_mut().for_each(|tenant| tenant.limit = None);
        for (tenant, limit) in limits {
            self.tenants.entry(tenant).or_default().limit = Some(limit);
        }
        self.tenants.retain(|_, tenant| !tenant.is_idle());
    }

    /// From here until [`Shares::end_recount`] nobody who has a limit gets a place.
    pub fn begin_recount(&mut self) {
        self.is_recounting = true;
    }

    pub fn end_recount(&mut self) {
        self.is_recounting = false;
    }

    /// Whether a tenant may have one more job at a worker; `jobs_max` is what the job's verdict says.
    pub fn tenant_may_go(&self, tenant: &TenantId, jobs_max: Option<u32>) -> bool {
        let known = self.tenants.get(tenant);
        let limit = known.and_then(|tenant| tenant.limit);
        let active = known.map_or(0, |tenant| tenant.active);
        let limit = limit.into_iter().chain(jobs_max).min();
        limit.is_none_or(|limit| active < limit && !self.is_recounting)
    }

    pub fn topic_may_go(&self, topic: &Topic, limit: u32) -> bool {
        self.active_of_topic(topic) < limit && !self.is_recounting
    }

    pub fn active_of_topic(&self, topic: &Topic) -> u32 {
        self.topics.get(topic).copied().unwrap_or_default()
    }

    /// A job has a place at a worker.
    pub fn count(&mut self, request: &Request) {
        self.tenants.entry(request.tenant.clone()).or_default().active += 1;
        *self.topics.entry(request.topic.clone()).or_default() += 1;
    }

    /// It has none any more. Says whether its tenant may have waited for that.
    pub fn uncount(&mut self, request: &Request) -> bool {
        if let Some(active) = self.topics.get_mut(&request.topic) {
            *active -= 1;
            if *active == 0 {
                self.topics.remove(&request.topic);
            }
        }
        let Some(tenant) = self.tenants.get_mut(&request.tenant) else { return false };
        let was_full = tenant.limit.is_some_and(|limit| tenant.active >= limit);
        let may_wait = was_full || tenant.bounded_lanes > 0;
        tenant.active -= 1;
        self.drop_idle(&request.tenant);
        may_wait
    }

    /// A tenant begins to wait in one more lane.
    pub fn enter_lane(&mut self, tenant: &TenantId, lane: LaneKind) {
        let tenant = self.tenants.entry(tenant.clone()).or_default();
        tenant.lanes += 1;
        tenant.bounded_lanes += u32::from(lane == LaneKind::Bounded);
    }

    /// And waits there no longer.
    pub fn leave_lane(&mut self, tenant: &TenantId, lane: LaneKind) {
        let Some(known) = self.tenants.get_mut(tenant) else { return };
        known.lanes -= 1;
        known.bounded_lanes -= u32::from(lane == LaneKind::Bounded);
        self.drop_idle(tenant);
    }

    /// The lanes are built again: no tenant waits anywhere.
    pub fn clear_lanes(&mut self) {
        self.tenants.values_mut().for_each(|tenant| (tenant.lanes, tenant.bounded_lanes) = (0, 0));
    }

    pub fn lanes_of(&self, tenant: &TenantId) -> u32 {
        self.tenants.get(tenant).map_or(0, |tenant| tenant.lanes)
    }

    pub fn record_turn(&mut self, tenant: &TenantId, priority: Priority, turn: u64) {
        self.tenants.entry(tenant.clone()).or_default().served[priority as usize] = turn;
    }

    pub fn last_turn(&self, tenant: &TenantId, priority: Priority) -> u64 {
        self.tenants.get(tenant).map_or(0, |tenant| tenant.served[priority as usize])
    }

    fn drop_idle(&mut self, tenant: &TenantId) {
        if self.tenants.get(tenant).is_some_and(TenantShare::is_idle) {
            self.tenants.remove(tenant);
        }
    }
}

impl TenantShare {
    fn is_idle(&self) -> bool {
        self.active == 0 && self.lanes == 0 && self.limit.is_none()
    }
}
