//! VoiceGateway agents: beats in, and what they make of the fleet.

use super::Fleet;
use crate::cluster::{PeerMessage, SeenBy};
use crate::observe::events::{Audience, WorkerChange};
use reveille_core::fleet::{BeatSource, NoRoom, PresenceChange, Slot, Worker};
use reveille_core::id::{TenantId, WorkerId};
use reveille_core::placement::Member;
use reveille_core::presence::Contract;
use reveille_core::presence::agent::{AgentBeat, BadBeat};
use reveille_core::time::Millis;
use std::cmp::Reverse;

/// Beats taken while placement is held once.
const CHUNK: usize = 128;
/// Agents copied while placement is held once.
const COPIED_AT_ONCE: usize = 1_024;

/// Why a beat was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BeatError {
    #[error(transparent)]
    Bad(#[from] BadBeat),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

impl Fleet {
    /// An agent says that it lives. The tenant is the key's; the time is ours.
    pub fn agent_beat(&self, tenant: &TenantId, beat: &AgentBeat<'_>) -> Result<(), BeatError> {
        beat.check()?;
        let now = self.runtime.now();
        let noticed = self
            .placement
            .lock()
            .agent_beat(tenant, beat, BeatSource::ThisServer, now)
            .map_err(|none| self.turned_away(none))?;
        self.observe.metrics().fleet().beats(1);
        self.publish_agent(tenant, beat, noticed, SeenBy::ThisServer);
        self.share_beat(tenant, beat);
        Ok(())
    }

    /// Another server has heard it.
    pub(crate) fn on_peer_agent(&self, tenant: &TenantId, beat: &AgentBeat<'_>) {
        let now = self.runtime.now();
        let noticed = self.placement.lock().agent_beat(tenant, beat, BeatSource::AnotherServer, now);
        if let Ok(noticed) = noticed {
            self.publish_agent(tenant, beat, noticed, SeenBy::AnotherServer);
        }
    }

    /// Many beats at once, each taken or refused by itself; says which were refused and why.
    pub fn agent_beats(&self, tenant: &TenantId, beats: &[AgentBeat<'_>]) -> Vec<(usize, BeatError)> {
        let now = self.runtime.now();
        let mut refused = Vec::new();
        let mut changed = Vec::new();
        for (chunk_ix, chunk) in beats.chunks(CHUNK).enumerate() {
            let mut placement = self.placement.lock();
            for (ix, beat) in chunk.iter().enumerate() {
                let taken = match beat.check() {
                    Ok(()) => placement
                        .agent_beat(tenant, beat, BeatSource::ThisServer, now)
                        .map_err(BeatError::NoRoom),
                    Err(bad) => Err(bad.into()),
                };
                if taken.is_ok() {
                    self.share_beat(tenant, beat);
                }
                match taken {
                    Ok(noticed) if noticed.changed => changed.push((beat, noticed)),
                    Ok(_) => {}
                    Err(error) => refused.push((chunk_ix * CHUNK + ix, error)),
                }
            }
        }
        for (_, error) in &refused {
            if let BeatError::NoRoom(none) = error {
                self.turned_away(*none);
            }
        }
        self.observe.metrics().fleet().beats((beats.len() - refused.len()) as u64);
        for (beat, noticed) in changed {
            self.publish_agent(tenant, beat, noticed, SeenBy::ThisServer);
        }
        refused
    }

    /// Counts a newcomer that its tenant has no place for.
    pub(super) fn turned_away(&self, none: NoRoom) -> NoRoom {
        if let NoRoom::Tenant(over) = none {
            self.observe.metrics().over_quota(over);
        }
        none
    }

    /// A beat that came over HTTP, which only this server has heard.
    fn share_beat(&self, tenant: &TenantId, beat: &AgentBeat<'_>) {
        self.cluster.publish(&|| PeerMessage::Agent { tenant: tenant.clone(), beat: Box::new(beat.kept()) });
    }

    fn publish_agent(
        &self,
        tenant: &TenantId,
        beat: &AgentBeat<'_>,
        noticed: PresenceChange,
        seen_by: SeenBy,
    ) {
        if !noticed.changed {
            return;
        }
        let id = WorkerId::known(&*beat.agent_id);
        let member = Member { contract: Contract::VoiceGateway, tenant: tenant.clone(), id };
        let change = if noticed.joined { WorkerChange::Joined } else { WorkerChange::Changed };
        self.cluster.announce(member, change, seen_by);
    }

    /// At most `max` agents, those heard last first. Only those are copied, and placement is held for a part of them at
    /// a time: a large fleet holds nobody else up.
    pub fn agents(&self, audience: &Audience, max: usize) -> Vec<Worker> {
        let mut heard = match audience {
            Audience::Tenant(tenant) => self.agents_heard(tenant),
            Audience::Everyone => self.all_agents_heard(),
        };
        if heard.len() > max {
            heard.select_nth_unstable_by_key(max, |(last_seen, _)| Reverse(*last_seen));
            heard.truncate(max);
        }
        let mut agents = Vec::with_capacity(heard.len());
        for chunk in heard.chunks(COPIED_AT_ONCE) {
            let placement = self.placement.lock();
            let members = chunk.iter().filter_map(|(_, slot)| placement.fleet().get(*slot));
            // The slot may be somebody else's by now.
            let is_meant = |worker: &&Worker| {
                worker.contract() == Contract::VoiceGateway && audience.includes(&worker.tenant)
            };
            agents.extend(members.filter(is_meant).cloned());
        }
        agents.sort_by(|a, b| b.last_seen.cmp(&a.last_seen).then_with(|| a.id.cmp(&b.id)));
        agents
    }

    /// When each agent of a tenant was last heard.
    fn agents_heard(&self, tenant: &TenantId) -> Vec<(Millis, Slot)> {
        let placement = self.placement.lock();
        let fleet = placement.fleet();
        fleet.agent_slots_of(tenant).filter_map(|slot| Some((fleet.get(slot)?.last_seen, slot))).collect()
    }

    fn all_agents_heard(&self) -> Vec<(Millis, Slot)> {
        let mut heard = Vec::new();
        for part in 0.. {
            let placement = self.placement.lock();
            let Some(agents) = placement.fleet().agents_in_part(part) else { break };
            heard.extend(agents.map(|(slot, agent)| (agent.last_seen, slot)));
        }
        heard
    }

    /// Forgets agents that have been offline since before then, at most so many of them.
    pub(crate) fn forget_long_gone(&self, seen_before: Millis, max: usize) {
        let gone: Vec<Member> = {
            let table = self.placement.lock();
            let workers = table.fleet().iter().map(|(_, worker)| worker);
            let long_gone = workers.filter(|worker| {
                worker.offline
                    && worker.contract() == Contract::VoiceGateway
                    && worker.last_seen < seen_before
            });
            long_gone.take(max).map(Member::of).collect()
        };
        for member in gone {
            self.placement.lock().remove_member(member.who());
            self.cluster.announce(member, WorkerChange::Left, SeenBy::AllServers);
        }
    }
}
