//! So many calls a second, and some at once: a bucket that fills up again.
//!
//! Of a bucket only one moment is kept: when it will be full again (the generic cell rate algorithm). A
//! full bucket is the same as none, so whoever was quiet for a while needs no room.

use crate::time::Millis;

const SECOND_MICROS: i64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    every_micros: i64,
    burst: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    full_at_micros: i64,
}

/// Whole seconds until a call would go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfter(pub u64);

impl Rate {
    /// At least one call a second, and one at once; at most a million.
    pub const fn new(per_second: u32, burst: u32) -> Self {
        let per_second = if per_second == 0 { 1 } else { per_second as i64 };
        let every = SECOND_MICROS / per_second;
        Self {
            every_micros: if every == 0 { 1 } else { every },
            burst: if burst == 0 { 1 } else { burst as i64 },
        }
    }
}

impl Bucket {
    pub fn take(&mut self, rate: &Rate, now: Millis) -> Result<(), RetryAfter> {
        let now = now.0.saturating_mul(1_000);
        let depth = rate.burst * rate.every_micros;
        // No bucket is emptier than empty: if this one says so, the clock was set back.
        self.full_at_micros = self.full_at_micros.clamp(now, now.saturating_add(depth));
        let after = self.full_at_micros.saturating_add(rate.every_micros);
        let over = after - now - depth;
        if over > 0 {
            return Err(RetryAfter((over as u64).div_ceil(SECOND_MICROS as u64)));
        }
        self.full_at_micros = after;
        Ok(())
    }

    /// Whether it may as well be forgotten.
    pub fn is_full(&self, now: Millis) -> bool {
        self.full_at_micros <= now.0.saturating_mul(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bucket: &mut Bucket, rate: &Rate, at: i64) -> usize {
        (0..1_000).take_while(|_| bucket.take(rate, Millis(at)).is_ok()).count()
    }

    #[test]
    fn a_burst_goes_through_and_then_so_many_a_second() {
        let (rate, mut bucket) = (Rate::new(10, 20), Bucket::default());
        for (at, calls) in [(10_000, 20), (10_099, 0), (10_100, 1), (11_100, 10), (60_000, 20)] {
            assert_eq!(taken(&mut bucket, &rate, at), calls, "at {at}");
        }
        assert!(!bucket.is_full(Millis(61_999)) && bucket.is_full(Millis(62_000)));
    }

    #[test]
    fn whoever_is_refused_is_told_when_to_come_back_and_is_let_in_then() {
        for (per_second, burst, seconds) in [(10, 20, 1), (1, 1, 1), (1, 60, 1), (1_000, 1, 1)] {
            let (rate, mut bucket) = (Rate::new(per_second, burst), Bucket::default());
            taken(&mut bucket, &rate, 5_000);
            let refused = bucket.take(&rate, Millis(5_000));
            assert_eq!(refused, Err(RetryAfter(seconds)), "{per_second} and {burst}");
            assert_eq!(bucket.take(&rate, Millis(5_000 + seconds as i64 * 1_000)), Ok(()));
        }
    }

    #[test]
    fn a_clock_that_is_set_back_empties_the_bucket_once_and_not_for_ever() {
        let (rate, mut bucket) = (Rate::new(1, 5), Bucket::default());
        assert_eq!(taken(&mut bucket, &rate, 1_000_000_000), 5);
        assert_eq!(taken(&mut bucket, &rate, 1_000), 0);
        assert_eq!(taken(&mut bucket, &rate, 3_000), 2);
    }

    #[test]
    fn a_rate_of_nothing_is_one() {
        let mut bucket = Bucket::default();
        assert_eq!(taken(&mut bucket, &Rate::new(0, 0), 1_000), 1);
        let mut bucket = Bucket::default();
        assert_eq!(taken(&mut bucket, &Rate::new(u32::MAX, 7), 1_000), 7);
    }
}
