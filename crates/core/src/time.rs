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
