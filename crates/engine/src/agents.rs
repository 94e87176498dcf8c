//! VoiceGateway agents: beats in, and what they make of the fleet.

use crate::Engine;
use crate::chorus::Sight;
use crate::events::WorkerChange;
use reveille_core::fleet::{BeatSource, Noticed, Worker};
use reveille_core::id::{TenantId, WorkerId};
use reveille_core::placement::Member;
use reveille_core::presence::Contract;
use reveille_core::presence::agent::{AgentBeat, BadBeat};

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

impl Engine {
    /// An agent says that it lives. The tenant is the key's; the time is ours.
    pub fn agent_beat(&self, tenant: &TenantId, beat: &AgentBeat<'_>) -> Result<(), BeatError> {
        beat.check()?;
        let now = self.now();
        let noticed =
            self.placement().agent_beat(tenant, beat, BeatSource::ThisServer, now).ok_or(BeatError::Full)?;
        self.metrics.fleet.beats(1);
        self.tell_agent(tenant, beat, noticed, Sight::First);
        self.tell_beat(tenant, beat);
        Ok(())
    }

    /// Another server has heard it.
    pub(crate) fn hear_agent(&self, tenant: &TenantId, beat: &AgentBeat<'_>) {
        let now = self.now();
        let noticed = self.placement().agent_beat(tenant, beat, BeatSource::AnotherServer, now);
        if let Some(noticed) = noticed {
            self.tell_agent(tenant, beat, noticed, Sight::Second);
        }
    }

    /// Many beats at once, each taken or refused by itself; says which were refused and why.
    pub fn agent_beats(&self, tenant: &TenantId, beats: &[AgentBeat<'_>]) -> Vec<(usize, BeatError)> {
        let now = self.now();
        let mut refused = Vec::new();
        let mut news = Vec::new();
        for (chunk_ix, chunk) in beats.chunks(CHUNK).enumerate() {
            let mut placement = self.placement();
            for (ix, beat) in chunk.iter().enumerate() {
                let taken = match beat.check() {
                    Ok(()) => {
                        placement.agent_beat(tenant, beat, BeatSource::ThisServer, now).ok_or(BeatError::Full)
                    }
                    Err(bad) => Err(bad.into()),
                };
                if taken.is_ok() {
                    self.tell_beat(tenant, beat);
                }
                match taken {
                    Ok(noticed) if noticed.changed => news.push((beat, noticed)),
                    Ok(_) => {}
                    Err(error) => refused.push((chunk_ix * CHUNK + ix, error)),
                }
            }
        }
        self.metrics.fleet.beats((beats.len() - refused.len()) as u64);
        for (beat, noticed) in news {
            self.tell_agent(tenant, beat, noticed, Sight::First);
        }
        refused
    }

    fn tell_agent(&self, tenant: &TenantId, beat: &AgentBeat<'_>, noticed: Noticed, sight: Sight) {
        if !noticed.changed {
            return;
        }
        let id = WorkerId::known(&*beat.agent_id);
        let member = Member { contract: Contract::VoiceGateway, tenant: tenant.clone(), id };
        let change = if noticed.joined { WorkerChange::Joined } else { WorkerChange::Changed };
        self.tell_member(member, change, sight);
    }

    /// A tenant's agents, those heard last first.
    pub fn agents(&self, tenant: &TenantId) -> Vec<Worker> {
        let mut agents: Vec<Worker> = self.placement().fleet().agents_of(tenant).cloned().collect();
        agents.sort_by(|a, b| b.last_seen.cmp(&a.last_seen).then_with(|| a.id.cmp(&b.id)));
        agents
    }

    /// Every tenant's agents, for operators.
    pub fn all_agents(&self) -> Vec<Worker> {
        let placement = self.placement();
        let agents = placement.fleet().iter().map(|(_, worker)| worker);
        let mut agents: Vec<Worker> =
            agents.filter(|worker| worker.contract() == Contract::VoiceGateway).cloned().collect();
        drop(placement);
        agents.sort_by(|a, b| b.last_seen.cmp(&a.last_seen).then_with(|| a.id.cmp(&b.id)));
        agents
    }
}
