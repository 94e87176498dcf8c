//! Placement: who is here, who holds what, and who waits for whom.
//!
//! One structure answers where a job goes next. It is derived from jobs and beats and can be thrown
//! away: after a restart the same jobs and the next beats build the same placement. Nothing here is
//! durable and nothing here decides what a job's state is.

mod anonymous;
mod drains;
mod fitting;
mod grants;
mod index;
pub mod lane;
mod pools;
mod presence;
pub mod routing;
mod selector;
mod shares;
mod unannounced;
mod wait_reason;
pub mod waiting;

pub use anonymous::TopicListeners;
pub use fitting::Fitting;
pub use grants::{Claim, ClaimRefused, JobOwner, WORKERS_PER_KEY_MAX};
pub use pools::PoolLoad;
pub use presence::{CapBeatOutcome, LostMember, Member, RestoredWorker, WorkspaceBeatOutcome};
pub use selector::{Bounds, Selector, Target};
pub use wait_reason::{AHEAD_MAX, Wait};

use crate::fleet::{Fleet, Slot, Who, Worker};
use crate::id::{JobId, TenantId, Topic, WorkerId};
use crate::job::{Job, Phase, State};
use crate::life::Destination;
use crate::presence::{Contract, Drain, Drained, Ttls};
use crate::reason::Reason;
use crate::request::{Priority, Request};
use crate::time::Millis;
use anonymous::AnonymousWorkers;
use grants::{KnownGrants, LentInputs};
use index::{LaneIndex, LaneIx};
use lane::{LANES_PER_TENANT_MAX, Lane};
use routing::Routing;
use rustc_hash::FxHashMap;
use shares::{LaneKind, Shares};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use unannounced::UnannouncedWorkers;
use waiting::Ticket;

#[derive(Default)]
pub struct Placement {
    routing: Arc<Routing>,
    fleet: Fleet,
    index: LaneIndex,
    anonymous: AnonymousWorkers,
    unannounced: UnannouncedWorkers,
    grants: KnownGrants,
    reservations: FxHashMap<JobId, Reservation>,
    held_by: FxHashMap<Slot, BTreeSet<JobId>>,
    lent: LentInputs,
    shares: Shares,
    drains: BTreeMap<Drained, Drain>,
    tickets: Ticket,
    serving: u64,
}

/// A live job's place: in a queue, or at a worker.
enum Reservation {
    Waiting {
        lane: LaneIx,
        ticket: Ticket,
        request: Arc<Request>,
    },
    /// At a worker; or about to be, while the commit that says so is under way.
    Held {
        by: Holder,
        request: Arc<Request>,
        since: Millis,
        is_pending: bool,
    },
}

#[derive(Clone, PartialEq, Eq)]
enum Holder {
    Worker(Slot),
    AnonymousGroup(Topic),
    /// Its worker is gone. It counts until a commit says what becomes of the job.
    Nobody,
}

impl Placement {
    pub fn new(ttls: Ttls) -> Self {
        Self { fleet: Fleet::new(ttls), ..Self::default() }
    }

    /// The transport does not show who listens on a topic: topics have to be tried.
    pub fn try_topics(&mut self) {
        self.unannounced.enable();
    }

    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    // Jobs.

    /// Reserves a place for a job that is not known here yet. It does not overtake jobs that already wait
    /// for the same workers.
    pub fn reserve(&mut self, request: &Arc<Request>, now: Millis) -> Result<Destination, Reason> {
        self.reserve_within(request, None, now)
    }

    /// The same, for a job whose verdict says how many of its tenant may be at workers at once.
    pub fn reserve_within(
        &mut self,
        request: &Arc<Request>,
        jobs_max: Option<u32>,
        now: Millis,
    ) -> Result<Destination, Reason> {
        if self.reservations.contains_key(&request.id) {
            return Err(Reason::DispatchFailed);
        }
        let lane = self.lane(request, jobs_max);
        if !self.index.lane(lane).waiting.is_empty() {
            return Err(self.reason(lane, &request.tenant));
        }
        self.place(lane, request, now).ok_or_else(|| self.reason(lane, &request.tenant))
    }

    /// Whether a new job of this kind would be one kind too many, of all that wait or of those of its
    /// tenant. Jobs that were accepted before always get their place.
    pub fn is_full_for(&self, request: &Request) -> bool {
        let has_share = self.shares.lanes_of(&request.tenant) < LANES_PER_TENANT_MAX;
        if has_share && !self.index.has_lanes_max() {
            return false;
        }
        let selector = self.selector(request);
        self.index.is_full_for(&selector)
            || !(has_share || self.index.is_waited_in(&selector, &request.tenant))
    }

    /// Reserves, queues or removes a job as its state says. Call [`Placement::reserve_waiting`] afterwards.
    pub fn apply(&mut self, job: &Job, now: Millis) {
        match &job.phase {
            Phase::Scheduled { not_before, .. } if *not_before <= now => self.wait(job),
            Phase::Dispatched(attempt) | Phase::Running(attempt) => {
                let is_new = !self.reservations.contains_key(job.id());
                if is_new && attempt.worker.is_none() && job.state() == State::Running {
                    // It is from before our start; whichever connection had it is closed since.
                    self.anonymous.orphan(job.id(), now + self.fleet.ttls().of(Contract::Cap));
                }
                self.reserve_at(&job.request, attempt.worker.as_ref(), attempt.dispatched_at, now);
            }
            _ => self.remove(job.id()),
        }
    }

    /// Records that a worker has been given a job, by this server or by another.
    pub fn reserve_at(
        &mut self,
        request: &Arc<Request>,
        worker: Option<&WorkerId>,
        since: Millis,
        now: Millis,
    ) {
        let by = match worker {
            Some(worker) => {
                let slot = self.admit_expected(member_of(request, worker), &request.tenant, now);
                slot.map_or(Holder::Nobody, Holder::Worker)
            }
            None => Holder::AnonymousGroup(request.topic.clone()),
        };
        self.record_held(request, by, since);
        self.end_pending(&request.id);
    }

    /// How many jobs the worker that this job goes to may have at once, if the worker is known.
    pub fn jobs_max_at(&self, request: &Request, worker: &WorkerId) -> Option<u32> {
        self.fleet.lookup(member_of(request, worker)).map(Worker::jobs_max)
    }

    /// The commit that needed the reservation is over, well or badly. Until then the job keeps it whatever
    /// [`Placement::apply`] is told: another job would get the place, and then there would be one too many.
    pub fn end_pending(&mut self, job: &JobId) {
        if let Some(Reservation::Held { is_pending, .. }) = self.reservations.get_mut(job) {
            *is_pending = false;
        }
    }

    /// The job neither waits nor is at a worker any more.
    pub fn remove(&mut self, job: &JobId) {
        match self.reservations.remove(job) {
            None => {}
            Some(Reservation::Waiting { lane, ticket, request }) => {
                self.index.lane_mut(lane).waiting.remove(&request.tenant, request.priority, ticket);
                self.leave_queue(lane, &request.tenant);
            }
            Some(Reservation::Held { by, request, .. }) => self.release(job, &by, &request),
        }
    }

    /// Reserves places for waiting jobs, in their order, and says where each of them goes.
    pub fn reserve_waiting(&mut self, now: Millis) -> Vec<(JobId, Destination)> {
        let mut found = Vec::new();
        while let Some((lane, priority, tenant)) = self.next_turn() {
            self.serving += 1;
            let Some(job) = self.index.lane_mut(lane).waiting.take(priority, &tenant, self.serving) else {
                continue;
            };
            self.shares.record_turn(&tenant, priority, self.serving);
            self.leave_queue(lane, &tenant);
            let Some(Reservation::Waiting { request, .. }) = self.reservations.remove(&job) else { continue };
            match self.place(lane, &request, now) {
                Some(destination) => found.push((job, destination)),
                None => self.enqueue(lane, request),
            }
        }
        found
    }

    /// The jobs a worker has, as far as we know.
    pub fn held_by(&self, who: Who<'_>) -> Vec<JobId> {
        let slot = self.fleet.find(who);
        slot.and_then(|slot| self.held_by.get(&slot)).into_iter().flatten().cloned().collect()
    }

    /// Whether a job waits, or is at a worker.
    pub fn has_reservation(&self, job: &JobId) -> bool {
        self.reservations.contains_key(job)
    }

    // Configuration.

    /// Another `pools.yaml`: every waiting job is put into a lane again.
    pub fn reroute(&mut self, routing: Arc<Routing>) {
        self.routing = routing;
        let mut waiting: Vec<(Ticket, Arc<Request>, Option<u32>)> = Vec::new();
        let index = &self.index;
        self.reservations.retain(|_, reservation| match reservation {
            Reservation::Waiting { lane, ticket, request } => {
                waiting.push((*ticket, request.clone(), index.lane(*lane).selector.bounds.jobs_max));
                false
            }
            Reservation::Held { .. } => true,
        });
        waiting.sort_by_key(|(ticket, ..)| *ticket);
        self.index = LaneIndex::default();
        self.shares.clear_lanes();
        let slots: Vec<Slot> = self.fleet.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.index.insert(slot, &self.fleet);
        }
        for (_, request, jobs_max) in waiting {
            let lane = self.lane(&request, jobs_max);
            self.enqueue(lane, request);
        }
    }

    /// How many jobs tenants may have at workers at once; those not named have no limit.
    pub fn limit_tenants(&mut self, limits: BTreeMap<TenantId, u32>) {
        self.shares.set_limits(limits);
        self.index.touch_all();
    }

    /// Jobs from before our start are not counted yet. Until then nobody knows how much of a limit is used,
    /// so whoever has one waits.
    pub fn begin_recount(&mut self) {
        self.shares.begin_recount();
    }

    /// All jobs that were at workers are counted. Call [`Placement::reserve_waiting`] afterwards.
    pub fn end_recount(&mut self) {
        self.shares.end_recount();
        self.index.touch_all();
    }

    // Helpers.

    fn lane(&mut self, request: &Request, jobs_max: Option<u32>) -> LaneIx {
        let mut selector = self.selector(request);
        selector.bounds.jobs_max = jobs_max;
        self.index.lane_for(selector, &self.fleet)
    }

    fn selector(&self, request: &Request) -> Selector {
        Selector { owner: self.grants.owner_of(request), ..Selector::of(request, &self.routing) }
    }

    fn wait(&mut self, job: &Job) {
        if matches!(
            self.reservations.get(job.id()),
            Some(Reservation::Waiting { .. } | Reservation::Held { is_pending: true, .. })
        ) {
            return;
        }
        self.remove(job.id());
        let lane = self.lane(&job.request, job.jobs_max());
        self.enqueue(lane, job.request.clone());
    }

    fn enqueue(&mut self, lane: LaneIx, request: Arc<Request>) {
        self.tickets += 1;
        let Lane { selector, waiting, .. } = self.index.lane_mut(lane);
        if !waiting.has(&request.tenant) {
            self.shares.enter_lane(&request.tenant, lane_kind(selector));
        }
        waiting.push(request.id.clone(), &request.tenant, request.priority, self.tickets, self.serving);
        self.index.touch(lane);
        self.reservations
            .insert(request.id.clone(), Reservation::Waiting { lane, ticket: self.tickets, request });
    }

    /// A job of this tenant has just left the lane's queue.
    fn leave_queue(&mut self, lane: LaneIx, tenant: &TenantId) {
        let lane = self.index.lane(lane);
        if !lane.waiting.has(tenant) {
            self.shares.leave_lane(tenant, lane_kind(&lane.selector));
        }
    }

    /// The lane and tenant whose turn it is, among those that can go now.
    fn next_turn(&mut self) -> Option<(LaneIx, Priority, TenantId)> {
        let mut best: Option<(waiting::Turn, LaneIx, TenantId)> = None;
        for ix in self.index.touched() {
            let turn = if self.has_room(ix) && self.topic_may_go(ix) {
                let shares = &self.shares;
                let lane = self.index.lane_mut(ix);
                let jobs_max = lane.selector.bounds.jobs_max;
                lane.waiting.first(
                    |tenant| shares.tenant_may_go(tenant, jobs_max),
                    |tenant, priority| shares.last_turn(tenant, priority),
                )
            } else {
                None
            };
            match turn {
                None => self.index.untouch(ix),
                Some((turn, tenant)) if best.as_ref().is_none_or(|(best, _, _)| turn < *best) => {
                    best = Some((turn, ix, tenant));
                }
                Some(_) => {}
            }
        }
        best.map(|(turn, lane, tenant)| (lane, turn.priority, tenant))
    }

    fn has_room(&self, lane: LaneIx) -> bool {
        let lane = self.index.lane(lane);
        !lane.ready.is_empty()
            || (lane.members == 0
                && lane.selector.open_to_anyone().is_some_and(|topic| {
                    self.anonymous.has_room(topic, lane.selector.owner.tenant.as_ref())
                        || self.unannounced.may_listen(topic)
                }))
    }

    fn tenant_may_go(&self, lane: LaneIx, tenant: &TenantId) -> bool {
        self.shares.tenant_may_go(tenant, self.index.lane(lane).selector.bounds.jobs_max)
    }

    fn topic_may_go(&self, lane: LaneIx) -> bool {
        let topic = self.index.lane(lane).selector.bounds.topic.as_ref();
        let limit = topic.and_then(|topic| self.routing.topic_max(topic));
        limit.zip(topic).is_none_or(|(limit, topic)| self.shares.topic_may_go(topic, limit))
    }

    /// Takes the preferred worker if it has room, else the least loaded one, else the group.
    fn place(&mut self, lane: LaneIx, request: &Arc<Request>, now: Millis) -> Option<Destination> {
        if !self.tenant_may_go(lane, &request.tenant) || !self.topic_may_go(lane) || !self.has_room(lane) {
            return None;
        }
        let preferred =
            request.labels.get("preferred_worker_id").and_then(|id| self.fleet.find(Who::Worker(id)));
        let slot = preferred
            .filter(|slot| self.index.is_ready(*slot, lane, &self.fleet))
            .or_else(|| self.index.least_loaded(lane));
        if slot.is_none() && !self.anonymous.has_room(&request.topic, Some(&request.tenant)) {
            self.unannounced.mark_tried(&request.topic);
        }
        let by = match slot {
            Some(slot) => Holder::Worker(slot),
            None => Holder::AnonymousGroup(request.topic.clone()),
        };
        self.record_held(request, by, now);
        if let Some(Reservation::Held { is_pending, .. }) = self.reservations.get_mut(&request.id) {
            *is_pending = true;
        }
        let worker = slot.and_then(|slot| self.fleet.get(slot));
        let pool = worker.and_then(|worker| self.fleet.profile(worker.profile).pool.clone());
        Some(Destination { worker: worker.map(|worker| worker.id.clone()), pool })
    }

    fn record_held(&mut self, request: &Arc<Request>, by: Holder, since: Millis) {
        let job = &request.id;
        // The same id may have been offered for another tenant, before it was known to be taken.
        let is_same = |held: &Request| (&held.tenant, &held.topic) == (&request.tenant, &request.topic);
        if matches!(self.reservations.get(job), Some(Reservation::Held { by: holder, request, .. }) if *holder == by && is_same(request))
        {
            return;
        }
        self.remove(job);
        match &by {
            Holder::Worker(slot) => {
                self.held_by.entry(*slot).or_default().insert(job.clone());
                self.update_held(*slot, |held| held + 1);
            }
            Holder::AnonymousGroup(topic) => self.anonymous.hold(topic, &request.tenant),
            Holder::Nobody => {}
        }
        self.shares.count(request);
        self.lent.hold(request);
        self.reservations.insert(
            job.clone(),
            Reservation::Held { by, request: request.clone(), since, is_pending: false },
        );
    }

    fn release(&mut self, job: &JobId, by: &Holder, request: &Request) {
        match by {
            Holder::Worker(slot) => {
                if let Some(jobs) = self.held_by.get_mut(slot) {
                    jobs.remove(job);
                    if jobs.is_empty() {
                        self.held_by.remove(slot);
                    }
                }
                self.update_held(*slot, |held| held.saturating_sub(1));
            }
            Holder::AnonymousGroup(topic) => {
                self.anonymous.release(topic, &request.tenant, job);
                self.index.touch_topic(topic);
            }
            Holder::Nobody => {}
        }
        self.lent.release(request);
        let topic = &request.topic;
        let was_full =
            self.routing.topic_max(topic).is_some_and(|limit| self.shares.active_of_topic(topic) >= limit);
        if self.shares.uncount(request) {
            self.index.touch_all();
        } else if was_full {
            self.index.touch_bounded(topic);
        }
    }

    fn update_held(&mut self, slot: Slot, count: impl FnOnce(u32) -> u32) {
        self.index.update(slot, &mut self.fleet, |fleet| {
            if let Some(worker) = fleet.get_mut(slot) {
                worker.held = count(worker.held);
            }
        });
    }
}

fn lane_kind(selector: &Selector) -> LaneKind {
    if selector.bounds.jobs_max.is_some() { LaneKind::Bounded } else { LaneKind::Unbounded }
}

/// The member that a job means when it names this worker.
fn member_of<'a>(request: &Request, worker: &'a WorkerId) -> Who<'a> {
    if request.delegated.is_some() { Who::Workspace(worker.as_str()) } else { Who::Worker(worker.as_str()) }
}
