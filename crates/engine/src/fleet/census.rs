//! A look over the whole fleet: how many there are and how they are, and who was heard last.
//!
//! Placement is held for a few thousand members at a time, so that a large fleet can be looked at while
//! it beats.

use super::Fleet;
use crate::fleet::views::WorkerView;
use crate::observe::events::Audience;
use reveille_core::fleet::{Who, Worker};
use reveille_core::id::{JobId, TenantId};
use reveille_core::placement::Member;
use reveille_core::presence::agent::AgentStatus;
use reveille_core::presence::{About, Contract, Ttls};
use reveille_core::time::Millis;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How many members there are, and how they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    pub total: u64,
    /// There, and at work.
    pub busy: u64,
    /// Silent for their TTL, or out of reach.
    pub offline: u64,
    /// There, and not well.
    pub degraded: u64,
    /// What those who are there have in hand: sessions, jobs and tasks.
    pub in_hand: u64,
}

impl Count {
    fn add(&mut self, worker: &Worker, ttls: &Ttls, now: Millis) {
        self.total += 1;
        if is_away(worker, ttls, now) {
            self.offline += 1;
            return;
        }
        let in_hand = in_hand(worker);
        self.in_hand += u64::from(in_hand);
        self.busy += u64::from(in_hand > 0 || says_busy(worker));
        self.degraded += u64::from(is_degraded(worker));
    }
}

/// Everybody counted at one moment.
#[derive(Debug, Clone, Default)]
pub struct Census {
    everyone: Count,
    tenants: FxHashMap<TenantId, Count>,
}

impl Census {
    pub fn of(&self, audience: &Audience) -> Count {
        match audience {
            Audience::Everyone => self.everyone,
            Audience::Tenant(tenant) => self.tenants.get(tenant).copied().unwrap_or_default(),
        }
    }
}

/// Whether somebody who looks at a member now finds it gone: its TTL has lapsed (even if its death is not
/// declared yet), it says so itself, or what was sent to it went unheard.
pub fn is_away(worker: &Worker, ttls: &Ttls, now: Millis) -> bool {
    let is_silent = worker.last_seen + ttls.of(worker.contract()) <= now;
    worker.offline || is_silent || worker.says_offline() || (worker.unreachable && !worker.restored)
}

/// The sessions, jobs or tasks that a member has. An agent that says that it is away has none, whatever else it says.
pub fn in_hand(worker: &Worker) -> u32 {
    match &worker.about {
        About::Agent(_) if worker.says_offline() => 0,
        About::Agent(agent) => agent.active_sessions,
        About::Workspace(_) | About::Cap => worker.active(),
    }
}

pub fn says_busy(worker: &Worker) -> bool {
    matches!(&worker.about, About::Agent(agent) if agent.status == AgentStatus::Busy)
}

pub fn is_degraded(worker: &Worker) -> bool {
    matches!(&worker.about, About::Workspace(pulse) if pulse.degraded)
}

impl Fleet {
    /// Counts everybody, tenant by tenant.
    pub fn census(&self) -> Census {
        let (now, ttls) = (self.runtime.now(), self.runtime.settings().ttls);
        let mut census = Census::default();
        self.look_over(|worker| {
            census.everyone.add(worker, &ttls, now);
            match census.tenants.get_mut(&worker.tenant) {
                Some(count) => count.add(worker, &ttls, now),
                None => census.tenants.entry(worker.tenant.clone()).or_default().add(worker, &ttls, now),
            }
        });
        census
    }

    /// At most `max` members, those heard last first.
    pub fn newest(&self, audience: &Audience, contract: Option<Contract>, max: usize) -> Vec<WorkerView> {
        let mut kept: BinaryHeap<Reverse<(Millis, Member)>> = BinaryHeap::new();
        self.look_over(|worker| {
            let is_meant = audience.includes(&worker.tenant)
                && contract.is_none_or(|contract| contract == worker.contract());
            let is_late = kept.len() >= max
                && kept.peek().is_none_or(|Reverse((oldest, _))| worker.last_seen <= *oldest);
            if is_meant && !is_late {
                kept.push(Reverse((worker.last_seen, Member::of(worker))));
                if kept.len() > max {
                    kept.pop();
                }
            }
        });
        let newest_first = kept.into_sorted_vec();
        newest_first.iter().filter_map(|Reverse((_, member))| self.worker(member.who())).collect()
    }

    /// The jobs a member has, as far as we know.
    pub fn held_by(&self, who: Who<'_>) -> Vec<JobId> {
        self.placement.lock().held_by(who)
    }

    fn look_over(&self, mut look: impl FnMut(&Worker)) {
        for part in 0.. {
            let placement = self.placement.lock();
            let Some(workers) = placement.fleet().part(part) else { return };
            workers.for_each(&mut look);
        }
    }
}
