//! Time and chance, which the core is handed and the simulation owns.

use reveille_core::time::Millis;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Millis;
}

/// The wall clock as it was when we started, plus time that really passed. A clock that somebody sets
/// while we run kills no worker and expires no job.
pub struct SystemClock {
    wall: Millis,
    started: Instant,
}

impl SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall: Millis(wall.as_millis() as i64), started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        self.wall + self.started.elapsed().as_millis() as i64
    }
}

pub trait Rng: Send + Sync + 'static {
    fn next_u64(&self) -> u64;
}

/// The system's randomness, asked for by the handful: a job needs several numbers.
#[derive(Default)]
pub struct SystemRng(Mutex<Vec<u64>>);

/// Numbers that are asked for at once.
const HANDFUL: usize = 64;

impl Rng for SystemRng {
    fn next_u64(&self) -> u64 {
        let mut handful = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(number) = handful.pop() {
                return number;
            }
            let mut bytes = [0; HANDFUL * size_of::<u64>()];
            // A server that finds none does not start; here there must be some, because what is made of it may be a key.
            if let Err(error) = getrandom::fill(&mut bytes) {
                panic!("the system has no randomness any more: {error}");
            }
            handful.extend(bytes.as_chunks().0.iter().copied().map(u64::from_ne_bytes));
        }
    }
}

/// The same numbers for the same seed (`SplitMix64`).
pub struct SeededRng(AtomicU64);

impl SeededRng {
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Rng for SeededRng {
    fn next_u64(&self) -> u64 {
        let mut mixed =
            self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
