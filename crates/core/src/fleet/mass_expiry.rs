//! The mass-expiry guard: how many members may expire at once.
//!
//! When most of the fleet falls silent at once, the fault is more likely ours (a network that was cut,
//! a proxy that hangs) than theirs. Then expiry is slowed down: a few at a time, while the others may
//! still be heard. One member, or a rack of them, expires on time.

use crate::time::Millis;

/// Members that expire in one tick, at most: their jobs do not all go back to the queue in the same instant.
pub const EXPIRED_MAX: usize = 2_000;
/// Fewer than this in [`RECENT_MS`] are never suspicious.
const SUSPICIOUS_MIN: usize = 20;
const RECENT_MS: i64 = 5_000;
/// How often the whole fleet is scanned while expiry is suspicious.
const SCAN_EVERY_MS: i64 = 1_000;
/// While most are silent, one in so many of the fleet may expire a second.
const SLOW_SHARE: usize = 100;

#[derive(Default)]
pub struct MassExpiryGuard {
    recent_since: Millis,
    recent: usize,
    scanned_at: Option<Millis>,
    is_active: bool,
    active_since: Millis,
    expired: usize,
}

impl MassExpiryGuard {
    /// How many of `due` may expire now. `mostly_silent` scans the whole fleet and is called rarely.
    pub fn admit(
        &mut self,
        due: usize,
        alive: usize,
        now: Millis,
        mostly_silent: impl FnOnce() -> bool,
    ) -> usize {
        if now.since(self.recent_since) >= RECENT_MS {
            (self.recent_since, self.recent) = (now, 0);
        }
        let suspicious = self.recent + due > SUSPICIOUS_MIN.max(alive / SLOW_SHARE);
        if !suspicious {
            self.is_active = false;
        } else if self.scanned_at.is_none_or(|at| now.since(at) >= SCAN_EVERY_MS) {
            self.scanned_at = Some(now);
            let was_active = std::mem::replace(&mut self.is_active, mostly_silent());
            if self.is_active && !was_active {
                (self.active_since, self.expired) = (now, 0);
            }
        }
        let mut allowed = due.min(EXPIRED_MAX);
        if self.is_active {
            let per_second = (alive / SLOW_SHARE).max(1);
            let so_far = per_second * (now.since(self.active_since) as usize + 1_000) / 1_000;
            allowed = allowed.min(so_far.saturating_sub(self.expired));
            self.expired += allowed;
        }
        self.recent += allowed;
        allowed
    }

    /// Most of the fleet is silent at once, and expiry is held back.
    pub fn is_active(&self) -> bool {
        self.is_active
    }
}
