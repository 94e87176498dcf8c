//! Simulated Molecule workspaces: they register until they are answered, beat, take A2A requests and answer
//! them, die with what they had, come back, and move to another address.

use crate::faults::Fault;
use crate::world::{World, sleep_ms};
use bytes::Bytes;
use reveille_a2a::A2aReply;
use reveille_core::id::{JobId, TenantId, WorkerId, WorkspaceId};
use reveille_core::presence::workspace::Pulse;
use reveille_engine::{WorkspaceClaim, WorkspaceError, WorkspaceRegistration};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const BEAT_MS: i64 = 30_000;
const TRY_AGAIN_MS: i64 = 2_500;

pub struct SimWorkspace {
    pub id: WorkspaceId,
    pub tenant: TenantId,
    state: Mutex<SimWorkspaceState>,
}

#[derive(Default)]
struct SimWorkspaceState {
    dead: bool,
    registered: bool,
    /// Counts restarts: what an earlier process began, a later one does not finish.
    process: u64,
    address: u64,
    /// A2A requests by their message's id, with the answer once there is one.
    requests: BTreeMap<String, Option<A2aReply>>,
}

impl SimWorkspace {
    pub fn new(id: WorkspaceId, tenant: TenantId) -> Self {
        Self { id, tenant, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, SimWorkspaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_alive(&self) -> bool {
        !self.state().dead
    }

    pub fn url(&self) -> String {
        format!("http://{}-{}.sim/", self.id, self.state().address)
    }

    pub fn die(&self) {
        let mut state = self.state();
        *state = SimWorkspaceState {
            dead: true,
            process: state.process + 1,
            address: state.address,
            ..SimWorkspaceState::default()
        };
    }

    /// A new process under the old name, here or elsewhere.
    pub fn come_back(&self) {
        self.state().dead = false;
    }

    pub fn move_away(&self) {
        self.die();
        let mut state = self.state();
        state.address += 1;
        state.dead = false;
    }

    /// Registers and beats for as long as the run lasts.
    pub async fn live(self: Arc<Self>, world: Arc<World>) {
        sleep_ms(world.rng.between(0, 10_000)).await;
        loop {
            if self.is_alive() && !world.strikes(Fault::MessageLost) {
                self.attend(&world).await;
            }
            let is_registered = self.state().registered;
            sleep_ms(if is_registered { BEAT_MS - world.rng.between(0, 2_000) } else { TRY_AGAIN_MS }).await;
        }
    }

    async fn attend(&self, world: &Arc<World>) {
        let Some((engine, life)) = world.engine() else { return };
        let (process, registered) = {
            let state = self.state();
            (state.process, state.registered)
        };
        if registered {
            world.workspaces_watched.heard(&self.id, world.now());
            let pulse = Pulse {
                error_rate: *world.rng.pick(&[0.0, 0.0, 0.05, 0.3, 0.7]),
                active_tasks: self.state().requests.values().filter(|answer| answer.is_none()).count() as u32,
                ..Pulse::default()
            };
            let answer = life.answer(engine.workspaces().workspace_beat(&self.id, pulse)).await;
            if let Some(Err(WorkspaceError::NotFound)) = answer {
                // Another server may not have heard of it yet; then it registers there.
                if world.plan.is_shared() {
                    return self.state().registered = false;
                }
                world.fail(&format!("{} was registered and is not found", self.id));
            }
            return;
        }
        let agent_card = json!({ "name": self.id.as_str() });
        let registration = WorkspaceRegistration { id: self.id.clone(), url: self.url(), agent_card };
        let claim = WorkspaceClaim::Key(self.tenant.clone());
        let spoke_at = world.now();
        world.workspaces_watched.asks(&self.id);
        let answer = life.answer(engine.workspaces().register_workspace(&claim, registration, "agent")).await;
        world.workspaces_watched.is_answered(&self.id);
        let Some(Ok(_)) = answer else { return };
        world.trace.say(format_args!("{} is registered at {}", self.id, self.url()));
        world.workspaces_watched.heard_between(&self.id, spoke_at, world.now());
        let mut state = self.state();
        if state.process == process {
            state.registered = true;
        }
    }

    /// Does what a request asks for. Nothing if the process dies over it.
    pub async fn answer(&self, world: &Arc<World>, message: &str) -> Option<A2aReply> {
        let process = self.state().process;
        let known = {
            let mut state = self.state();
            let known = state.requests.get(message).cloned();
            state.requests.entry(message.to_owned()).or_default();
            known
        };
        match known {
            Some(Some(reply)) => return Some(reply),
            // The same request again: it gets the answer that the first one gets.
            Some(None) => loop {
                sleep_ms(500).await;
                let state = self.state();
                if state.process != process {
                    return None;
                }
                if let Some(Some(reply)) = state.requests.get(message) {
                    return Some(reply.clone());
                }
            },
            None => {}
        }
        sleep_ms(world.rng.skewed(5, 60_000)).await;
        if self.state().process != process {
            return None;
        }
        let reply = self.outcome(world, message);
        self.state().requests.insert(message.to_owned(), Some(reply.clone()));
        Some(reply)
    }

    fn outcome(&self, world: &Arc<World>, message: &str) -> A2aReply {
        let body = |value: serde_json::Value| Bytes::from(value.to_string());
        let error = |code| json!({ "jsonrpc": "2.0", "error": { "code": code, "message": "no" } });
        match world.rng.below(100) {
            0..=9 => {
                self.finished(world, message);
                tokio::spawn(tell_later(world.clone(), self.id.clone(), JobId::known(message)));
                A2aReply::new(202, body(json!({ "queued": true })))
            }
            10..=19 => A2aReply::new(200, body(error(-32_001))),
            20..=27 => A2aReply::new(200, body(error(-32_600))),
            _ => {
                self.finished(world, message);
                let parts = json!([{ "kind": "text", "text": "done" }]);
                A2aReply::new(200, body(json!({ "jsonrpc": "2.0", "result": { "parts": parts } })))
            }
        }
    }

    fn finished(&self, world: &World, message: &str) {
        world.check(|ledger| {
            ledger.finished(message, &WorkerId::known(self.id.as_str()));
            Ok(())
        });
    }
}

/// It has kept the request for later, and says in a call of its own how it went, until it is answered.
async fn tell_later(world: Arc<World>, id: WorkspaceId, job: JobId) {
    loop {
        sleep_ms(world.rng.between(100, 20_000)).await;
        let Some((engine, life)) = world.engine() else { continue };
        let Some(speaker) =
            world.workspace(&id).and_then(|own| engine.workspaces().workspace(&own.tenant, &id))
        else {
            continue;
        };
        let told = life
            .answer(engine.delegations().report_delegation(&speaker, &job, Ok("done later".to_owned())))
            .await;
        match told {
            Some(Ok(())) => return world.situations.record(crate::situations::Situation::AnsweredLater),
            Some(Err(reveille_engine::DelegateError::Refused(_))) => return,
            _ => {}
        }
    }
}
