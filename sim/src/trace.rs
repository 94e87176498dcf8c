//! What happened, line by line: hashed to prove that a run repeats, the last lines kept for a failure.

use crate::clock::SimClock;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

/// Lines kept for the report of a failure.
pub const LINES_KEPT: usize = 60;

pub struct EventTrace {
    clock: SimClock,
    aloud: bool,
    kept: Mutex<TraceLines>,
}

#[derive(Default)]
struct TraceLines {
    lines: VecDeque<String>,
    hash: u64,
}

impl EventTrace {
    pub fn silent(clock: SimClock) -> Self {
        Self { clock, aloud: false, kept: Mutex::default() }
    }

    /// Every line goes to stderr as well.
    pub fn aloud(clock: SimClock) -> Self {
        Self { clock, aloud: true, kept: Mutex::default() }
    }

    pub fn say(&self, what: impl Display) {
        let at = self.clock.elapsed_ms();
        let line = format!("{:>8}.{:03} {what}", at / 1000, at % 1000);
        if self.aloud {
            eprintln!("{line}");
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.hash = fnv(kept.hash, line.as_bytes());
        if kept.lines.len() == LINES_KEPT {
            kept.lines.pop_front();
        }
        kept.lines.push_back(line);
    }

    /// Stands for every line so far, in order.
    pub fn hash(&self) -> u64 {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).hash
    }

    pub fn last_lines(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).lines.iter().cloned().collect()
    }
}

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(hash ^ 0xcbf2_9ce4_8422_2325, step)
}
