//! Time as the core sees it: whole milliseconds since the Unix epoch, always handed in.

use std::ops::{Add, Sub};

/// A moment. The clock that makes these never runs backwards within a process.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    pub const ZERO: Self = Self(0);

    /// How long after `earlier` this is; nothing if it is not after.
    pub fn since(self, earlier: Self) -> i64 {
        (self.0 - earlier.0).max(0)
    }

    /// The unit that the reference's API and Redis scores use.
    pub fn micros(self) -> i64 {
        self.0.saturating_mul(1000)
    }

    /// The moment as people read it. It always has its milliseconds, so that texts sort as moments do.
    pub fn rfc3339(self) -> String {
        jiff::Timestamp::from_millisecond(self.0).map_or_else(|_| self.0.to_string(), |at| format!("{at:.3}"))
    }
}

impl Add<i64> for Millis {
    type Output = Self;
    fn add(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl Sub<i64> for Millis {
    type Output = Self;
    fn sub(self, ms: i64) -> Self {
        Self(self.0.saturating_sub(ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_sort_as_moments_do() {
        let moments = [0, 1, 790, 797, 1_000, 1_800_000_000_000].map(|ms| Millis(ms).rfc3339());
        assert!(moments.is_sorted(), "{moments:?}");
        assert_eq!(moments[2], "1970-01-01T00:00:00.790Z");
        assert_eq!(Millis(i64::MAX).rfc3339(), i64::MAX.to_string(), "no year has such a number");
    }
}
