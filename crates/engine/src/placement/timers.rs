//! The live jobs: how many each tenant has, and when to look at which again. What that moment means is the
//! core's business.

use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{Job, State};
use reveille_core::time::Millis;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct JobTimers(Mutex<TimerEntries>);

#[derive(Default)]
struct TimerEntries {
    order: BTreeSet<(Millis, JobId)>,
    of_job: FxHashMap<JobId, TimerEntry>,
    of_tenant: FxHashMap<TenantId, TenantCounts>,
}

/// How many live jobs one tenant has.
#[derive(Default)]
struct TenantCounts {
    live: usize,
    /// Those that wait for a person.
    asked: usize,
}

/// Why a job is not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAdmitted {
    /// Its tenant has so many live jobs.
    Queue(usize),
    /// As many jobs of its tenant wait for a person as may, and this one would have to.
    Approvals,
}

struct TimerEntry {
    tenant: TenantId,
    state: State,
    revision: u64,
    /// Another server looks after it; here it only counts.
    is_anothers: bool,
    /// Nothing while it is being looked at, or is about to be taken in.
    at: Option<Millis>,
}

/// What is to come, for those who look on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// How many moments are waited for.
    pub timers: usize,
    /// The first of them. One that has passed is late.
    pub next: Option<Millis>,
}

/// A moment that passed this long ago was missed.
const OVERDUE_MS: i64 = 1_000;

impl JobTimers {
    /// Counts a job that is about to be taken in, unless its tenant has as many as it may already. Whoever counts one
    /// sets or clears it afterwards.
    pub fn admit(&self, job: &Job, queue_max: usize, approvals_max: usize) -> Result<(), NotAdmitted> {
        let mut entries = self.lock();
        if entries.of_job.contains_key(job.id()) {
            return Ok(());
        }
        let live = entries.live_of(&job.request.tenant);
        if live >= queue_max {
            return Err(NotAdmitted::Queue(live));
        }
        if asks(job.state()) && entries.asked_of(&job.request.tenant) >= approvals_max {
            return Err(NotAdmitted::Approvals);
        }
        entries.count(job, None);
        Ok(())
    }

    /// Counts a job among those that wait for a person before it does, if one more may: two that are decided at once
    /// must not both see the last place. Whoever counts one sets it afterwards, or takes it back.
    pub fn reserve_asked(&self, job: &Job, max: usize) -> bool {
        let mut entries = self.lock();
        let counted = entries.of_job.get(job.id()).filter(|entry| entry.tenant == job.request.tenant);
        if counted.is_some_and(|entry| asks(entry.state)) {
            return true;
        }
        let has_room = entries.asked_of(&job.request.tenant) < max;
        if has_room {
            entries.set_state(job.id(), job.state());
        }
        has_room
    }

    /// The job is in this state after all.
    pub fn take_back(&self, job: &Job) {
        self.lock().set_state(job.id(), job.state());
    }

    /// Replaces the job's moment.
    pub fn set(&self, job: &Job, at: Millis) {
        let mut entries = self.lock();
        let before = match entries.of_job.get_mut(job.id()) {
            Some(entry) if entry.tenant == job.request.tenant => {
                let was = std::mem::replace(&mut entry.state, job.state());
                (entry.revision, entry.is_anothers) = (job.revision, false);
                let before = entry.at.replace(at);
                if let Some(counts) = entries.of_tenant.get_mut(&job.request.tenant) {
                    counts.asked = counts.asked + usize::from(asks(job.state())) - usize::from(asks(was));
                }
                before
            }
            _ => {
                entries.uncount(job.id());
                entries.count(job, Some(at));
                None
            }
        };
        if before == Some(at) {
            return;
        }
        if let Some(before) = before {
            entries.order.remove(&(before, job.id().clone()));
        }
        entries.order.insert((at, job.id().clone()));
    }

    /// Looks at a job then that another server has, should nothing be heard of it before.
    pub fn watch(&self, job: &JobId, tenant: &TenantId, state: State, revision: u64, at: Millis) {
        let mut entries = self.lock();
        entries.uncount(job);
        entries.count_one(tenant, state);
        let entry = TimerEntry { tenant: tenant.clone(), state, revision, is_anothers: true, at: Some(at) };
        entries.of_job.insert(job.clone(), entry);
        entries.order.insert((at, job.clone()));
    }

    /// Whether another server looks after the job, as far as we know.
    pub fn is_anothers(&self, job: &JobId) -> bool {
        self.lock().of_job.get(job).is_some_and(|entry| entry.is_anothers)
    }

    /// The jobs that we look after.
    pub fn own(&self) -> Vec<JobId> {
        let entries = self.lock();
        let mut own: Vec<_> =
            entries.of_job.iter().filter(|(_, entry)| !entry.is_anothers).map(|(id, _)| id.clone()).collect();
        own.sort_unstable();
        own
    }

    /// The revision of a live job that we know of.
    pub fn revision_of(&self, job: &JobId) -> Option<u64> {
        self.lock().of_job.get(job).map(|entry| entry.revision)
    }

    /// The job is not looked at again.
    pub fn clear(&self, job: &JobId) {
        self.lock().uncount(job);
    }

    /// How many jobs of each state should have been looked at by now, and were not.
    pub fn overdue(&self, now: Millis) -> BTreeMap<State, u64> {
        let entries = self.lock();
        let mut overdue = BTreeMap::new();
        for (_, job) in entries.order.iter().take_while(|(at, _)| *at < now - OVERDUE_MS) {
            if let Some(entry) = entries.of_job.get(job) {
                *overdue.entry(entry.state).or_default() += 1;
            }
        }
        overdue
    }

    /// The moments that are waited for, also those of jobs that another server looks after.
    pub fn ahead(&self) -> Ahead {
        let entries = self.lock();
        Ahead { timers: entries.order.len(), next: entries.order.first().map(|(at, _)| *at) }
    }

    /// Takes at most `max` jobs whose moment has come. They still count.
    pub fn due(&self, now: Millis, max: usize) -> Vec<JobId> {
        let mut entries = self.lock();
        let mut due = Vec::new();
        while due.len() < max && entries.order.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, job)) = entries.order.pop_first() {
                if let Some(entry) = entries.of_job.get_mut(&job) {
                    entry.at = None;
                }
                due.push(job);
            }
        }
        due
    }

    /// How many jobs are live.
    pub fn len(&self) -> usize {
        self.lock().of_job.len()
    }

    /// How many of them are a tenant's.
    pub fn live_of(&self, tenant: &TenantId) -> usize {
        self.lock().live_of(tenant)
    }

    /// And how many of those wait for a person.
    #[cfg(test)]
    fn asked_of(&self, tenant: &TenantId) -> usize {
        self.lock().asked_of(tenant)
    }

    fn lock(&self) -> MutexGuard<'_, TimerEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TimerEntries {
    fn set_state(&mut self, job: &JobId, state: State) {
        let Some(entry) = self.of_job.get_mut(job) else { return };
        let was = std::mem::replace(&mut entry.state, state);
        if let Some(counts) = self.of_tenant.get_mut(&entry.tenant) {
            counts.asked = counts.asked + usize::from(asks(state)) - usize::from(asks(was));
        }
    }

    fn live_of(&self, tenant: &TenantId) -> usize {
        self.of_tenant.get(tenant).map_or(0, |counts| counts.live)
    }

    fn asked_of(&self, tenant: &TenantId) -> usize {
        self.of_tenant.get(tenant).map_or(0, |counts| counts.asked)
    }

    fn count_one(&mut self, tenant: &TenantId, state: State) {
        let counts = self.of_tenant.entry(tenant.clone()).or_default();
        counts.live += 1;
        counts.asked += usize::from(asks(state));
    }

    fn count(&mut self, job: &Job, at: Option<Millis>) {
        let tenant = job.request.tenant.clone();
        self.count_one(&tenant, job.state());
        self.of_job.insert(
            job.id().clone(),
            TimerEntry { tenant, state: job.state(), revision: job.revision, is_anothers: false, at },
        );
    }

    fn uncount(&mut self, job: &JobId) {
        let Some(entry) = self.of_job.remove(job) else { return };
        if let Some(at) = entry.at {
            self.order.remove(&(at, job.clone()));
        }
        if let Some(counts) = self.of_tenant.get_mut(&entry.tenant) {
            counts.live -= 1;
            counts.asked -= usize::from(asks(entry.state));
            if counts.live == 0 {
                self.of_tenant.remove(&entry.tenant);
            }
        }
    }
}

fn asks(state: State) -> bool {
    state == State::ApprovalRequired
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::life;
    use reveille_core::policy::{Decision, Policy, RecordedVerdict, Verdict};
    use reveille_core::request::Request;

    #[test]
    fn a_job_has_one_moment_and_the_last_word_counts() {
        let timers = JobTimers::default();
        let (a, b) = (job("a", "t"), job("b", "t"));
        timers.set(&a, Millis(10));
        timers.set(&b, Millis(20));
        timers.set(&a, Millis(30));
        assert_eq!(timers.overdue(Millis(1_025)), BTreeMap::from([(State::Pending, 1)]));
        assert_eq!(timers.ahead(), Ahead { timers: 2, next: Some(Millis(20)) });
        assert_eq!(timers.due(Millis(25), 10), [b.id().clone()]);
        assert_eq!(timers.ahead(), Ahead { timers: 1, next: Some(Millis(30)) });
        assert_eq!(timers.len(), 2, "one that is being looked at is live");
        timers.set(&b, Millis(40));
        timers.clear(a.id());
        assert_eq!(timers.due(Millis(99), 10), [b.id().clone()]);
        timers.clear(b.id());
        assert_eq!((timers.len(), timers.live_of(&b.request.tenant)), (0, 0));
    }

    #[test]
    fn a_tenant_has_no_more_live_jobs_than_it_may() {
        let timers = JobTimers::default();
        let (a, b, c) = (job("a", "t"), job("b", "t"), job("c", "t"));
        assert_eq!((timers.admit(&a, 2, 9), timers.admit(&b, 2, 9)), (Ok(()), Ok(())));
        assert_eq!(timers.admit(&c, 2, 9), Err(NotAdmitted::Queue(2)));
        assert_eq!(timers.admit(&b, 2, 9), Ok(()), "it counts already");
        assert_eq!(timers.admit(&job("d", "other"), 2, 9), Ok(()));
        // The id turns out to be another tenant's.
        timers.set(&job("b", "other"), Millis(10));
        assert_eq!(
            (timers.live_of(&TenantId::known("t")), timers.live_of(&TenantId::known("other"))),
            (1, 2)
        );
        timers.clear(a.id());
        assert_eq!(timers.admit(&c, 2, 9), Ok(()));
    }

    #[test]
    fn no_more_jobs_of_a_tenant_wait_for_a_person_than_may() {
        let timers = JobTimers::default();
        let asked = |id: &str, tenant: &str| {
            let verdict = Policy::builtin().evaluate(&Request::plain(id, "job.echo"));
            let verdict = Verdict { decision: Decision::RequireApproval, ..verdict };
            life::judge(&job(id, tenant), RecordedVerdict { verdict, checked_at: Millis(0) }, Millis(0))
                .unwrap()
        };
        assert_eq!(timers.admit(&asked("a", "t"), 9, 1), Ok(()));
        assert_eq!(timers.admit(&asked("b", "t"), 9, 1), Err(NotAdmitted::Approvals));
        assert_eq!(timers.admit(&job("b", "t"), 9, 1), Ok(()), "this one waits for nobody");
        assert_eq!(timers.admit(&asked("c", "other"), 9, 1), Ok(()));
        timers.set(&asked("b", "t"), Millis(10));
        assert_eq!(timers.asked_of(&TenantId::known("t")), 2);
        timers.set(&job("a", "t"), Millis(10));
        timers.clear(&JobId::known("b"));
        assert_eq!(timers.asked_of(&TenantId::known("t")), 0);

        timers.set(&job("d", "t"), Millis(10));
        assert!(timers.reserve_asked(&asked("a", "t"), 1) && timers.reserve_asked(&asked("a", "t"), 1));
        assert!(
            !timers.reserve_asked(&asked("d", "t"), 1),
            "both are decided at once, and one place is left"
        );
        timers.take_back(&job("a", "t"));
        assert!(timers.reserve_asked(&asked("d", "t"), 1));
        timers.set(&asked("d", "t"), Millis(10));
        assert_eq!(timers.asked_of(&TenantId::known("t")), 1);
    }

    fn job(id: &str, tenant: &str) -> Job {
        let request = Request { tenant: TenantId::known(tenant), ..Request::plain(id, "job.echo") };
        life::submit(request, Millis(0))
    }
}
