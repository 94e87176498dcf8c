//! Trouble that comes in crowds is told once in a while, with how often it was not told.
//!
//! A full disk fails every live job once a second, and a hostile client can send bad packets as fast
//! as the wire allows; neither may fill the log.

use reveille_core::time::Millis;
use std::fmt::Display;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

const EVERY_MS: i64 = 5_000;

#[derive(Default)]
pub struct Trouble {
    pub store: Quiet,
    pub bus: Quiet,
    pub packets: Quiet,
}

/// One kind of trouble.
#[derive(Default)]
pub struct Quiet {
    told_at: AtomicI64,
    untold: AtomicU64,
}

impl Quiet {
    /// `what` happened to `whom`.
    pub fn tell(&self, now: Millis, what: &str, whom: &dyn Display, error: &dyn Display) {
        if let Some(untold) = self.may_tell(now) {
            tracing::warn!(%whom, %error, untold, "{what}");
        }
    }

    /// How many were left out since the last time, if it is time to tell again.
    fn may_tell(&self, now: Millis) -> Option<u64> {
        let told_at = self.told_at.load(Ordering::Relaxed);
        let is_time = told_at == 0 || now.0 - told_at >= EVERY_MS;
        if is_time
            && self.told_at.compare_exchange(told_at, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return Some(self.untold.swap(0, Ordering::Relaxed));
        }
        self.untold.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_of_trouble_is_told_once_with_its_number() {
        let quiet = Quiet::default();
        let told: Vec<Option<u64>> = (0..100).map(|n| quiet.may_tell(Millis(1_000 + n * 100))).collect();
        assert_eq!(told[0], Some(0));
        assert_eq!(told[50], Some(49));
        assert_eq!(told.iter().flatten().count(), 2);
    }
}
