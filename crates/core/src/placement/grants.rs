//! Workers with a credential: whose jobs they take, and who may speak for them.
//!
//! Jobs of different tenants share a lane as long as nobody tells them apart. Only a tenant that some grant has named
//! gets lanes of its own, and topics are told apart only once some grant names topics: whoever gives no credentials
//! pays nothing for them.

use super::{Holder, Placement, Reservation, Selector, Ticket};
use crate::fleet::{Profile, ServedTenants, Slot, Who, WorkerCredential, WorkerGrant};
use crate::id::{JobId, KeyId, TenantId, Topic, WorkerId};
use crate::request::Request;
use crate::time::Millis;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a job is asked by workers with a grant. Nothing where no grant would ask.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct JobOwner {
    pub tenant: Option<TenantId>,
    pub topic: Option<Topic>,
}

impl JobOwner {
    /// Whether a worker with this profile may see such a job.
    pub fn is_served_by(&self, worker: &Profile) -> bool {
        let Some(credential) = &worker.credential else { return true };
        let grant = &credential.grant;
        let is_tenant = match (&grant.tenants, &self.tenant) {
            (ServedTenants::Everyone, _) => true,
            (ServedTenants::Only(_), None) => false,
            (tenants, Some(tenant)) => tenants.include(tenant),
        };
        let is_topic = grant.topics.is_empty()
            || self.topic.as_ref().is_some_and(|topic| grant.has_topic(topic.as_str()));
        is_tenant && is_topic && grant.has_pool(worker.pool.as_ref())
    }
}

/// What the grants that were ever presented here ask of jobs. It only grows: a lane that is narrower than it need be
/// does no harm.
#[derive(Default)]
pub struct KnownGrants {
    tenants: BTreeSet<TenantId>,
    ask_for_topics: bool,
    /// How many workers are here with each key.
    of_key: FxHashMap<KeyId, u32>,
}

impl KnownGrants {
    /// A worker had one credential and has another.
    pub fn count(&mut self, before: Option<&WorkerCredential>, after: Option<&WorkerCredential>) {
        if let Some(own) = after {
            *self.of_key.entry(own.key.clone()).or_default() += 1;
        }
        if let Some(own) = before
            && let Some(workers) = self.of_key.get_mut(&own.key)
        {
            *workers -= 1;
            if *workers == 0 {
                self.of_key.remove(&own.key);
            }
        }
    }

    fn is_full_for(&self, credential: Option<&Arc<WorkerCredential>>) -> bool {
        let workers = credential.and_then(|own| self.of_key.get(&own.key));
        workers.is_some_and(|workers| *workers >= WORKERS_PER_KEY_MAX)
    }

    /// Says whether more is asked now.
    fn learn(&mut self, grant: &WorkerGrant) -> bool {
        let (tenants_before, topics_before) = (self.tenants.len(), self.ask_for_topics);
        if let ServedTenants::Only(tenants) = &grant.tenants {
            self.tenants.extend(tenants.iter().cloned());
        }
        self.ask_for_topics |= !grant.topics.is_empty();
        (tenants_before, topics_before) != (self.tenants.len(), self.ask_for_topics)
    }

    pub fn owner_of(&self, request: &Request) -> JobOwner {
        // What is delegated goes to one workspace, whoever else is there.
        if request.delegated.is_some() {
            return JobOwner::default();
        }
        JobOwner {
            tenant: self.tenants.get(&request.tenant).cloned(),
            topic: self.ask_for_topics.then(|| request.topic.clone()),
        }
    }
}

/// Jobs at workers that work on something else than their own input, by what that is: what undoes a job works on that
/// job's input.
#[derive(Default)]
pub struct LentInputs(FxHashMap<String, BTreeSet<JobId>>);

impl LentInputs {
    pub fn hold(&mut self, request: &Request) {
        if is_lent(request) {
            self.0.entry(request.context_ptr.clone()).or_default().insert(request.id.clone());
        }
    }

    pub fn release(&mut self, request: &Request) {
        if is_lent(request)
            && let Some(jobs) = self.0.get_mut(&request.context_ptr)
        {
            jobs.remove(&request.id);
            if jobs.is_empty() {
                self.0.remove(&request.context_ptr);
            }
        }
    }

    fn jobs_on(&self, pointer: &str) -> impl Iterator<Item = &JobId> {
        self.0.get(pointer).into_iter().flatten()
    }
}

fn is_lent(request: &Request) -> bool {
    let own = request.context_ptr.strip_prefix("redis://ctx:");
    !request.context_ptr.is_empty() && own != Some(request.id.as_str())
}

/// What became of a worker when somebody began to speak as it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim {
    /// It was not known before.
    pub joined: bool,
    /// Jobs that it has and may not have any longer.
    pub unserved: Vec<JobId>,
}

/// Workers that may be here with one key.
pub const WORKERS_PER_KEY_MAX: u32 = 10_000;

/// Why somebody may not speak as a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClaimRefused {
    /// The name is somebody else's for as long as that one lives.
    #[error("a worker of this name is here already, with another credential")]
    NameTaken,
    #[error("{WORKERS_PER_KEY_MAX} workers are here with this key already")]
    TooMany,
}

impl Placement {
    /// Whether whoever has this credential, or none, may report for a worker. A worker that nobody knows is anybody's:
    /// whether it was given a job is for the job to say.
    pub fn may_report(
        &self,
        worker: &WorkerId,
        credential: Option<&Arc<WorkerCredential>>,
        is_same_holder: impl Fn(&KeyId, &KeyId) -> bool,
    ) -> Result<(), ClaimRefused> {
        match self.fleet.lookup(Who::Worker(worker.as_str())) {
            Some(known) if !known.expected => {
                let held = self.fleet.profile(known.profile).credential.as_ref();
                if is_same(held, credential, is_same_holder) { Ok(()) } else { Err(ClaimRefused::NameTaken) }
            }
            _ => Ok(()),
        }
    }

    /// Somebody is about to speak as this worker. The first who does has the name for as long as they are heard; after
    /// that it is free for the same tenant, and for those who serve everybody. Who signs as this worker has its name from
    /// anybody who does not.
    pub fn claim(
        &mut self,
        worker: &WorkerId,
        tenant: &TenantId,
        credential: Option<&Arc<WorkerCredential>>,
        is_same_holder: impl Fn(&KeyId, &KeyId) -> bool,
        now: Millis,
    ) -> Result<Claim, ClaimRefused> {
        let who = Who::Worker(worker.as_str());
        let Some(slot) = self.fleet.find(who) else {
            if self.grants.is_full_for(credential) {
                return Err(ClaimRefused::TooMany);
            }
            // Whoever has no credential is admitted by their beat. A full fleet takes nobody.
            let slot = credential.and_then(|_| self.admit(who, tenant, now));
            if let Some(slot) = slot {
                self.set_credential(slot, credential);
            }
            return Ok(Claim { joined: slot.is_some(), unserved: Vec::new() });
        };
        let Some(known) = self.fleet.get(slot) else { return Ok(Claim::default()) };
        let held = self.fleet.profile(known.profile).credential.clone();
        if held.as_ref() == credential {
            return Ok(Claim::default());
        }
        let is_away = known.unreachable || known.expected || known.restored;
        let may_follow = held.is_none() || credential.is_none() || known.tenant == *tenant;
        let signs = |own: Option<&Arc<WorkerCredential>>| {
            own.is_some_and(|own| own.signs_as.as_ref() == Some(worker))
        };
        let outranks = signs(credential) && !signs(held.as_ref());
        if !(is_same(held.as_ref(), credential, is_same_holder) || outranks || is_away && may_follow) {
            return Err(ClaimRefused::NameTaken);
        }
        let is_same_key = held.as_ref().map(|own| &own.key) == credential.map(|own| &own.key);
        if !is_same_key && self.grants.is_full_for(credential) {
            return Err(ClaimRefused::TooMany);
        }
        if let Some(worker) = self.fleet.get_mut(slot) {
            worker.tenant = tenant.clone();
        }
        self.set_credential(slot, credential);
        Ok(Claim { joined: false, unserved: self.unserved(slot) })
    }

    /// The credential that a worker came with.
    pub fn credential_of(&self, worker: &WorkerId) -> Option<&Arc<WorkerCredential>> {
        let known = self.fleet.lookup(Who::Worker(worker.as_str()))?;
        self.fleet.profile(known.profile).credential.as_ref()
    }

    /// Whether a job that works on what this pointer names, which is not its own input, is at a worker of which
    /// `is_holder` says yes, or at one of those on its topic whose jobs this grant covers.
    pub fn is_lent(&self, pointer: &str, grant: &WorkerGrant, is_holder: impl Fn(&KeyId) -> bool) -> bool {
        let is_ours = |job: &JobId| match self.reservations.get(job) {
            Some(Reservation::Held { by: Holder::Worker(slot), .. }) => {
                let profile = self.fleet.get(*slot).map(|worker| self.fleet.profile(worker.profile));
                let credential = profile.and_then(|profile| profile.credential.as_ref());
                credential.is_some_and(|credential| is_holder(&credential.key))
            }
            Some(Reservation::Held { by: Holder::AnonymousGroup(_), request, .. }) => {
                grant.serves(&request.tenant, &request.topic)
            }
            _ => false,
        };
        self.lent.jobs_on(pointer).any(is_ours)
    }

    /// Jobs of these tenants are not for everybody who is here.
    pub(super) fn tell_apart(&mut self, tenants: &BTreeSet<TenantId>) {
        let grant = WorkerGrant { tenants: ServedTenants::Only(tenants.clone()), ..WorkerGrant::default() };
        if self.grants.learn(&grant) {
            self.relane();
        }
    }

    pub(super) fn set_credential(&mut self, slot: Slot, credential: Option<&Arc<WorkerCredential>>) {
        if credential.is_some_and(|credential| self.grants.learn(&credential.grant)) {
            self.relane();
        }
        let grants = &mut self.grants;
        self.index.update(slot, &mut self.fleet, |fleet| {
            let ix = fleet.get(slot)?.profile;
            let profile = (**fleet.profile(ix)).clone();
            grants.count(profile.credential.as_deref(), credential.map(|own| &**own));
            fleet.set_profile(slot, Profile { credential: credential.cloned(), ..profile });
            Some(())
        });
    }

    /// Waiting jobs that are told apart now are put into lanes of their own.
    fn relane(&mut self) {
        let (index, grants) = (&self.index, &self.grants);
        let told_apart = |reservation: &Reservation| match reservation {
            Reservation::Waiting { lane, ticket, request } => {
                let Selector { owner, bounds, .. } = &index.lane(*lane).selector;
                (*owner != grants.owner_of(request)).then(|| (*ticket, request.clone(), bounds.jobs_max))
            }
            Reservation::Held { .. } => None,
        };
        let mut moving: Vec<(Ticket, Arc<Request>, Option<u32>)> =
            self.reservations.values().filter_map(told_apart).collect();
        moving.sort_by_key(|(ticket, ..)| *ticket);
        for (_, request, jobs_max) in moving {
            self.remove(&request.id);
            let lane = self.lane(&request, jobs_max);
            self.enqueue(lane, request);
        }
    }

    /// Jobs at a worker that are not within its grant.
    fn unserved(&self, slot: Slot) -> Vec<JobId> {
        let Some(worker) = self.fleet.get(slot) else { return Vec::new() };
        let Some(credential) = &self.fleet.profile(worker.profile).credential else { return Vec::new() };
        let is_unserved = |job: &&JobId| match self.reservations.get(*job) {
            Some(Reservation::Held { request, .. }) => {
                !credential.grant.serves(&request.tenant, &request.topic)
            }
            _ => false,
        };
        self.held_by.get(&slot).into_iter().flatten().filter(is_unserved).cloned().collect()
    }
}

/// Whether two credentials are the same one's. Those without are told apart by nobody.
fn is_same(
    held: Option<&Arc<WorkerCredential>>,
    shown: Option<&Arc<WorkerCredential>>,
    is_same_holder: impl Fn(&KeyId, &KeyId) -> bool,
) -> bool {
    match (held, shown) {
        (None, None) => true,
        (Some(held), Some(shown)) => held.key == shown.key || is_same_holder(&held.key, &shown.key),
        _ => false,
    }
}
