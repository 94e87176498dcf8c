//! Chance, all of it from one number (`SplitMix64`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A chance in ten thousand.
pub type Chance = u64;

/// A handle; clones draw from the same sequence. There is one thread, so the order of draws is fixed.
#[derive(Clone)]
pub struct SimRng(Arc<AtomicU64>);

impl SimRng {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1))))
    }

    pub fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From zero, below `end`.
    pub fn below(&self, end: u64) -> u64 {
        self.next_u64() % end.max(1)
    }

    /// Both ends count.
    pub fn between(&self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as u64) as i64
    }

    /// Small values often, large ones now and then.
    pub fn skewed(&self, low: i64, high: i64) -> i64 {
        let top = self.between(low, high);
        let top = self.between(low, top);
        self.between(low, top)
    }

    pub fn chance(&self, rate: Chance) -> bool {
        rate > 0 && self.below(10_000) < rate
    }

    pub fn percent(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_another_does_not() {
        let draw = |seed| {
            (0..8).map(|_| 0).scan(SimRng::new(seed), |rng, _| Some(rng.next_u64())).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn a_draw_keeps_to_its_ends() {
        let rng = SimRng::new(1);
        assert!((0..1000).all(|_| (-3..=3).contains(&rng.between(-3, 3))));
        assert!((0..1000).all(|_| !rng.chance(0)) && (0..1000).all(|_| rng.chance(10_000)));
    }
}
