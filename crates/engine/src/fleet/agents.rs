//! VoiceGateway agents: beats in, and what they make of the fleet.

use super::Fleet;
use crate::cluster::{PeerMessage, SeenBy};
use crate::observe::events::WorkerChange;
use reveille_core::fleet::{BeatSource, PresenceChange, Worker};
use reveille_core::id::{TenantId, WorkerId};
use reveille_core::placement::Member;
use reveille_core::presence::Contract;
use reveille_core::presence::agent::{AgentBeat, BadBeat};
use reveille_core::time::Millis;

/// Beats taken while placement is held once.
const CHUNK: usize = 128;

/// Why a beat was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BeatError {
    #[error(transparent)]
    Bad(#[from] BadBeat),
    #[error("the fleet is full")]
    Full,
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
            .ok_or(BeatError::Full)?;
        self.observe.metrics().fleet().beats(1);
        self.publish_agent(tenant, beat, noticed, SeenBy::ThisServer);
        self.share_beat(tenant, beat);
        Ok(())
    }

    /// Another server has heard it.
    pub(crate) fn on_peer_agent(&self, tenant: &TenantId, beat: &AgentBeat<'_>) {
        let now = self.runtime.now();
        let noticed = self.placement.lock().agent_beat(tenant, beat, BeatSource::AnotherServer, now);
        if let Some(noticed) = noticed {
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
                    Ok(()) => {
                        placement.agent_beat(tenant, beat, BeatSource::ThisServer, now).ok_or(BeatError::Full)
                    }
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
        self.observe.metrics().fleet().beats((beats.len() - refused.len()) as u64);
        for (beat, noticed) in changed {
            self.publish_agent(tenant, beat, noticed, SeenBy::ThisServer);
        }
        refused
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

    /// A tenant's agents, those heard last first.
    pub fn agents(&self, tenant: &TenantId) -> Vec<Worker> {
        let mut agents: Vec<Worker> = self.placement.lock().fleet().agents_of(tenant).cloned().collect();
        agents.sort_by(|a, b| b.last_seen.cmp(&a.last_seen).then_with(|| a.id.cmp(&b.id)));
        agents
    }

    /// Every tenant's agents, for operators.
    pub fn all_agents(&self) -> Vec<Worker> {
        let placement = self.placement.lock();
        let agents = placement.fleet().iter().map(|(_, worker)| worker);
        let mut agents: Vec<Worker> =
            agents.filter(|worker| worker.contract() == Contract::VoiceGateway).cloned().collect();
        drop(placement);
        agents.sort_by(|a, b| b.last_seen.cmp(&a.last_seen).then_with(|| a.id.cmp(&b.id)));
        agents
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
