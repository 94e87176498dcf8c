//! The wall clock, for the moment that stands in every packet, and chance, which keeps a fleet from
//! doing everything at the same moment. Waiting is measured by the runtime's clock.

use std::time::{SystemTime, UNIX_EPOCH};

use reveille_core::time::Millis;

#[expect(clippy::disallowed_methods, reason = "this is the worker's clock")]
pub fn now() -> Millis {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(since_epoch.as_millis() as i64)
}

/// The same moment in the unit of the presence contracts.
pub fn now_s() -> f64 {
    now().0 as f64 / 1000.0
}

/// Any number. Without the system's randomness pauses lose their jitter, which is no reason to stop.
pub fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}
