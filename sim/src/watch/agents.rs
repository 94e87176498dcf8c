//! VoiceGateway agents: offline on time and not before, known again after a restart, and nobody's but
//! their tenant's.

use super::{LastHeard, NOTICED_MS, SETTLED_MS, TICK_MS};
use crate::invariants::InvariantResult;
use crate::plan::TENANTS;
use crate::situations::Situation;
use crate::world::World;
use reveille_core::fleet::Worker;
use reveille_core::id::{TenantId, WorkerId};
use reveille_core::presence::agent::AgentStatus;
use reveille_core::presence::{About, Contract};
use reveille_core::time::Millis;
use reveille_engine::{Audience, Engine};
use reveille_roster::{AHEAD_MS, PresenceKey, PresenceRow};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An agent that has been silent for so long is offline.
const AGENT_TTL_MS: i64 = 45_000;
/// A beat that was taken is written down within this long, the write included.
const WRITTEN_MS: i64 = 350;

/// An agent's id means something within its tenant only.
pub type AgentKey = (TenantId, WorkerId);

#[derive(Default)]
pub struct AgentsWatched(Mutex<KnownAgents>);

/// What one life of the server should know; `ever` is of all of them.
#[derive(Default)]
struct KnownAgents {
    up_at: Option<Millis>,
    heard: BTreeMap<AgentKey, HeardAgent>,
    restored: BTreeMap<AgentKey, RestoredAgent>,
    offline: BTreeSet<AgentKey>,
    noted: BTreeSet<AgentKey>,
    ever: BTreeSet<AgentKey>,
}

struct HeardAgent {
    hearing: LastHeard,
    /// Pauses change nothing of this.
    taken_at: Millis,
}

/// As the roster had it when the server started.
struct RestoredAgent {
    hearing: LastHeard,
    /// It was not offline when the server died.
    was_alive: bool,
}

impl AgentsWatched {
    fn known(&self) -> MutexGuard<'_, KnownAgents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server took a beat.
    pub fn heard(&self, agent: &AgentKey, now: Millis) {
        let mut known = self.known();
        known.ever.insert(agent.clone());
        known.heard.insert(agent.clone(), HeardAgent { hearing: LastHeard::at(now), taken_at: now });
    }

    pub fn was_ever_heard(&self, agent: &AgentKey) -> bool {
        self.known().ever.contains(agent)
    }

    pub fn new_life(&self) {
        let mut known = self.known();
        let ever = std::mem::take(&mut known.ever);
        *known = KnownAgents { ever, ..KnownAgents::default() };
    }

    /// The server was given these rows when it started.
    pub fn restored(&self, rows: &[PresenceRow], now: Millis) {
        let mut known = self.known();
        for row in rows.iter().filter(|row| row.key.contract == Contract::VoiceGateway) {
            let key = (row.key.tenant.clone(), WorkerId::known(row.key.id.as_str()));
            let was_alive =
                !matches!(&row.about, About::Agent(agent) if agent.status == AgentStatus::Offline);
            known.restored.insert(key, RestoredAgent { hearing: LastHeard::at(now), was_alive });
        }
    }

    pub fn up(&self, now: Millis) {
        self.known().up_at = Some(now);
    }

    pub fn paused(&self, ms: i64) {
        let mut known = self.known();
        let KnownAgents { heard, restored, up_at, .. } = &mut *known;
        let heard = heard.values_mut().map(|heard| &mut heard.hearing);
        let restored = restored.values_mut().map(|restored| &mut restored.hearing);
        heard.chain(restored).for_each(|hearing| hearing.paused(ms));
        if let Some(at) = up_at {
            *at = *at + ms + TICK_MS;
        }
    }
}

pub fn look(world: &World, engine: &Engine, now: Millis) -> InvariantResult {
    let mut known = world.agents_watched.known();
    let mut listed = BTreeSet::new();
    for tenant in TENANTS.map(TenantId::known) {
        for agent in engine.fleet().agents(&Audience::Tenant(tenant.clone()), usize::MAX) {
            let key = (agent.tenant.clone(), agent.id.clone());
            if agent.tenant != tenant || agent.contract() != Contract::VoiceGateway {
                return Err(format!("{tenant} sees {} of {}", agent.id, agent.tenant));
            }
            if !listed.insert(key.clone()) {
                return Err(format!("{tenant}'s agent {} is listed twice", agent.id));
            }
            known.is_told_truly(world, &key, &agent, now)?;
        }
    }
    if engine.fleet().agents(&Audience::Everyone, usize::MAX).len() != listed.len() {
        return Err("there are agents that no tenant has".to_owned());
    }
    known.nobody_is_missing(&listed, now)?;
    known.is_written_down(world, now)
}

impl KnownAgents {
    fn is_told_truly(
        &mut self,
        world: &World,
        key: &AgentKey,
        agent: &Worker,
        now: Millis,
    ) -> InvariantResult {
        let name = format!("{}'s agent {}", key.0, key.1);
        let About::Agent(about) = &agent.about else { return Err(format!("{name} is no agent")) };
        if !self.ever.contains(key) {
            return Err(format!("{name} is listed and was never heard"));
        }
        if agent.offline != (about.status == AgentStatus::Offline) {
            return Err(format!("{name} is said to be {}", about.status.as_str()));
        }
        if agent.offline && about.active_sessions != 0 {
            return Err(format!("{name} is offline and has {} sessions", about.active_sessions));
        }
        let (earliest, latest) = match (self.heard.get(key), self.restored.get(key)) {
            (Some(heard), _) => (Some(heard.hearing.at), heard.hearing.latest()),
            (None, Some(restored)) => {
                let earliest = restored.was_alive.then_some(restored.hearing.at);
                (earliest, restored.hearing.latest().max(self.up_at.unwrap_or(now)))
            }
            (None, None) => return Err(format!("{name} is listed and nobody told of it")),
        };
        let silent_ms = now.since(latest);
        if !agent.offline && silent_ms > AGENT_TTL_MS + NOTICED_MS {
            return Err(format!("{name} is not offline {silent_ms} ms after it was last heard"));
        }
        let silent_ms = earliest.map_or(i64::MAX, |earliest| now.since(earliest));
        if agent.offline && (SETTLED_MS..AGENT_TTL_MS).contains(&silent_ms) {
            return Err(format!("{name} is offline {silent_ms} ms after it was last heard"));
        }
        if agent.restored && self.heard.contains_key(key) {
            return Err(format!("{name} was heard and still counts as restored"));
        }
        self.note(world, key, agent);
        Ok(())
    }

    fn note(&mut self, world: &World, key: &AgentKey, agent: &Worker) {
        if agent.restored && self.noted.insert(key.clone()) {
            world.situations.record(Situation::AgentRestored);
        }
        if agent.offline && self.offline.insert(key.clone()) {
            world.situations.record(Situation::AgentOffline);
        } else if !agent.offline && self.offline.remove(key) {
            world.situations.record(Situation::AgentBack);
        }
    }

    fn nobody_is_missing(&self, listed: &BTreeSet<AgentKey>, now: Millis) -> InvariantResult {
        let heard = self.heard.iter().filter(|(_, heard)| now.since(heard.taken_at) >= SETTLED_MS);
        let known = heard.map(|(key, _)| key).chain(self.restored.keys());
        match known.into_iter().find(|key| !listed.contains(*key)) {
            Some((tenant, id)) => Err(format!("{tenant}'s agent {id} is not listed")),
            None => Ok(()),
        }
    }

    /// What was taken survives a crash that comes a little later.
    fn is_written_down(&self, world: &World, now: Millis) -> InvariantResult {
        let calm_since = world.roster_calm.since();
        for ((tenant, id), heard) in &self.heard {
            if now.since(heard.taken_at.max(calm_since)) <= WRITTEN_MS {
                continue;
            }
            let (contract, tenant) = (Contract::VoiceGateway, tenant.clone());
            let key = PresenceKey { contract, tenant, id: id.to_string() };
            let written = world.look_up(|archive| archive.last_seen(&key));
            // Not in the far future either: a clock that was set back does not leave old rows standing.
            let may_be = heard.taken_at..=now + AHEAD_MS;
            if written.is_none_or(|written| !may_be.contains(&world.when(written))) {
                return Err(format!("the last beat of {id} was taken and is not written down"));
            }
        }
        Ok(())
    }
}
