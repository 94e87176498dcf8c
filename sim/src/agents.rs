//! Simulated VoiceGateway agents: they beat with their tenant's key, stall, die and come back. Two
//! tenants may use the same id, and two processes of one tenant, too.

use crate::faults::Fault;
use crate::watch::AgentKey;
use crate::world::{World, sleep_ms};
use reveille_core::presence::agent::{AgentBeat, AgentStatus};
use reveille_core::time::Millis;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const BEAT_MS: i64 = 15_000;

pub struct SimAgent {
    pub key: AgentKey,
    state: Mutex<AgentState>,
}

#[derive(Default)]
struct AgentState {
    dead: bool,
    stalled_until: Millis,
}

impl SimAgent {
    pub fn new(key: AgentKey) -> Self {
        Self { key, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, AgentState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_alive(&self) -> bool {
        !self.state().dead
    }

    pub fn die(&self) {
        self.state().dead = true;
    }

    pub fn stall(&self, until: Millis) {
        self.state().stalled_until = until;
    }

    pub fn come_back(&self) {
        *self.state() = AgentState::default();
    }

    /// Beats for as long as the run lasts.
    pub async fn live(self: Arc<Self>, world: Arc<World>) {
        sleep_ms(world.rng.between(0, BEAT_MS)).await;
        loop {
            let is_well = {
                let state = self.state();
                !state.dead && world.now() >= state.stalled_until
            };
            if is_well {
                self.beat(&world);
            }
            sleep_ms(BEAT_MS + world.rng.between(0, 900)).await;
        }
    }

    /// A beat on its way may get lost or be late, like everything else.
    fn beat(self: &Arc<Self>, world: &Arc<World>) {
        if world.strikes(Fault::MessageLost) {
            return;
        }
        let late = world.strikes(Fault::MessageLate);
        let delay_ms = if late { world.rng.skewed(100, 45_000) } else { world.rng.skewed(0, 4) };
        let sessions = if world.rng.percent(50) { world.rng.below(4) as u32 } else { 0 };
        let (agent, world) = (self.clone(), world.clone());
        tokio::spawn(async move {
            sleep_ms(delay_ms).await;
            agent.arrive(&world, sessions).await;
        });
    }

    async fn arrive(&self, world: &World, active_sessions: u32) {
        let Some((engine, life)) = world.engine() else { return };
        life.here().await;
        let (tenant, id) = &self.key;
        let beat = AgentBeat {
            agent_id: id.as_str().into(),
            name: "voice".into(),
            project: "default".into(),
            status: if active_sessions > 0 { AgentStatus::Busy } else { AgentStatus::Idle },
            active_sessions,
            ..AgentBeat::default()
        };
        match engine.fleet().agent_beat(tenant, &beat) {
            Ok(()) => {
                world.trace.say(format_args!("{tenant}'s agent {id} beats"));
                world.agents_watched.heard(&self.key, world.now());
            }
            Err(error) => world.fail(&format!("a beat of {id} was refused: {error}")),
        }
    }
}
