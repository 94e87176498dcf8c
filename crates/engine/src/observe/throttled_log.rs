//! Warnings that come in floods are logged once in a while, with how many were left out.
//!
//! A full disk fails every live job once a second, and a hostile client can send bad packets as fast
//! as the wire allows; neither may fill the log.

use reveille_core::time::Millis;
use std::fmt::Display;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

const EVERY_MS: i64 = 5_000;

/// What the trouble is with; each is throttled by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Store,
    Bus,
    Packets,
}

#[derive(Default)]
pub struct ThrottledLog([Throttle; 3]);

impl ThrottledLog {
    pub fn of(&self, trouble: Trouble) -> &Throttle {
        &self.0[trouble as usize]
    }
}

/// One kind of trouble.
#[derive(Default)]
pub struct Throttle {
    logged_at: AtomicI64,
    suppressed: AtomicU64,
}

impl Throttle {
    /// `what` happened to `whom`.
    pub fn warn(&self, now: Millis, what: &str, whom: &dyn Display, error: &dyn Display) {
        if let Some(suppressed) = self.is_due(now) {
            tracing::warn!(%whom, %error, suppressed, "{what}");
        }
    }

    /// How many were left out since the last time, if it is time to log again.
    fn is_due(&self, now: Millis) -> Option<u64> {
        let logged_at = self.logged_at.load(Ordering::Relaxed);
        let is_time = logged_at == 0 || now.0 - logged_at >= EVERY_MS;
        if is_time
            && self.logged_at.compare_exchange(logged_at, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_logged_once_with_its_number() {
        let throttle = Throttle::default();
        let logged: Vec<Option<u64>> = (0..100).map(|n| throttle.is_due(Millis(1_000 + n * 100))).collect();
        assert_eq!(logged[0], Some(0));
        assert_eq!(logged[50], Some(49));
        assert_eq!(logged.iter().flatten().count(), 2);
    }
}
