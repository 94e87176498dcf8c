//! How often those who show no valid key are answered, address by address.
//!
//! Whoever shows a valid key is not counted here. So strangers behind a proxy or on the same machine do not shut out the
//! honest who share their address, and there is no need to know which addresses are shared. A key cannot be found by
//! trying: it is 160 random bits.
//!
//! There are only so many buckets. When all are in use, addresses that are not known yet share one more.

use super::Access;
use crate::observe::metrics::Limit;
use reveille_core::address::AddressGroup;
use reveille_core::rate::{Bucket, Rate, RetryAfter};
use reveille_core::time::Millis;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Addresses that are counted one by one.
pub const ADDRESSES_MAX: usize = 65_536;
/// Below so many entries the table is not looked through.
const SWEEP_MIN: usize = 1_024;

#[derive(Default)]
pub struct AddressLimits(Mutex<AddressBuckets>);

#[derive(Default)]
struct AddressBuckets {
    /// Strangers choose the keys of this table, so its hashes must not be foreseeable.
    of_group: HashMap<AddressGroup, Bucket>,
    /// Of those for whom there is no room.
    others: Bucket,
    sweep_at_len: usize,
}

impl AddressLimits {
    fn take(&self, group: AddressGroup, rate: &Rate, now: Millis) -> Result<(), RetryAfter> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.of_group.get_mut(&group) {
            return bucket.take(rate, now);
        }
        if buckets.of_group.len() >= buckets.sweep_at_len.clamp(SWEEP_MIN, ADDRESSES_MAX) {
            buckets.of_group.retain(|_, bucket| !bucket.is_full(now));
            buckets.sweep_at_len = buckets.of_group.len() * 2;
        }
        if buckets.of_group.len() >= ADDRESSES_MAX {
            return buckets.others.take(rate, now);
        }
        buckets.of_group.entry(group).or_default().take(rate, now)
    }
}

impl Access {
    /// Somebody at this address has shown no valid key; whoever does so too often is told when to come back.
    pub fn count_stranger(&self, address: IpAddr) -> Result<(), RetryAfter> {
        let Some(rate) = &self.runtime.settings().limits.unauthenticated else { return Ok(()) };
        let taken = self.address_limits.take(AddressGroup::of(address), rate, self.runtime.now());
        if taken.is_err() {
            self.note_turned_away();
        }
        taken
    }

    /// Somebody was turned away for the address that they came from.
    pub fn note_turned_away(&self) {
        self.observe.metrics().limited(Limit::Address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: u32) -> AddressGroup {
        AddressGroup::of(IpAddr::V4(number.into()))
    }

    #[test]
    fn each_address_has_a_bucket_and_the_table_has_an_end() {
        let (limits, rate) = (AddressLimits::default(), Rate::new(1, 2));
        let take = |number, at| limits.take(group(number), &rate, Millis(at));
        assert_eq!([take(1, 0), take(1, 0), take(1, 0)], [Ok(()), Ok(()), Err(RetryAfter(1))]);
        assert_eq!(take(2, 0), Ok(()), "others are not held to it");
        let taken = (10..200_000).filter(|number| take(*number, 5).is_ok()).count();
        assert_eq!(taken, ADDRESSES_MAX - 2 + 2, "those for whom there is no room share one bucket");
        assert_eq!(limits.0.lock().unwrap().of_group.len(), ADDRESSES_MAX);
        assert_eq!(take(300_000, 10_000), Ok(()));
        assert_eq!(limits.0.lock().unwrap().of_group.len(), 1, "who was quiet for a while takes no room");
    }
}
