//! Membership: workers that beat, workers that fall silent, listeners without a name.

use super::{Holder, Placement, Reservation, TopicListeners};
use crate::fleet::{Beat, BeatSource, Load, NoRoom, PresenceChange, Profile, Seen, Slot, Who, Worker};
use crate::id::{JobId, TenantId, Topic, WorkerId, WorkspaceId};
use crate::presence::agent::{Agent, AgentBeat};
use crate::presence::workspace::{Pulse, stays_degraded};
use crate::presence::{About, Contract};
use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// A worker that says "idle" this often in a row does not hold what we gave it before that.
const IDLE_BEATS: u8 = 2;
/// And only what it has had for at least this long: the packet may still be on its way.
const IDLE_GRACE_MS: i64 = 10_000;

/// Names a member of the fleet, for those who keep it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    pub contract: Contract,
    pub tenant: TenantId,
    pub id: WorkerId,
}

impl Member {
    pub fn of(worker: &Worker) -> Self {
        Self { contract: worker.contract(), tenant: worker.tenant.clone(), id: worker.id.clone() }
    }

    pub fn who(&self) -> Who<'_> {
        Who::of(self.contract, &self.tenant, self.id.as_str())
    }
}

/// A member that fell silent, and the jobs it had; or the jobs of anonymous listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostMember {
    pub member: Option<Member>,
    /// It was restored at our start and never heard since.
    pub restored: bool,
    pub jobs: Vec<JobId>,
}

/// What a CAP worker's beat changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapBeatOutcome {
    /// It was not known before.
    pub joined: bool,
    /// It was known and not heard: what it has may have to be sent again.
    pub was_away: bool,
    /// A viewer would see a change.
    pub changed: bool,
    /// Jobs that it should hold and does not: it says it is idle.
    pub forgotten: Vec<JobId>,
}

/// What a workspace's beat changed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkspaceBeatOutcome {
    pub change: PresenceChange,
    pub was_away: bool,
    /// The beat before.
    pub before: Pulse,
}

/// A CAP worker as it was before our restart.
#[derive(Debug, Clone, PartialEq)]
pub struct RestoredWorker {
    pub id: WorkerId,
    pub tenant: TenantId,
    pub agent_name: String,
    pub profile: Profile,
    pub load: Load,
    pub counts_jobs: bool,
}

impl Placement {
    /// A heartbeat. Nothing if the fleet is full.
    pub fn beat(
        &mut self,
        worker: &WorkerId,
        tenant: &TenantId,
        beat: &Beat,
        now: Millis,
    ) -> Option<CapBeatOutcome> {
        let who = Who::Worker(worker.as_str());
        let slot = self.fleet.find(who);
        let known = slot.and_then(|slot| self.fleet.get(slot));
        let joined = known.is_none();
        let (was_away, was_restored, busy_before) = known
            .map_or((false, false, 0), |known| (known.unreachable, known.restored, known.load.active_jobs));
        let slot = match slot {
            Some(slot) => {
                // A CAP worker is never offline: it is heard, or forgotten.
                self.fleet.wake(slot, now);
                slot
            }
            None => self.admit(who, tenant, now)?,
        };
        let moved = self.index.update(slot, &mut self.fleet, |fleet| fleet.beat(slot, beat));
        if moved {
            self.update_drained(slot);
        }
        let is_unannounced =
            self.fleet.get(slot).is_some_and(|worker| self.fleet.profile(worker.profile).topics.is_empty());
        // The first beat may come just before the introduction.
        if is_unannounced && !joined && self.unannounced.add(worker) {
            self.index.touch_all();
        }
        let changed =
            joined || moved || was_away || was_restored || (busy_before == 0) != (beat.load.active_jobs == 0);
        let forgotten =
            self.fleet.get(slot).map_or_else(Vec::new, |worker| self.forgotten(slot, worker, now));
        Some(CapBeatOutcome { joined, was_away, changed, forgotten })
    }

    /// An agent's beat. Agents take no jobs, so nothing of placement changes.
    pub fn agent_beat(
        &mut self,
        tenant: &TenantId,
        beat: &AgentBeat<'_>,
        source: BeatSource,
        now: Millis,
    ) -> Result<PresenceChange, NoRoom> {
        self.fleet.agent_beat(tenant, beat, source, now)
    }

    /// From here on a tenant has at most so many members.
    pub fn limit_members(&mut self, members_max: usize) {
        self.fleet.limit_members(members_max);
    }

    /// A workspace registers or beats. It takes `at_once` delegations at a time. Nothing if the fleet is
    /// full.
    pub fn workspace_beat(
        &mut self,
        id: &WorkspaceId,
        tenant: &TenantId,
        pulse: Option<Pulse>,
        at_once: u32,
        source: BeatSource,
        now: Millis,
    ) -> Option<WorkspaceBeatOutcome> {
        let who = Who::Workspace(id.as_str());
        let known = self.fleet.lookup(who);
        let joined = known.is_none();
        let (was_away, back) = known.map_or((false, false), |known| {
            (known.unreachable || known.offline, known.offline || known.restored)
        });
        let slot = self.admit(who, tenant, now)?;
        let before = self.index.update(slot, &mut self.fleet, |fleet| {
            let worker = fleet.get_mut(slot)?;
            worker.heard();
            let About::Workspace(kept) = &mut worker.about else { return None };
            let before = (**kept).clone();
            if let Some(mut pulse) = pulse {
                pulse.degraded = stays_degraded(kept.degraded, &pulse);
                **kept = pulse;
            }
            let active_jobs = kept.active_tasks;
            worker.foreign_jobs = active_jobs.saturating_sub(worker.held);
            worker.load = Load { active_jobs, max_parallel_jobs: at_once, ..Load::default() };
            let now = (**kept).clone();
            let ix = worker.profile;
            if fleet.profile(ix).workspace.is_none() {
                fleet.set_profile(slot, workspace_profile(id));
            }
            Some((before, now))
        });
        if source == BeatSource::ThisServer {
            self.fleet.mark_unwritten(slot);
        }
        let (before, after) = before?;
        let change = PresenceChange { joined, back, changed: joined || back || before != after };
        Some(WorkspaceBeatOutcome { change, was_away, before })
    }

    /// A handshake, or a subscription seen on the transport: the worker is there and serves topics.
    pub fn announce_topics(
        &mut self,
        worker: &WorkerId,
        tenant: &TenantId,
        topics: impl IntoIterator<Item = Topic>,
        now: Millis,
    ) -> Option<Slot> {
        let slot = self.admit(Who::Worker(worker.as_str()), tenant, now)?;
        self.unannounced.remove(worker);
        self.index.update(slot, &mut self.fleet, |fleet| {
            let worker = fleet.get_mut(slot)?;
            worker.counts_jobs = true;
            worker.heard();
            let ix = worker.profile;
            let mut changed = (**fleet.profile(ix)).clone();
            changed.topics.extend(topics);
            fleet.set_profile(slot, changed);
            Some(slot)
        })
    }

    /// A worker that has not said what it serves took a job of this topic. Says whether that is news. It says
    /// nothing about when the worker was last heard: its result may have waited for a store that was away.
    pub fn learn_topic(&mut self, worker: &WorkerId, topic: &Topic) -> bool {
        let slot = self.fleet.find(Who::Worker(worker.as_str()));
        let known = slot.and_then(|slot| Some((slot, self.fleet.get(slot)?)));
        let news = known.filter(|(_, known)| !self.fleet.profile(known.profile).topics.contains(topic));
        let Some((slot, _)) = news.filter(|_| self.unannounced.contains(worker)) else { return false };
        self.index.update(slot, &mut self.fleet, |fleet| {
            let worker = fleet.get_mut(slot)?;
            worker.counts_jobs = true;
            let ix = worker.profile;
            let mut changed = (**fleet.profile(ix)).clone();
            changed.topics.insert(topic.clone());
            fleet.set_profile(slot, changed);
            Some(slot)
        });
        true
    }

    /// Nobody listens for this worker: it gets no new jobs until it is heard again.
    pub fn mark_unreachable(&mut self, who: Who<'_>) {
        if let Some(slot) = self.fleet.find(who) {
            self.index.update(slot, &mut self.fleet, |fleet| {
                fleet.get_mut(slot).map(|worker| worker.unreachable = true)
            });
        }
    }

    /// So many anonymous connections listen on a topic.
    pub fn set_listeners(&mut self, topic: &Topic, listeners: TopicListeners) {
        self.tell_apart(&listeners.tenants());
        self.anonymous.set_listeners(topic, listeners);
        self.index.touch_topic(topic);
    }

    /// This anonymous listener has the job.
    pub fn note_connection(&mut self, job: &JobId, connection: u64) {
        if matches!(self.reservations.get(job), Some(Reservation::Held { by: Holder::AnonymousGroup(_), .. }))
        {
            self.anonymous.note_connection(job, connection);
        }
    }

    /// An anonymous listener is gone. It has one TTL to come back with its results.
    pub fn connection_gone(&mut self, connection: u64, now: Millis) {
        self.anonymous.connection_gone(connection, now + self.fleet.ttls().of(Contract::Cap));
    }

    /// The members whose time is up, with what they held. Their jobs keep their reservations until
    /// [`Placement::apply`] says what becomes of them. A CAP worker is forgotten; the others stay, offline.
    pub fn expire(&mut self, now: Millis) -> Vec<LostMember> {
        let dead = self.fleet.expire(now);
        let mut gone: Vec<LostMember> =
            dead.into_iter().filter_map(|slot| self.expire_member(slot)).collect();
        for member in gone.iter().filter_map(|gone| gone.member.as_ref()) {
            self.unannounced.remove(&member.id);
        }
        let orphans = self.anonymous.take_orphans(now);
        if !orphans.is_empty() {
            gone.push(LostMember { member: None, restored: false, jobs: orphans });
        }
        gone
    }

    /// We were unreachable ourselves for a while, and heard nobody.
    pub fn credit_downtime(&mut self, away_ms: i64, now: Millis) {
        self.fleet.credit_downtime(away_ms, now);
    }

    /// Members whose rows are behind, as they are now; at most `max`. They count as written.
    pub fn take_unwritten(&mut self, max: usize) -> Vec<Worker> {
        self.fleet.take_unwritten(max)
    }

    /// Writing them failed; they are due again.
    pub fn still_unwritten(&mut self, members: &[Worker]) {
        for worker in members {
            if let Some(slot) =
                self.fleet.find(Who::of(worker.contract(), &worker.tenant, worker.id.as_str()))
            {
                self.fleet.mark_unwritten(slot);
            }
        }
    }

    // After a restart.

    /// Puts a CAP worker back as it was. One that has been heard since is left alone: live beats win.
    /// Where the transport shows who listens, a restored worker gets no job before it is seen there.
    pub fn restore(&mut self, remembered: RestoredWorker, must_be_seen: bool, now: Millis) -> bool {
        let who = Who::Worker(remembered.id.as_str());
        if self.fleet.lookup(who).is_some_and(|known| !known.expected) {
            return false;
        }
        let Some(slot) = self.admit(who, &remembered.tenant, now) else { return false };
        self.set_credential(slot, remembered.profile.credential.as_ref());
        self.index.update(slot, &mut self.fleet, |fleet| {
            let beat = Beat { agent_name: remembered.agent_name, load: remembered.load, ..Beat::default() };
            fleet.beat(slot, &beat);
            fleet.set_profile(slot, remembered.profile);
            fleet.mark_restored(slot, Seen::JustNow(now));
            fleet.get_mut(slot).map(|worker| {
                worker.unreachable = must_be_seen;
                worker.counts_jobs = remembered.counts_jobs;
                worker.idle_beats = 0;
            })
        });
        self.update_drained(slot);
        true
    }

    pub fn restore_agent(&mut self, tenant: &TenantId, id: &str, agent: Agent, seen: Seen) {
        self.fleet.restore_agent(tenant, id, agent, seen);
    }

    pub fn restore_workspace(
        &mut self,
        id: &WorkspaceId,
        tenant: &TenantId,
        pulse: Pulse,
        at_once: u32,
        seen: Seen,
        now: Millis,
    ) {
        let who = Who::Workspace(id.as_str());
        if self.fleet.lookup(who).is_some_and(|known| !known.expected) {
            return;
        }
        let Some(slot) = self.admit(who, tenant, now) else { return };
        self.index.update(slot, &mut self.fleet, |fleet| {
            fleet.set_profile(slot, workspace_profile(id));
            fleet.mark_restored(slot, seen);
            fleet.get_mut(slot).map(|worker| {
                worker.unreachable = false;
                worker.expected = false;
                worker.load = Load { active_jobs: 0, max_parallel_jobs: at_once, ..Load::default() };
                worker.about = About::Workspace(Box::new(pulse));
            })
        });
    }

    /// Takes a member out at once, with what it held.
    pub fn remove_member(&mut self, who: Who<'_>) -> Option<LostMember> {
        let slot = self.fleet.find(who)?;
        self.remove_slot(slot)
    }

    pub(super) fn admit(&mut self, who: Who<'_>, tenant: &TenantId, now: Millis) -> Option<Slot> {
        if let Some(slot) = self.fleet.find(who) {
            // One that was offline may take jobs again, so its place in the lanes is looked at.
            if self.fleet.get(slot)?.offline {
                return self.index.update(slot, &mut self.fleet, |fleet| fleet.admit(who, tenant, now));
            }
            return self.fleet.admit(who, tenant, now);
        }
        let slot = self.fleet.admit(who, tenant, now)?;
        self.index.insert(slot, &self.fleet);
        self.update_drained(slot);
        Some(slot)
    }

    /// A job says that this worker has it. If we do not know the worker (we have just started), it is
    /// expected: it has one TTL to be heard.
    pub(super) fn admit_expected(&mut self, who: Who<'_>, tenant: &TenantId, now: Millis) -> Option<Slot> {
        if let Some(slot) = self.fleet.find(who) {
            return Some(slot);
        }
        let slot = self.fleet.admit(who, tenant, now)?;
        if let Some(worker) = self.fleet.get_mut(slot) {
            worker.unreachable = true;
            worker.expected = true;
        }
        self.index.insert(slot, &self.fleet);
        self.update_drained(slot);
        Some(slot)
    }

    fn expire_member(&mut self, slot: Slot) -> Option<LostMember> {
        let worker = self.fleet.get(slot)?;
        if worker.contract() == Contract::Cap {
            return self.remove_slot(slot);
        }
        let (member, restored) = (Member::of(worker), worker.restored);
        self.index.update(slot, &mut self.fleet, |fleet| fleet.set_offline(slot));
        self.fleet.mark_unwritten(slot);
        let jobs = self.take_jobs(slot);
        if let Some(worker) = self.fleet.get_mut(slot) {
            worker.held = 0;
        }
        Some(LostMember { member: Some(member), restored, jobs })
    }

    fn remove_slot(&mut self, slot: Slot) -> Option<LostMember> {
        let profile = self.fleet.get(slot).map(|worker| self.fleet.profile(worker.profile).clone());
        self.grants.count(profile.as_ref().and_then(|profile| profile.credential.as_deref()), None);
        let worker = self.index.update(slot, &mut self.fleet, |fleet| fleet.remove(slot))?;
        let restored = worker.restored;
        Some(LostMember { member: Some(Member::of(&worker)), restored, jobs: self.take_jobs(slot) })
    }

    fn take_jobs(&mut self, slot: Slot) -> Vec<JobId> {
        let jobs = self.held_by.remove(&slot).unwrap_or_default();
        for job in &jobs {
            if let Some(Reservation::Held { by, .. }) = self.reservations.get_mut(job) {
                *by = Holder::Nobody;
            }
        }
        jobs.into_iter().collect()
    }

    fn forgotten(&self, slot: Slot, worker: &Worker, now: Millis) -> Vec<JobId> {
        if !worker.counts_jobs || worker.idle_beats < IDLE_BEATS {
            return Vec::new();
        }
        let old = |job: &&JobId| match self.reservations.get(*job) {
            Some(Reservation::Held { since, .. }) => now.since(*since) >= IDLE_GRACE_MS,
            _ => false,
        };
        self.held_by.get(&slot).into_iter().flatten().filter(old).cloned().collect()
    }
}

fn workspace_profile(id: &WorkspaceId) -> Profile {
    Profile { workspace: Some(id.clone()), ..Profile::default() }
}
