//! The fleet: every member we know of, how loaded it is, and when it counts as dead.
//!
//! Built for a million workers: a worker is one slot of a slab, what workers have in common (pool,
//! labels, capabilities, topics) is stored once as a [`Profile`], and expiry is a ring that costs a
//! beat nothing. Death is a matter of [`Fleet::expire`], called on a timer; nothing scans.
//!
//! Members of three contracts live here side by side. A contract brings its TTL and what it tells of its
//! members ([`About`]); the mechanism is the same for all.

mod grant;
mod mass_expiry;
mod names;
mod profiles;
mod ring;
mod slab;
mod worker;

pub use grant::{
    BadGrant, GRANT_POOLS_MAX, GRANT_TENANTS_MAX, GRANT_TOPICS_MAX, ServedTenants, WorkerCredential,
    WorkerGrant,
};
pub use mass_expiry::EXPIRED_MAX;
pub use names::Who;
pub use worker::{Beat, Load, Profile, Worker};

use crate::id::{TenantId, WorkerId};
use crate::presence::agent::{Agent, AgentBeat, AgentStatus};
use crate::presence::{About, Contract, Ttls};
use crate::quota::{OverQuota, TenantQuota};
use crate::time::Millis;
use mass_expiry::MassExpiryGuard;
use names::MemberNames;
use profiles::Profiles;
use ring::Ring;
use slab::Slab;
use std::sync::Arc;

pub const WORKERS_MAX: usize = 2_000_000;
/// About how often [`Fleet::expire`] is called.
const TICK_MS: i64 = 20;
/// A member whose expiry is held back is looked at again after this long.
const HELD_BACK_MS: i64 = 500;

pub type Slot = u32;
pub type ProfileIx = u32;

#[derive(Default)]
pub struct Fleet {
    ttls: Ttls,
    workers: Slab,
    names: MemberNames,
    profiles: Profiles,
    ring: Ring,
    mass_expiry: MassExpiryGuard,
    /// Members that are not offline.
    alive: usize,
    /// Members whose row in the roster is behind.
    unwritten: Vec<Slot>,
    /// Members of one tenant at which its newcomers are turned away, if told.
    members_max: Option<usize>,
}

/// Why a newcomer was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    #[error("the fleet is full")]
    Fleet,
    #[error(transparent)]
    Tenant(#[from] OverQuota),
}

/// Which server has received a beat. That one writes it to the roster; the others only take note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeatSource {
    ThisServer,
    AnotherServer,
}

/// What a beat changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PresenceChange {
    /// It was not known before.
    pub joined: bool,
    /// It was offline, or restored and not heard since.
    pub back: bool,
    /// A viewer would see a change.
    pub changed: bool,
}

impl Fleet {
    pub fn new(ttls: Ttls) -> Self {
        Self { ttls, ..Self::default() }
    }

    pub fn ttls(&self) -> &Ttls {
        &self.ttls
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Members that are not offline.
    pub fn alive(&self) -> usize {
        self.alive
    }

    pub fn find(&self, who: Who<'_>) -> Option<Slot> {
        self.names.find(who)
    }

    pub fn lookup(&self, who: Who<'_>) -> Option<&Worker> {
        self.get(self.find(who)?)
    }

    pub fn get(&self, slot: Slot) -> Option<&Worker> {
        self.workers.get(slot)
    }

    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Worker> {
        self.workers.get_mut(slot)
    }

    pub fn profile(&self, ix: ProfileIx) -> &Arc<Profile> {
        self.profiles.get(ix)
    }

    /// Every member, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Worker)> {
        self.workers.iter()
    }

    /// One part of the members, so that a scan of all can be done in short steps. Nothing when there are no
    /// more parts.
    pub fn part(&self, part: usize) -> Option<impl Iterator<Item = &Worker>> {
        self.workers.block(part)
    }

    /// The agents of one tenant.
    pub fn agents_of(&self, tenant: &TenantId) -> impl Iterator<Item = &Worker> {
        self.names.agents_of(tenant).filter_map(|slot| self.get(slot))
    }

    /// The part of the agents that [`Fleet::part`] has, with their slots.
    pub fn agents_in_part(&self, part: usize) -> Option<impl Iterator<Item = (Slot, &Worker)>> {
        let members = self.workers.numbered_block(part)?;
        Some(members.filter(|(_, worker)| worker.contract() == Contract::VoiceGateway))
    }

    /// Where the agents of one tenant are.
    pub fn agent_slots_of(&self, tenant: &TenantId) -> impl Iterator<Item = Slot> {
        self.names.agents_of(tenant)
    }

    /// From here on a tenant has at most so many members. Who is there already, or is known from before a restart,
    /// stays.
    pub fn limit_members(&mut self, members_max: usize) {
        self.members_max = Some(members_max);
    }

    /// Whether a member, if it is new, may join its tenant's others. Workspaces do not count: they have a quota of their
    /// own.
    pub fn check_quota(&self, who: Who<'_>, tenant: &TenantId) -> Result<(), OverQuota> {
        match self.members_max {
            Some(max) if self.find(who).is_none() => {
                TenantQuota::Members.check(self.names.members_of(tenant) as u64, max as u64)
            }
            _ => Ok(()),
        }
    }

    /// When a member's silence becomes death.
    pub fn dead_at(&self, worker: &Worker) -> Millis {
        worker.last_seen + self.ttls.of(worker.contract())
    }

    /// Somebody with this name is there. A newcomer gets a bare slot; nothing if the fleet is full.
    pub fn admit(&mut self, who: Who<'_>, tenant: &TenantId, now: Millis) -> Option<Slot> {
        if let Some(slot) = self.find(who) {
            self.wake(slot, now);
            return Some(slot);
        }
        let about = match who {
            Who::Worker(_) => About::Cap,
            Who::Workspace(_) => About::Workspace(Box::default()),
            Who::Agent(..) => About::Agent(Box::default()),
        };
        self.add(who, tenant, about, now)
    }

    fn add(&mut self, who: Who<'_>, tenant: &TenantId, about: About, now: Millis) -> Option<Slot> {
        if self.len() >= WORKERS_MAX {
            return None;
        }
        let slot = self.workers.vacant();
        let armed = self.ring.arm(slot, now + self.ttls.of(about.contract()));
        let id = WorkerId::known(who.name());
        self.names.insert(who, tenant, id.clone(), slot);
        self.alive += 1;
        let worker = Worker {
            id,
            tenant: tenant.clone(),
            about,
            profile: self.profiles.hold(Profile::default()),
            last_seen: now,
            load: Load::default(),
            foreign_jobs: 0,
            held: 0,
            idle_beats: 0,
            counts_jobs: false,
            unreachable: false,
            expected: false,
            restored: false,
            offline: false,
            drained: false,
            unwritten: false,
            agent_name: None,
            armed,
        };
        self.workers.put(slot, worker);
        Some(slot)
    }

    /// It is heard now, whatever it was before.
    pub fn wake(&mut self, slot: Slot, now: Millis) {
        let ttls = self.ttls;
        let Some(worker) = self.workers.get_mut(slot) else { return };
        worker.last_seen = now;
        if std::mem::take(&mut worker.offline) {
            worker.armed = self.ring.arm(slot, now + ttls.of(worker.about.contract()));
            self.alive += 1;
        }
    }

    /// Takes over what a CAP beat tells. Says whether the worker's profile is another one now.
    pub fn beat(&mut self, slot: Slot, beat: &Beat) -> bool {
        let Some(worker) = self.workers.get_mut(slot) else { return false };
        worker.load = beat.load;
        worker.foreign_jobs = beat.load.active_jobs.saturating_sub(worker.held);
        worker.idle_beats = if beat.load.active_jobs == 0 { worker.idle_beats.saturating_add(1) } else { 0 };
        worker.heard();
        if worker.agent_name() != beat.agent_name {
            worker.agent_name = Some(beat.agent_name.as_str().into());
        }
        let profile = self.profiles.get(worker.profile);
        let same = profile.pool == beat.pool
            && profile.region == beat.region
            && profile.kind == beat.kind
            && profile.capabilities == beat.capabilities
            && profile.labels == beat.labels;
        if same {
            return false;
        }
        let changed = Profile {
            pool: beat.pool.clone(),
            region: beat.region.clone(),
            kind: beat.kind.clone(),
            capabilities: beat.capabilities.clone(),
            labels: beat.labels.clone(),
            topics: profile.topics.clone(),
            workspace: None,
            credential: profile.credential.clone(),
        };
        self.set_profile(slot, changed);
        true
    }

    /// An agent's beat. Agents take no jobs from us, so placement does not see it. The quota is the business of the
    /// server that received the beat: the others agree with it.
    pub fn agent_beat(
        &mut self,
        tenant: &TenantId,
        beat: &AgentBeat<'_>,
        source: BeatSource,
        now: Millis,
    ) -> Result<PresenceChange, NoRoom> {
        let who = Who::Agent(tenant, &beat.agent_id);
        let known = self.find(who);
        if known.is_none() && source == BeatSource::ThisServer {
            self.check_quota(who, tenant)?;
        }
        let was_offline = known.and_then(|slot| self.get(slot)).is_some_and(|worker| worker.offline);
        let slot = self.admit(who, tenant, now).ok_or(NoRoom::Fleet)?;
        let worker = self.workers.get_mut(slot).ok_or(NoRoom::Fleet)?;
        let back = was_offline || worker.restored;
        worker.heard();
        let changed = match &mut worker.about {
            About::Agent(agent) => beat.apply(agent),
            About::Cap | About::Workspace(_) => false,
        };
        if source == BeatSource::ThisServer {
            self.mark_unwritten(slot);
        }
        Ok(PresenceChange { joined: known.is_none(), back, changed: changed || back })
    }

    /// What is known of this member has to be written down.
    pub fn mark_unwritten(&mut self, slot: Slot) {
        if let Some(worker) = self.workers.get_mut(slot)
            && !std::mem::replace(&mut worker.unwritten, true)
        {
            self.unwritten.push(slot);
        }
    }

    /// Members to write down, as they are now; at most `max`. They count as written.
    pub fn take_unwritten(&mut self, max: usize) -> Vec<Worker> {
        let rest = self.unwritten.len().saturating_sub(max);
        let slots = self.unwritten.split_off(rest);
        let mut taken = Vec::with_capacity(slots.len());
        for slot in slots {
            if let Some(worker) = self.workers.get_mut(slot).filter(|worker| worker.unwritten) {
                worker.unwritten = false;
                taken.push(worker.clone());
            }
        }
        taken
    }

    /// Gives a worker another profile.
    pub fn set_profile(&mut self, slot: Slot, profile: Profile) {
        let ix = self.profiles.hold(profile);
        if let Some(worker) = self.workers.get_mut(slot) {
            self.profiles.release(std::mem::replace(&mut worker.profile, ix));
        }
    }

    pub fn remove(&mut self, slot: Slot) -> Option<Worker> {
        let worker = self.workers.take(slot)?;
        self.names.remove(Who::of(worker.contract(), &worker.tenant, worker.id.as_str()), &worker.tenant);
        self.profiles.release(worker.profile);
        self.alive -= usize::from(!worker.offline);
        Some(worker)
    }

    /// A member of a contract that remembers its dead has fallen silent.
    pub fn set_offline(&mut self, slot: Slot) {
        let Some(worker) = self.workers.get_mut(slot) else { return };
        if std::mem::replace(&mut worker.offline, true) {
            return;
        }
        self.alive -= 1;
        worker.restored = false;
        if let About::Agent(agent) = &mut worker.about {
            agent.status = AgentStatus::Offline;
            agent.active_sessions = 0;
        }
    }

    /// Puts a member back as it was before our restart. A member that is known already was heard since,
    /// and stays as it is.
    pub fn restore_agent(&mut self, tenant: &TenantId, id: &str, agent: Agent, seen: Seen) {
        let who = Who::Agent(tenant, id);
        if self.find(who).is_some() {
            return;
        }
        let Some(slot) = self.add(who, tenant, About::Agent(Box::new(agent)), seen.at()) else { return };
        self.mark_restored(slot, seen);
    }

    /// What is known of a newly added member is from before our restart.
    pub fn mark_restored(&mut self, slot: Slot, seen: Seen) {
        if let Some(worker) = self.workers.get_mut(slot) {
            worker.last_seen = seen.at();
            worker.restored = matches!(seen, Seen::JustNow(_));
        }
        if let Seen::LongAgo(_) = seen {
            self.set_offline(slot);
        }
    }

    /// The members whose time is up at `now`. They are still there; the caller removes them, or sets
    /// them offline.
    pub fn expire(&mut self, now: Millis) -> Vec<Slot> {
        let mut due = Vec::new();
        for (slot, armed) in self.ring.advance(now) {
            // The entry may be of a worker that left, or of one that has the slot since.
            let Some(worker) = self.workers.get_mut(slot).filter(|worker| worker.armed == armed) else {
                continue;
            };
            if worker.offline {
                continue;
            }
            let end = worker.last_seen + self.ttls.of(worker.about.contract());
            if end > now {
                worker.armed = self.ring.arm(slot, end);
            } else {
                due.push(slot);
            }
        }
        if due.is_empty() {
            return due;
        }
        let (workers, ttls, alive) = (&self.workers, self.ttls, self.alive);
        let allowed = self.mass_expiry.admit(due.len(), alive, now, || mostly_silent(workers, &ttls, now));
        // Those that are held back are due again, a tick's worth of them at a time.
        let delay_ms = if self.mass_expiry.is_active() { HELD_BACK_MS } else { 1 };
        for (ix, slot) in due.split_off(allowed).into_iter().enumerate() {
            let at = now + delay_ms + TICK_MS * (ix / EXPIRED_MAX) as i64;
            if let Some(worker) = self.workers.get_mut(slot) {
                worker.armed = self.ring.arm(slot, at);
            }
        }
        due
    }

    /// Most of the fleet is silent at once, and expiry is held back.
    pub fn is_mass_expiry(&self) -> bool {
        self.mass_expiry.is_active()
    }

    /// We were away and could not hear anybody: that time does not count against a TTL. Whoever was heard
    /// since gets none of it.
    pub fn credit_downtime(&mut self, away_ms: i64, now: Millis) {
        for worker in self.workers.iter_mut().filter(|worker| !worker.offline) {
            worker.last_seen = (worker.last_seen + away_ms).min(now);
        }
    }
}

/// When a member that is restored was last heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It was alive when we went down, so it counts as heard at our start.
    JustNow(Millis),
    /// It was dead already.
    LongAgo(Millis),
}

impl Seen {
    fn at(self) -> Millis {
        match self {
            Self::JustNow(at) | Self::LongAgo(at) => at,
        }
    }
}

/// Whether most of the living have been silent for most of their TTL.
fn mostly_silent(workers: &Slab, ttls: &Ttls, now: Millis) -> bool {
    let (mut silent, mut alive) = (0usize, 0usize);
    for (_, worker) in workers.iter().filter(|(_, worker)| !worker.offline) {
        alive += 1;
        silent += usize::from(now.since(worker.last_seen) * 3 > ttls.of(worker.contract()) * 2);
    }
    silent * 2 > alive
}
