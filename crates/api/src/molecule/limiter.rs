//! Clients that lost us come back in a hot loop. Each workspace gets so many calls a second at the registry,
//! and what is beyond is turned away before any work is done.
//!
//! A full bucket is the same as none, so the table holds only who called within the last seconds.

use super::refusal::MoleculeRefusal;
use axum::http::StatusCode;
use reveille_core::id::WorkspaceId;
use reveille_core::rate::{Bucket, Rate, RetryAfter};
use reveille_core::time::Millis;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Calls of one workspace: ten a second, twenty at once.
const OWN: Rate = Rate::new(10, 20);
/// Calls for ids that nobody knows, all together.
const UNKNOWN: Rate = Rate::new(500, 2_000);
/// Below so many entries the table is not looked through.
const SWEEP_MIN: usize = 1_024;

#[derive(Default)]
pub struct Limiter(Mutex<WorkspaceBuckets>);

#[derive(Default)]
struct WorkspaceBuckets {
    of_workspace: FxHashMap<WorkspaceId, Bucket>,
    unknown: Bucket,
    sweep_at_len: usize,
}

impl Limiter {
    /// A call for a workspace that is known.
    pub fn call(&self, id: &WorkspaceId, now: Millis) -> Result<(), MoleculeRefusal> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.of_workspace.get_mut(id) {
            return bucket.take(&OWN, now).map_err(refused);
        }
        if buckets.of_workspace.len() >= buckets.sweep_at_len.max(SWEEP_MIN) {
            buckets.of_workspace.retain(|_, bucket| !bucket.is_full(now));
            buckets.sweep_at_len = buckets.of_workspace.len() * 2;
        }
        buckets.of_workspace.entry(id.clone()).or_default().take(&OWN, now).map_err(refused)
    }

    /// A call for an id that nobody knows.
    pub fn stranger(&self, now: Millis) -> Result<(), MoleculeRefusal> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.unknown.take(&UNKNOWN, now).map_err(refused)
    }
}

fn refused(RetryAfter(seconds): RetryAfter) -> MoleculeRefusal {
    let refused = MoleculeRefusal::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "rate limit exceeded");
    refused.with("retry_after", seconds).retry_after(seconds)
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
        assert!(limiter.0.lock().unwrap().of_workspace.len() <= SWEEP_MIN);
    }
}
