//! Why a job has no worker yet.

use super::{LaneIx, Placement, Reason, Reservation, Target};
use crate::id::{JobId, TenantId};

/// Jobs that go before another are counted up to here.
pub const AHEAD_MAX: usize = 1_000;

/// Why a job has no worker yet, and how many jobs go before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub reason: Reason,
    pub ahead: usize,
    /// Workers that fit, whether or not they have room.
    pub fitting: u32,
}

impl Placement {
    /// Why a job waits; nothing if it does not.
    pub fn wait_of(&self, job: &JobId) -> Option<Wait> {
        let Reservation::Waiting { lane, ticket, request } = self.reservations.get(job)? else { return None };
        let waiting = &self.index.lane(*lane).waiting;
        Some(Wait {
            reason: self.reason(*lane, &request.tenant),
            ahead: waiting.ahead(&request.tenant, request.priority, *ticket, AHEAD_MAX),
            fitting: self.index.lane(*lane).members,
        })
    }

    pub(super) fn reason(&self, lane: LaneIx, tenant: &TenantId) -> Reason {
        if !self.tenant_may_go(lane, tenant) {
            return Reason::TenantLimit;
        }
        if !self.topic_may_go(lane) {
            return Reason::TopicLimit;
        }
        let lane = self.index.lane(lane);
        match &lane.selector.target {
            Target::Pools(pools) if pools.is_empty() => Reason::NoPoolMapping,
            _ if lane.members > 0 => Reason::PoolOverloaded,
            _ if lane
                .selector
                .open_to_anyone()
                .is_some_and(|topic| self.anonymous.has_listeners(topic, tenant)) =>
            {
                Reason::PoolOverloaded
            }
            _ => Reason::NoWorkers,
        }
    }
}
