//! Clients that lost us come back in a hot loop. Each workspace gets so many calls a second at the registry,
//! and what is beyond is turned away before any work is done.
//!
//! One moment is kept per workspace: when its bucket will be full again (the generic cell rate algorithm).
//! A full bucket is the same as none, so the table holds only who called within the last seconds.

use super::refused::Refused;
use axum::http::StatusCode;
use reveille_core::id::WorkspaceId;
use reveille_core::time::Millis;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Calls of one workspace: ten a second, twenty at once.
const OWN: Rate = Rate { every_micros: 100_000, burst: 20 };
/// Calls for ids that nobody knows, all together.
const UNKNOWN: Rate = Rate { every_micros: 2_000, burst: 2_000 };
/// Below so many entries the table is not looked through.
const SWEEP_MIN: usize = 1_024;

struct Rate {
    every_micros: i64,
    burst: i64,
}

#[derive(Default)]
pub struct Limiter(Mutex<Buckets>);

#[derive(Default)]
struct Buckets {
    /// When each will be full again, in microseconds.
    full_at: FxHashMap<WorkspaceId, i64>,
    unknown_full_at: i64,
    sweep_at_len: usize,
}

impl Limiter {
    /// A call for a workspace that is known.
    pub fn call(&self, id: &WorkspaceId, now: Millis) -> Result<(), Refused> {
        let now = now.0.saturating_mul(1_000);
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(full_at) = buckets.full_at.get_mut(id) {
            return OWN.take(full_at, now);
        }
        if buckets.full_at.len() >= buckets.sweep_at_len.max(SWEEP_MIN) {
            buckets.full_at.retain(|_, full_at| *full_at > now);
            buckets.sweep_at_len = buckets.full_at.len() * 2;
        }
        OWN.take(buckets.full_at.entry(id.clone()).or_default(), now)
    }

    /// A call for an id that nobody knows.
    pub fn stranger(&self, now: Millis) -> Result<(), Refused> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        UNKNOWN.take(&mut buckets.unknown_full_at, now.0.saturating_mul(1_000))
    }
}

impl Rate {
    fn take(&self, full_at: &mut i64, now: i64) -> Result<(), Refused> {
        let after = (*full_at).max(now) + self.every_micros;
        let over = after - now - self.burst * self.every_micros;
        if over <= 0 {
            *full_at = after;
            return Ok(());
        }
        let seconds = (over as u64).div_ceil(1_000_000);
        let refused = Refused::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "rate limit exceeded");
        Err(refused.with("retry_after", seconds).retry_after(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_through_and_then_ten_a_second() {
        let limiter = Limiter::default();
        let id = WorkspaceId::known("a");
        let taken = |at| (0..100).filter(|_| limiter.call(&id, Millis(at)).is_ok()).count();
        assert_eq!(taken(10_000), 20);
        assert_eq!(taken(10_099), 0);
        assert_eq!(taken(10_100), 1);
        assert_eq!(taken(11_100), 10);
        assert_eq!(taken(60_000), 20);
        assert!(limiter.call(&WorkspaceId::known("b"), Millis(60_000)).is_ok(), "others are not held to it");
    }

    #[test]
    fn strangers_share_one_bucket() {
        let limiter = Limiter::default();
        let taken = (0..10_000).filter(|_| limiter.stranger(Millis(5_000)).is_ok()).count();
        assert_eq!(taken, 2_000);
    }

    #[test]
    fn whoever_was_quiet_for_a_while_takes_no_room() {
        let limiter = Limiter::default();
        for number in 0..200_000i64 {
            let id = WorkspaceId::known(format!("w{number}"));
            assert!(limiter.call(&id, Millis(number)).is_ok());
        }
        assert!(limiter.0.lock().unwrap().full_at.len() <= SWEEP_MIN);
    }
}
