//! The key behind a connection, checked for as long as the connection is open.
//!
//! A key that is revoked or expires must not leave its connections behind: a worker would go on taking jobs with it.
//! So every connection asks the gate once a second, also while it waits for something else, and never acts on an
//! answer that is older than that.

use crate::gate::{Gate, Guest, Standing};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often a connection asks whether its key still counts.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// One connection's key. It has no guest until a client was admitted.
pub(crate) struct KeySession {
    gate: Arc<dyn Gate>,
    admitted: Mutex<Option<AdmittedGuest>>,
}

struct AdmittedGuest {
    guest: Guest,
    checked_at: Instant,
}

/// Why a guest may not stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyEnd {
    Expired,
    Revoked,
}

impl KeySession {
    pub fn new(gate: Arc<dyn Gate>) -> Self {
        Self { gate, admitted: Mutex::new(None) }
    }

    /// The gate has just admitted this guest.
    pub fn begin(&self, guest: Guest) {
        *self.lock() = Some(AdmittedGuest { guest, checked_at: Instant::now() });
    }

    /// Whether the guest may still act. Asks the gate only if its last answer is too old.
    pub fn check(&self) -> Result<(), KeyEnd> {
        match &mut *self.lock() {
            Some(admitted) if admitted.checked_at.elapsed() >= CHECK_INTERVAL => self.ask(admitted),
            _ => Ok(()),
        }
    }

    /// Waits until the guest may not stay any longer.
    pub async fn ended(&self) -> KeyEnd {
        let mut checks = interval(CHECK_INTERVAL);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            checks.tick().await;
            if let Some(admitted) = &mut *self.lock()
                && let Err(end) = self.ask(admitted)
            {
                return end;
            }
        }
    }

    fn ask(&self, admitted: &mut AdmittedGuest) -> Result<(), KeyEnd> {
        admitted.checked_at = Instant::now();
        match self.gate.standing(&admitted.guest) {
            Standing::Valid => Ok(()),
            Standing::Expired => Err(KeyEnd::Expired),
            Standing::Revoked => Err(KeyEnd::Revoked),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<AdmittedGuest>> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
