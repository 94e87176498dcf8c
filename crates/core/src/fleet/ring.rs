//! When to look at a worker again: a ring of short lists, one for each slice of time.
//!
//! A beat does not touch the ring. A worker is looked at when its slice comes; if it has been heard
//! since, it is simply put into a later slice. So a beat costs nothing and expiry costs one look per
//! worker and TTL.

use super::Slot;
use crate::time::Millis;

/// A slice. Death is noticed at most this much late.
const SLICE_MS: i64 = 20;
/// The ring spans 163 s. Whoever has longer is looked at in between.
const SLICES: usize = 8192;

pub struct Ring {
    slices: Vec<Vec<(Slot, u32)>>,
    /// The last slice that was looked at; nothing before the first look.
    at: Option<i64>,
    /// Numbers the entries, so that a stale one is told from the worker's own.
    armed: u32,
}

impl Default for Ring {
    fn default() -> Self {
        Self { slices: vec![Vec::new(); SLICES], at: None, armed: 0 }
    }
}

impl Ring {
    /// Looks at `slot` once `end` has come. The number returned names this entry.
    pub fn arm(&mut self, slot: Slot, end: Millis) -> u32 {
        self.armed = self.armed.wrapping_add(1);
        let slice =
            self.at.map_or_else(|| slice_of(end), |at| slice_of(end).clamp(at + 1, at + SLICES as i64 - 1));
        self.slices[slice as usize % SLICES].push((slot, self.armed));
        self.armed
    }

    /// Everything whose slice has come by `now`.
    pub fn advance(&mut self, now: Millis) -> Vec<(Slot, u32)> {
        // A slice is over when its last millisecond is.
        let to = now.0.div_euclid(SLICE_MS);
        let from = self.at.map_or(to - SLICES as i64 + 1, |at| at + 1).max(to - SLICES as i64 + 1);
        self.at = Some(self.at.map_or(to, |at| at.max(to)));
        (from..=to).flat_map(|slice| std::mem::take(&mut self.slices[slice as usize % SLICES])).collect()
    }
}

/// The first slice that starts at or after `end`.
fn slice_of(end: Millis) -> i64 {
    (end.0 + SLICE_MS - 1).div_euclid(SLICE_MS)
}
