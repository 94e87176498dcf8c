//! What a server is at.

use reveille_api_types::system::{CircuitState, LockHeld, Timers};
use reveille_core::time::Millis;
use reveille_engine::{Ahead, Circuit, Engine};
use reveille_store::HeldLock;

pub fn circuit_state(engine: &Engine, circuit: Circuit) -> CircuitState {
    CircuitState {
        name: circuit.name().to_owned(),
        state: engine.jobs().policy().kernel().circuit(circuit).name().to_owned(),
    }
}

pub fn lock_held(lock: HeldLock) -> LockHeld {
    let (purpose, until) = (Engine::lock_purpose(&lock.name).to_owned(), lock.until.rfc3339());
    LockHeld { name: lock.name, purpose, holder: lock.holder, until }
}

pub fn timers(ahead: Ahead) -> Timers {
    Timers { owed: ahead.timers, next_at: ahead.next.map(Millis::rfc3339) }
}
