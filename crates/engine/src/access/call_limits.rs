//! How often each key may call.
//!
//! Only keys that are known have a bucket here, and those who come without a key share one, so there are
//! never more buckets than keys.

use super::Access;
use crate::observe::metrics::Limit;
use reveille_core::id::KeyId;
use reveille_core::rate::{Bucket, Rate, RetryAfter};
use reveille_core::time::Millis;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Below so many entries the table is not looked through.
const SWEEP_MIN: usize = 1_024;

#[derive(Default)]
pub struct CallLimits(Mutex<KeyBuckets>);

#[derive(Default)]
struct KeyBuckets {
    of_key: FxHashMap<KeyId, Bucket>,
    sweep_at_len: usize,
}

impl CallLimits {
    fn take(&self, key: &KeyId, rate: &Rate, now: Millis) -> Result<(), RetryAfter> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.of_key.get_mut(key) {
            return bucket.take(rate, now);
        }
        if buckets.of_key.len() >= buckets.sweep_at_len.max(SWEEP_MIN) {
            buckets.of_key.retain(|_, bucket| !bucket.is_full(now));
            buckets.sweep_at_len = buckets.of_key.len() * 2;
        }
        buckets.of_key.entry(key.clone()).or_default().take(rate, now)
    }
}

impl Access {
    /// Whether there is any limit to how often a key may call.
    pub fn limits_calls(&self) -> bool {
        self.runtime.settings().limits.calls.is_some()
    }

    /// One call with this key; whoever calls too often is told when to come back.
    pub fn count_call(&self, key: &KeyId) -> Result<(), RetryAfter> {
        let Some(rate) = &self.runtime.settings().limits.calls else { return Ok(()) };
        let taken = self.call_limits.take(key, rate, self.runtime.now());
        if taken.is_err() {
            self.observe.metrics().limited(Limit::Rate);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_bucket_of_its_own_and_a_full_one_takes_no_room() {
        let (calls, rate) = (CallLimits::default(), Rate::new(1, 2));
        let take = |key: &str, at| calls.take(&KeyId::known(key), &rate, Millis(at));
        assert_eq!([take("a", 0), take("a", 0), take("a", 0)], [Ok(()), Ok(()), Err(RetryAfter(1))]);
        assert_eq!(take("b", 0), Ok(()), "others are not held to it");
        for number in 0..50_000i64 {
            take(&format!("k{number}"), number * 10).unwrap();
        }
        assert!(calls.0.lock().unwrap().of_key.len() <= SWEEP_MIN);
    }
}
