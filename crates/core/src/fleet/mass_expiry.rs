//! How fast the dead may be declared dead.
//!
//! When most of the fleet falls silent at once, the trouble is more likely ours (a network that was cut,
//! a proxy that hangs) than theirs. Then death is slowed down: a few at a time, while the others may
//! still be heard. A single death, or a rack of them, is declared on time.

use crate::time::Millis;

/// Deaths in one look, at most: jobs are not all thrown back in the same instant.
pub const DEATHS_MAX: usize = 2_000;
/// Fewer deaths than this in [`RECENT_MS`] are never suspicious.
const SUSPICIOUS_MIN: usize = 20;
const RECENT_MS: i64 = 5_000;
/// How often the whole fleet is looked at while deaths are suspicious.
const LOOK_EVERY_MS: i64 = 1_000;
/// While most are silent, one in so many of the fleet may die a second.
const SLOW_SHARE: usize = 100;

#[derive(Default)]
pub struct MassExpiryGuard {
    recent_since: Millis,
    recent: usize,
    looked_at: Option<Millis>,
    slow: bool,
    slow_since: Millis,
    slow_spent: usize,
}

impl MassExpiryGuard {
    /// How many of `due` may be declared dead now. `mostly_silent` looks at everyone and is asked rarely.
    pub fn allow(
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
            self.slow = false;
        } else if self.looked_at.is_none_or(|at| now.since(at) >= LOOK_EVERY_MS) {
            self.looked_at = Some(now);
            let was_slow = std::mem::replace(&mut self.slow, mostly_silent());
            if self.slow && !was_slow {
                (self.slow_since, self.slow_spent) = (now, 0);
            }
        }
        let mut allowed = due.min(DEATHS_MAX);
        if self.slow {
            let a_second = (alive / SLOW_SHARE).max(1);
            let so_far = a_second * (now.since(self.slow_since) as usize + 1_000) / 1_000;
            allowed = allowed.min(so_far.saturating_sub(self.slow_spent));
            self.slow_spent += allowed;
        }
        self.recent += allowed;
        allowed
    }

    /// Most of the fleet is silent, and deaths are held back.
    pub fn is_slow(&self) -> bool {
        self.slow
    }
}
