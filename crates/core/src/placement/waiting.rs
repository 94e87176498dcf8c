//! Jobs that wait for the same workers, in the order they will go: by priority, and within a
//! priority tenants take turns, each with its oldest job.

use crate::id::{JobId, TenantId};
use crate::request::Priority;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Waiting {
    levels: [Level; 3],
    len: usize,
}

#[derive(Default)]
struct Level {
    /// Tenants that wait here, the one whose turn it is first.
    turns: BTreeSet<(u64, TenantId)>,
    tenants: FxHashMap<TenantId, Queue>,
}

struct Queue {
    turn: u64,
    jobs: BTreeMap<Ticket, JobId>,
}

/// When a job began to wait: tickets are handed out in order.
pub type Ticket = u64;

/// Whose turn it is, comparable across lanes: a tenant that waits in several goes with its oldest job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    pub priority: Priority,
    pub turn: u64,
    pub oldest: Ticket,
}

impl Waiting {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A tenant that was not waiting goes to the back of the turns, at `now_serving`.
    pub fn push(
        &mut self,
        job: JobId,
        tenant: &TenantId,
        priority: Priority,
        ticket: Ticket,
        now_serving: u64,
    ) {
        let level = &mut self.levels[priority as usize];
        let queue = level.tenants.entry(tenant.clone()).or_insert_with(|| {
            level.turns.insert((now_serving, tenant.clone()));
            Queue { turn: now_serving, jobs: BTreeMap::new() }
        });
        if queue.jobs.insert(ticket, job).is_none() {
            self.len += 1;
        }
    }

    pub fn remove(&mut self, tenant: &TenantId, priority: Priority, ticket: Ticket) -> Option<JobId> {
        let level = &mut self.levels[priority as usize];
        let queue = level.tenants.get_mut(tenant)?;
        let job = queue.jobs.remove(&ticket)?;
        self.len -= 1;
        if queue.jobs.is_empty() {
            level.turns.remove(&(queue.turn, tenant.clone()));
            level.tenants.remove(tenant);
        }
        Some(job)
    }

    pub fn has(&self, tenant: &TenantId) -> bool {
        self.levels.iter().any(|level| level.tenants.contains_key(tenant))
    }

    /// Whose turn it is, among tenants that may go at all. A tenant that was `served` in another lane since
    /// has had its turn: it goes to where it then stands.
    pub fn first(
        &mut self,
        may_go: impl Fn(&TenantId) -> bool,
        served: impl Fn(&TenantId, Priority) -> u64,
    ) -> Option<(Turn, TenantId)> {
        for priority in Priority::ALL {
            let level = &mut self.levels[priority as usize];
            while let Some((turn, tenant)) = level.turns.iter().find(|(_, tenant)| may_go(tenant)).cloned() {
                let queue = level.tenants.get_mut(&tenant)?;
                let served = served(&tenant, priority);
                if served <= turn {
                    let oldest = queue.jobs.first_key_value().map_or(0, |(ticket, _)| *ticket);
                    return Some((Turn { priority, turn, oldest }, tenant));
                }
                queue.turn = served;
                level.turns.remove(&(turn, tenant.clone()));
                level.turns.insert((served, tenant));
            }
        }
        None
    }

    /// Takes a tenant's oldest job and sends the tenant to the back.
    pub fn take(&mut self, priority: Priority, tenant: &TenantId, now_serving: u64) -> Option<JobId> {
        let level = &mut self.levels[priority as usize];
        let queue = level.tenants.get_mut(tenant)?;
        let (_, job) = queue.jobs.pop_first()?;
        self.len -= 1;
        level.turns.remove(&(queue.turn, tenant.clone()));
        if queue.jobs.is_empty() {
            level.tenants.remove(tenant);
        } else {
            queue.turn = now_serving;
            level.turns.insert((now_serving, tenant.clone()));
        }
        Some(job)
    }

    /// Jobs that go before this one if every tenant may go, counted up to `max`.
    pub fn ahead(&self, tenant: &TenantId, priority: Priority, ticket: Ticket, max: usize) -> usize {
        let higher: usize = self.levels[..priority as usize]
            .iter()
            .flat_map(|level| level.tenants.values())
            .map(|queue| queue.jobs.len())
            .sum();
        let level = &self.levels[priority as usize];
        let mine = level.tenants.get(tenant).map_or(0, |queue| queue.jobs.range(..ticket).take(max).count());
        let others = level.tenants.iter().filter(|(other, _)| *other != tenant);
        let others: usize = others.map(|(_, queue)| queue.jobs.len().min(mine + 1)).sum();
        (higher + mine + others).min(max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_order_the_queue_and_tenants_take_turns() {
        let mut waiting = Waiting::default();
        let jobs = [
            ("b1", "acme", Priority::Batch),
            ("a1", "acme", Priority::Interactive),
            ("a2", "acme", Priority::Interactive),
            ("a3", "acme", Priority::Interactive),
            ("z1", "zeta", Priority::Interactive),
            ("c1", "acme", Priority::Critical),
            ("z2", "zeta", Priority::Interactive),
        ];
        for (ticket, (job, tenant, priority)) in jobs.into_iter().enumerate() {
            waiting.push(JobId::known(job), &TenantId::known(tenant), priority, ticket as u64, 0);
        }
        assert_eq!(waiting.ahead(&TenantId::known("acme"), Priority::Interactive, 3, 100), 5);
        let mut order = Vec::new();
        for serving in 1.. {
            let Some((turn, tenant)) = waiting.first(|_| true, |_, _| 0) else { break };
            let tenant = tenant.clone();
            order.push(waiting.take(turn.priority, &tenant, serving).unwrap().to_string());
        }
        assert_eq!(order, ["c1", "a1", "z1", "a2", "z2", "a3", "b1"]);
        assert!(waiting.is_empty());
    }

    #[test]
    fn a_tenant_that_may_not_go_is_passed_over() {
        let mut waiting = Waiting::default();
        waiting.push(JobId::known("a"), &TenantId::known("acme"), Priority::Critical, 1, 0);
        waiting.push(JobId::known("z"), &TenantId::known("zeta"), Priority::Batch, 2, 0);
        let (turn, tenant) = waiting.first(|tenant| tenant.as_str() != "acme", |_, _| 0).unwrap();
        assert_eq!((turn.priority, tenant.as_str()), (Priority::Batch, "zeta"));
        assert!(waiting.remove(&TenantId::known("acme"), Priority::Critical, 1).is_some());
        assert!(waiting.remove(&TenantId::known("acme"), Priority::Critical, 1).is_none());
        assert_eq!(waiting.len(), 1);
    }
}
