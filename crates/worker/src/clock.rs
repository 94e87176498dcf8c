//! The wall clock, for the moment that stands in every packet. Waiting is measured by the runtime's clock.

use std::time::{SystemTime, UNIX_EPOCH};

use reveille_core::time::Millis;

#[expect(clippy::disallowed_methods, reason = "this is the worker's clock")]
pub fn now() -> Millis {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(since_epoch.as_millis() as i64)
}
